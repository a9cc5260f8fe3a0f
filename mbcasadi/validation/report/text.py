"""Metrics in words and readable units."""

import math

from mbcasadi.codegen import TickTimes
from mbcasadi.validation.metrics.criteria import Verdict
from mbcasadi.validation.run.conditions import Condition, WhatIf

_WORDS = {
    "finished": "ran to its end",
    "tracking.rms": "tracking error, worst RMS",
    "tracking.max": "tracking error, largest",
    "tracking.rms_share": "tracking error, RMS over amplitude",
    "tracking.max_share": "tracking error, largest over amplitude",
    "tracking.rms_share_free": "tracking error, RMS over amplitude, while no motor is at its limit",
    "closure.plant": "gap of the loops in MuJoCo",
    "closure.rows": "worst equality residual in MuJoCo",
    "closure.model": "residual of our constraint equations",
    "agreement.force_median": "constraint force against MuJoCo, median difference",
    "agreement.force_max": "constraint force against MuJoCo, largest difference",
    "agreement.a_median": "acceleration against MuJoCo, median difference",
    "agreement.a_max": "acceleration against MuJoCo, largest difference",
    "torque.excess": "control beyond its limit",
    "torque.saturated": "ticks with a control at its limit",
    "torque.max": "largest control",
    "cone.plant": "friction-cone margin in MuJoCo",
    "cone.controller": "friction-cone margin of the controller's forces",
    "contact.lost": "active contacts without force",
    "contact.slip": "way of an active contact on the floor",
    "status.solved": "ticks solved and verified",
    "status.safe_output": "ticks with a safe output",
    "status.longest_failure": "longest run of ticks with a safe output",
    "status.check": "largest residual of the self-check",
    "limits.least": "least margin of a bounded row, of its range",
    "limits.soft_least": "least margin of a soft row, of its range",
    "limits.beyond": "ticks of a row beyond its bound",
    "limits.near": "ticks of a row at its bound",
    "prediction.start": "error of the state that the plan starts from, of its motion",
    "prediction.next": "error of the plan one sample ahead, of the motion",
    "prediction.quarter": "error of the plan a quarter ahead, of the motion",
    "prediction.half": "error of the plan half the horizon ahead, of the motion",
    "prediction.end": "error of the plan at its end, of the motion",
    "time.median": "time of one tick in C, median",
    "time.p99": "time of one tick in C, 99th percentile",
    "time.max": "time of one tick in C, longest",
    "time.preparation": "preparation of one tick in C, 99th percentile",
    "time.feedback": "feedback of one tick in C, 99th percentile",
    "time.share": "time of one tick in C, 99th percentile, of the period",
    "outer.safe_output": "ticks of the outer law with a safe output",
    "outer.longest_failure": "longest run of the outer law's ticks with a safe output",
    "outer.time": "time of one tick of the outer law in C, 99th percentile",
    "outer.share": "time of one tick of the outer law, 99th percentile, of its period",
    "time.late": "ticks that took longer than the period",
}
_SHARES = {
    "tracking.rms_share",
    "tracking.max_share",
    "tracking.rms_share_free",
    "torque.saturated",
    "cone.plant",
    "cone.controller",
    "contact.lost",
    "status.solved",
    "status.safe_output",
    "limits.least",
    "limits.soft_least",
    "limits.beyond",
    "limits.near",
    "prediction.start",
    "prediction.next",
    "prediction.quarter",
    "prediction.half",
    "prediction.end",
    "time.share",
    "time.late",
    "outer.safe_output",
    "outer.share",
}
_LENGTHS = {"closure.plant", "contact.slip"}
_TIMES = {"time.median", "time.p99", "time.max", "time.preparation", "time.feedback", "outer.time"}


def metric_words(name: str) -> str:
    """Return what a metric is, in words."""
    base, _, scope = name.partition(":")
    words = _WORDS.get(base, base)
    return f"{scope}: {words}" if scope else words


def value_words(name: str, value: float) -> str:
    """Return a value with a readable unit."""
    name = name.partition(":")[0]
    if math.isnan(value):
        return "not measured"
    if name == "finished":
        return "yes" if value else "no"
    if name in _SHARES:
        return f"{100 * value:.3g} %"
    if name in _LENGTHS:
        return length_words(value)
    if name in _TIMES:
        return f"{1e6 * value:.3g} µs"
    return f"{value:.3g}"


def length_words(value: float) -> str:
    """Return a length in m, mm or µm."""
    for unit, factor in (("m", 1.0), ("mm", 1e3)):
        if abs(value) * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µm" if value else "0"


def limit_words(verdict: Verdict) -> str:
    """Return the requirement of a criterion."""
    if verdict.metric == "finished":
        return "yes"
    sign = "≥" if verdict.at_least else "≤"
    return f"{sign} {value_words(verdict.metric, verdict.limit)}"


def what_if_headings(found: WhatIf) -> tuple[str, ...]:
    """Return the headings of a table of conditions, after that of their names."""
    unit = f" / {found.unit}" if found.unit else ""
    return (f"tracking, worst RMS{unit}", "effort", "least margin", "safe output", "finished")


def what_if_cells(row: Condition) -> tuple[str, ...]:
    """Return the cells of a condition, after its name."""
    return (
        number(row.tracking),
        number(row.effort),
        value_words("limits.least", row.margin),
        value_words("status.safe_output", row.failed),
        "yes" if row.finished else "no",
    )


def number(value: float) -> str:
    """Return three digits, or a dash where nothing was measured."""
    return "–" if math.isnan(value) else f"{value:.3g}"


def bound(value: float) -> str:
    """Return a bound, or a dash where there is none."""
    return f"{value:.4g}" if math.isfinite(value) else "–"


def phases(times: TickTimes) -> list[tuple[str, TickTimes]]:
    """Return whole ticks, then their phases where there are two."""
    parts = [("preparation", times.preparation), ("feedback", times.feedback)]
    return [("whole tick", times), *((name, part) for name, part in parts if part is not None)]


def ticks(count: int) -> str:
    """Return a number of ticks."""
    return f"{count} tick{'' if count == 1 else 's'}"
