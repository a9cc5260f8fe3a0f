"""Words of the report that need an explanation where they stand."""

from collections.abc import Iterable

from mbcasadi.validation.report.text import metric_text

GLOSSARY = {
    "safe output": "what a controller commands where it has no solution; in controllers of "
    "this package the last solved command for 10 ms, then each actuator holds",
    "of scale": "RMS in the last quarter of the run over 1 rad for angles, the extent of the model "
    "for lengths, its weight for forces; the deviation at the start is added to that scale",
    "self-check": "the controller puts its solution into its own equations and conditions; what "
    "remains is the residual, zero but for rounding and the solver's tolerance",
}
"""A word of the tables → what it means."""


def explained(metrics: Iterable[str]) -> list[tuple[str, str]]:
    """Return the words of the glossary that the texts of metrics have, with their meaning."""
    together = "\n".join(map(metric_text, metrics))
    return [(word, meaning) for word, meaning in GLOSSARY.items() if word in together]
