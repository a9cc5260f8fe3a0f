"""How far a run stayed inside what its law keeps between bounds.

The margin of a row is `min(value - lower, upper - value)`, negative outside. Controls are those
that the law computed; the rows of `Controller.limits` are taken at the measured state and at the
control that acted there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, Limits
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.metrics import AT_LIMIT, Metric
from mbcasadi.validation.metrics.recorded_signals import called

Array = NDArray[np.float64]

# A row that a law keeps between bounds counts as at one of them within this share of its range.
NEAR = 0.01
# An excess below this share of the range is what a QP is solved to.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Margin:
    """One bounded row over a run.

    Attributes:
        name, unit: of the row.
        lower, upper: its bounds, infinite where there is none.
        soft: it may give way at a price.
        least: smallest margin, negative outside, at the time `when`, s.
        scale: the row's range, or its largest margin where one end is free.
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
    """Return a row for each bounded control and for each row of the law's limits."""
    signal = next((s for s in controller.outputs if s.name == "u"), None)
    nu = controller.u_min.size
    named = signal is not None and len(signal.components) == nu
    names = signal.components if signal is not None and named else tuple(map(str, range(nu)))
    units = signal.units if signal is not None and named else ("",) * nu
    rows = []
    for i in range(nu):
        bounds = float(controller.u_min[i]), float(controller.u_max[i])
        u = np.nan_to_num(recording.u[:, i], nan=np.inf)
        rows.append(_row(f"u.{names[i]}", units[i], bounds, False, recording.t, u))
    rows += _of_limits(controller.limits, recording)
    return tuple(row for row in rows if row is not None)


def _of_limits(limits: Limits | None, recording: Recording) -> list[Margin | None]:
    if limits is None or not limits.soft:
        return []
    values, signal = called(limits.value, _given(recording))["value"], limits.signal
    return [
        _row(
            name,
            signal.units[i],
            (float(limits.lower[i]), float(limits.upper[i])),
            limits.soft[i],
            recording.t,
            values[:, 0, i],
            near=NEAR,
        )
        for i, name in enumerate(signal.components)
    ]


def _given(recording: Recording) -> dict[str, Array]:
    """Return what limits may take; the change of the first control is not known."""
    names = ("q", "v", "act", "ref", "mask", "z")
    last = np.vstack([np.full((1, recording.u.shape[1]), np.nan), recording.u_applied[:-1]])
    found = {name: getattr(recording, name) for name in names}
    found |= {"t": recording.t[:, None], "f_c": recording.equality_force}
    return found | {"u": recording.u_applied, "u_last": last}


def _row(
    name: str,
    unit: str,
    bounds: tuple[float, float],
    soft: bool,
    t: Array,
    value: Array,
    near: float = AT_LIMIT,
) -> Margin | None:
    """Return the margin of a row; None where nothing bounds it or nothing of it is known."""
    lower, upper = bounds
    known = ~np.isnan(value)
    if not known.any() or not (np.isfinite(lower) or np.isfinite(upper)):
        return None
    margin, t = np.minimum(value - lower, upper - value)[known], t[known]
    width = upper - lower
    scale = width if np.isfinite(width) and width > 0 else float(np.abs(margin).max())
    return Margin(
        name=name,
        unit=unit,
        lower=lower,
        upper=upper,
        soft=soft,
        least=float(margin.min()),
        when=float(t[np.argmin(margin)]),
        scale=scale,
        near=float((margin <= near * scale).mean()),
        beyond=float((margin < -ROUNDING * scale).mean()),
    )


def margin_metrics(rows: Sequence[Margin]) -> Iterator[Metric]:
    """Yield the worst of the hard rows and of the soft ones."""
    for name, soft, words in (("least", False, "hard"), ("soft_least", True, "soft")):
        mine = [row for row in rows if row.soft == soft]
        if not mine:
            continue
        worst = min(mine, key=lambda row: row.share)
        told = f"least margin of a {words} row, of its range ({worst.name} at {worst.when:g} s)"
        yield Metric(f"limits.{name}", worst.share, "", told)
    if rows:
        hard = max((row.beyond for row in rows if not row.soft), default=0.0)
        yield Metric("limits.beyond", hard, "", "share of ticks of a hard row beyond its bound")
        near = max(row.near for row in rows)
        yield Metric("limits.near", near, "", "share of ticks of a row at its bound or beyond")
