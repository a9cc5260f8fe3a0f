"""Why a run failed, in sentences."""

import math
from collections.abc import Iterator

from mbcasadi.validation.report.text import limit_text, metric_text, value_text
from mbcasadi.validation.run import Cause, Diagnosis, Failure

SMALL = 0.05
"""Share of a failure below which a cause is not one."""


def reasons(diagnosis: Diagnosis) -> list[str]:
    """Return a sentence for each failure, for each of its causes, and for the gains."""
    lines = [line for failure in diagnosis.failures for line in _failure_lines(failure)]
    return [*lines, *diagnosis.advice]


def _failure_lines(failure: Failure) -> Iterator[str]:
    verdict = failure.verdict
    name = metric_text(verdict.metric)
    where = f" ({failure.component})" if failure.component else ""
    if verdict.metric == "finished":
        yield "the run ended early"
    else:
        value = value_text(verdict.metric, verdict.value)
        yield f"{name}{where} is {value}, required {limit_text(verdict)}"
    causes = [cause for cause in failure.causes if cause.share >= SMALL]
    for cause in causes:
        yield f"  due to {cause.name}: without it {_value(failure, cause)}"
    others = [cause.name for cause in failure.causes if cause.share < SMALL]
    if others:
        yield f"  not due to {', '.join(others)}"
    unknown = [cause.name for cause in failure.causes if math.isnan(cause.share)]
    if unknown:
        yield f"  could not be run or measured without {', '.join(unknown)}"
    if failure.causes and not causes:
        yield (
            "  nothing that was left out explains it alone: see the gains, whether the reference "
            "can be reached, and what the model lacks"
        )


def _value(failure: Failure, cause: Cause) -> str:
    """Return what is left without a cause, in words."""
    metric, ok = failure.verdict.metric, ", which passes" if cause.passed else ""
    if metric == "finished":
        reached = "reaches its end" if cause.passed else f"gets to {100 * cause.value:.3g} %"
        return f"the run {reached}"
    left = f"{value_text(metric, cause.value)}{ok}"
    return f"{left} ({100 * min(1.0, cause.share):.0f} % of it goes away)"
