"""Metrics as text with readable units."""

import math

from mbcasadi.codegen import TickTimes
from mbcasadi.validation.metrics.criteria import JUDGED, SAME_IN_C, Verdict
from mbcasadi.validation.metrics.metric import METRICS, base_name, prefixed
from mbcasadi.validation.metrics.predictions import Predictions

ANSWERS = {
    "finished": "ran to its end",
    JUDGED: "something says what the motion should be; give a reference or criteria",
    SAME_IN_C: "the C gives the same controls",
}
"""Texts of `NO_METRICS`."""


MOST_PERCENT = 10.0
"""Shares from here on are written as multiples."""


def verdict_word(passed: bool | None, failed: str = "failed") -> str:
    """Return a verdict in one or two words."""
    return {True: "passed", False: failed, None: "not judged"}[passed]


def metric_text(name: str) -> str:
    """Return what a metric, or a criterion that is yes or no, is."""
    if name in ANSWERS:
        return ANSWERS[name]
    base, _, scope = name.partition(":")
    text = METRICS[base].text if base in METRICS else base
    return f"{scope}: {text}" if scope else text


def value_text(name: str, value: float) -> str:
    """Return the value of a metric with a readable unit."""
    if math.isnan(value):
        return "not measured"
    if name in ANSWERS:
        return "yes" if value else "no"
    kind = METRICS.get(base_name(name))
    quantity = kind.quantity if kind is not None else "number"
    if quantity == "share":
        return f"{100 * value:.3g} %" if abs(value) < MOST_PERCENT else f"{value:.3g} times"
    if quantity in {"length", "time"}:
        return prefixed(value, "m" if quantity == "length" else "s")
    return f"{value:.3g}"


def verdict_line(verdict: Verdict) -> str:
    """Return a criterion in words, with the metric's name for `Criteria`."""
    reached = value_text(verdict.metric, verdict.value)
    required = f", required {limit_text(verdict)}"
    if verdict.metric in ANSWERS:
        required = ""
    mark = {True: "ok  ", False: "FAIL", None: "?   "}[verdict.passed]
    return f"{mark} {metric_text(verdict.metric)}: {reached}{required} ({verdict.metric})"


def limit_text(verdict: Verdict) -> str:
    """Return the requirement of a criterion."""
    if verdict.metric in ANSWERS:
        return "yes"
    sign = "≥" if verdict.at_least else "≤"
    return f"{sign} {value_text(verdict.metric, verdict.limit)}"


def number_text(value: float) -> str:
    """Return three digits, or a dash where nothing was measured."""
    return "–" if math.isnan(value) else f"{value:.3g}"


def bound_text(value: float) -> str:
    """Return a bound, or a dash where there is none."""
    return f"{value:.4g}" if math.isfinite(value) else "–"


def plan_error_text(plans: Predictions, name: str) -> str:
    """Return the error of plans over the motion; the largest RMS error where nothing moves.

    Args:
        plans: of the run.
        name: of the lag.
    """
    lag = [*plans.lags].index(name)
    share = plans.share(lag)
    if not math.isnan(share):
        return value_text(f"prediction.{name}", share)
    rows = [row for row in plans.states if not math.isnan(row.rms[lag])]
    if not rows:
        return value_text(f"prediction.{name}", math.nan)
    worst = max(rows, key=lambda row: row.rms[lag] / row.scale)
    unit = f" {worst.unit}" if worst.unit else ""
    return f"{worst.rms[lag]:.2g}{unit} at rest"


def tick_phases(times: TickTimes) -> list[tuple[str, TickTimes]]:
    """Return whole ticks, then their phases where there are two."""
    phases = [("preparation", times.preparation), ("feedback", times.feedback)]
    return [("whole tick", times), *((name, phase) for name, phase in phases if phase is not None)]


def tick_count(count: int) -> str:
    """Return a number of ticks with its unit."""
    return f"{count} tick{'' if count == 1 else 's'}"
