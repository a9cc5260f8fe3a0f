"""Metrics as text with readable units."""

import math

from mbcasadi.codegen import TickTimes
from mbcasadi.validation.metrics import METRICS, Verdict, base_name
from mbcasadi.validation.run import Condition, WhatIf


def metric_text(name: str) -> str:
    """Return what a metric is; `finished` is the criterion that a run reaches its end."""
    if name == "finished":
        return "ran to its end"
    base, _, scope = name.partition(":")
    text = METRICS[base].text if base in METRICS else base
    return f"{scope}: {text}" if scope else text


def value_text(name: str, value: float) -> str:
    """Return the value of a metric with a readable unit."""
    if math.isnan(value):
        return "not measured"
    if name == "finished":
        return "yes" if value else "no"
    kind = METRICS.get(base_name(name))
    quantity = kind.quantity if kind is not None else "number"
    if quantity == "share":
        return f"{100 * value:.3g} %"
    if quantity == "length":
        return length_text(value)
    if quantity == "time":
        return f"{1e6 * value:.3g} µs"
    return f"{value:.3g}"


def length_text(value: float) -> str:
    """Return a length in m, mm or µm."""
    for unit, factor in (("m", 1.0), ("mm", 1e3)):
        if abs(value) * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µm" if value else "0"


def limit_text(verdict: Verdict) -> str:
    """Return the requirement of a criterion."""
    if verdict.metric == "finished":
        return "yes"
    sign = "≥" if verdict.at_least else "≤"
    return f"{sign} {value_text(verdict.metric, verdict.limit)}"


def what_if_headings(table: WhatIf) -> tuple[str, ...]:
    """Return the headings of a table of conditions, after that of their names."""
    unit = f" / {table.unit}" if table.unit else ""
    return (f"tracking, worst RMS{unit}", "effort", "least margin", "safe output", "finished")


def what_if_cells(row: Condition) -> tuple[str, ...]:
    """Return the cells of a condition, after its name."""
    return (
        number_text(row.tracking),
        number_text(row.effort),
        value_text("limits.least", row.margin),
        value_text("status.safe_output", row.safe_output),
        "yes" if row.finished else "no",
    )


def number_text(value: float) -> str:
    """Return three digits, or a dash where nothing was measured."""
    return "–" if math.isnan(value) else f"{value:.3g}"


def bound_text(value: float) -> str:
    """Return a bound, or a dash where there is none."""
    return f"{value:.4g}" if math.isfinite(value) else "–"


def tick_phases(times: TickTimes) -> list[tuple[str, TickTimes]]:
    """Return whole ticks, then their phases where there are two."""
    phases = [("preparation", times.preparation), ("feedback", times.feedback)]
    return [("whole tick", times), *((name, phase) for name, phase in phases if phase is not None)]


def tick_count(count: int) -> str:
    """Return a number of ticks with its unit."""
    return f"{count} tick{'' if count == 1 else 's'}"
