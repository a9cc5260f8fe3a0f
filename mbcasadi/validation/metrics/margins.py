"""Margins of a run to the bounds of its controller.

The margin of a row is `min(value - lower, upper - value)`, negative outside. Controls are those
that the controller computed; the rows of `Controller.limits` are evaluated at the measured state
and the control that acted there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, ReportedLimits
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.control_metrics import AT_LIMIT, control_names
from mbcasadi.validation.metrics.metric import Metric, named
from mbcasadi.validation.metrics.recorded_signals import evaluate_points

Array = NDArray[np.float64]

# A row of `Controller.limits` counts as at a bound within this share of its range.
NEAR = 0.01
# An excess below this share of the range is the accuracy of a QP's solution.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Margin:
    """One bounded row over a run.

    Attributes:
        name, unit: of the row.
        lower, upper: its bounds, infinite where there is none.
        soft: it may be violated at a cost.
        least: smallest margin, negative outside, at the time `when`, s.
        scale: the row's range, or its largest margin where only one end is bounded.
        near: share of ticks at a bound or beyond it.
        beyond: share of ticks beyond a bound.
    """

    name: str
    unit: str
    lower: float
    upper: float
    soft: bool
    least: float
    when: float
    scale: float
    near: float
    beyond: float

    @property
    def share(self) -> float:
        """Smallest margin over the scale."""
        return self.least / self.scale if self.scale > 0 else float(min(self.least, 0.0))


def margins(controller: Controller, recording: Recording) -> tuple[Margin, ...]:
    """Return a row for each bounded control and for each row of the controller's limits."""
    names, units = control_names(controller)
    u = np.nan_to_num(recording.u, nan=np.inf)
    bounds = zip(controller.u_min, controller.u_max, strict=True)
    rows = [
        _margin((f"u.{name}", unit), (lower, upper), recording.t, value)
        for name, unit, (lower, upper), value in zip(names, units, bounds, u.T, strict=True)
    ]
    rows += _limit_margins(controller.limits, recording)
    return tuple(row for row in rows if row is not None)


def _limit_margins(limits: ReportedLimits | None, recording: Recording) -> list[Margin | None]:
    if limits is None or not limits.soft:
        return []
    values = evaluate_points(limits.value, _limit_inputs(recording))["value"][:, 0].T
    names = zip(limits.signal.components, limits.signal.units, strict=True)
    bounds = zip(limits.lower, limits.upper, strict=True)
    return [
        _margin(name, ends, recording.t, value, soft=soft, near=NEAR)
        for name, ends, soft, value in zip(names, bounds, limits.soft, values, strict=True)
    ]


def _limit_inputs(recording: Recording) -> dict[str, Array]:
    """Return the inputs of limits at all ticks; `u_last` is NaN at the first tick."""
    names = ("q", "v", "act", "ref", "tuning", "p", "mask", "z")
    first = np.full((1, recording.u.shape[1]), np.nan)
    return {
        **{name: getattr(recording, name) for name in names},
        "t": recording.t[:, None],
        "f_c": recording.equality_force,
        "f_measured": recording.f_measured,
        "u": recording.u_applied,
        "u_last": np.vstack([first, recording.u_applied[:-1]]),
    }


def _margin(
    name: tuple[str, str],
    bounds: tuple[float, float],
    t: Array,
    value: Array,
    *,
    soft: bool = False,
    near: float = AT_LIMIT,
) -> Margin | None:
    """Return the margin of a row; None where it has no bound or no value.

    Args:
        name: and unit.
        bounds: lower and upper.
        t, value: (nt,).
        soft: it may be violated.
        near: share of the range within which a value is at a bound.
    """
    known, (lower, upper) = ~np.isnan(value), map(float, bounds)
    if not known.any() or not np.isfinite([lower, upper]).any():
        return None
    margin, t = np.minimum(value - lower, upper - value)[known], t[known]
    width = upper - lower
    scale = width if np.isfinite(width) and width > 0 else float(np.abs(margin).max())
    least, when = float(margin.min()), float(t[np.argmin(margin)])
    at_bound, beyond = margin <= near * scale, margin < -ROUNDING * scale
    return Margin(
        *name, lower, upper, soft, least, when, scale, float(at_bound.mean()), float(beyond.mean())
    )


def margin_metrics(rows: Sequence[Margin]) -> Iterator[Metric]:
    """Yield the worst of the hard rows and of the soft ones."""
    for name, soft in (("least", False), ("soft_least", True)):
        candidates = [row for row in rows if row.soft == soft]
        if not candidates:
            continue
        worst = min(candidates, key=lambda row: row.share)
        note = f"{worst.name} at {worst.when:g} s"
        yield from named({f"limits.{name}": worst.share}, note=note)
    if rows:
        hard = max((row.beyond for row in rows if not row.soft), default=0.0)
        yield from named({"limits.beyond": hard, "limits.near": max(row.near for row in rows)})
