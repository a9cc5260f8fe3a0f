"""How well the tasks of a controller were tracked, and constant targets held.

A constant target has no amplitude that an error could be compared with. Its scale is one radian
for an angle, the extent of the model for a length, and the weight for a force; the deviation at the
start is added, as a regulator may begin far from its target:

    share = RMS of the error in the last quarter of the run / (scale + |error at the start|).

A transient counts only if it lasts: a cart may move far to raise its pendulum.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.shapes import number
from mbcasadi.short_text import summarised
from mbcasadi.unknown_names import unknown_name
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.closed_loop.columns import dof_units
from mbcasadi.validation.metrics.control_metrics import saturation
from mbcasadi.validation.metrics.metric import Metric, named, unit_scale

Array = NDArray[np.float64]

# Targets that move less than this share of their scale (`unit_scale`) have no amplitude.
SMALLEST_AMPLITUDE = 1e-6


@summarised
@dataclass(frozen=True)
class TrackingStatistics:
    """The tracking error of one component of the tasks.

    Attributes:
        name, unit: of the component.
        rms, peak: of the error.
        amplitude: half of the target's range; 0 where it is constant.
        rms_free: RMS over the ticks without a saturated motor, NaN if there are none.
        scale: of its unit: 1 rad, the extent of the model, its weight; 1 for other units.
        judged: metrics of all components count it; not where heavier tasks leave it no freedom.
    """

    name: str
    unit: str
    rms: float
    peak: float
    amplitude: float
    rms_free: float
    scale: float = 1.0
    judged: bool = True

    @property
    def moves(self) -> bool:
        """Whether the target has an amplitude."""
        return self.amplitude > SMALLEST_AMPLITUDE * self.scale

    def share(self, value: float) -> float:
        """Return `value`, or NaN, over the amplitude; NaN where the target is constant.

        Raises:
            ProblemError: the value is no number.
        """
        return number("value", value) / self.amplitude if self.moves else float("nan")


def tracking_statistics(
    controller: Controller,
    recording: Recording,
    settle: float = 0.0,
    model: mujoco.MjModel | None = None,
) -> tuple[TrackingStatistics, ...]:
    """Return the tracking error of each component, from `settle` s on; () without a monitor.

    Args:
        controller, recording: of the run.
        settle: s at the start that are left out.
        model: of the plant, for the scales of the units; without it they are 1.
    """
    if not {"target", "error"} <= recording.monitor.keys():
        return ()
    late = recording.t >= settle
    free = late & ~saturation(controller, recording.u).any(axis=1)
    target, error = recording.monitor["target"], recording.monitor["error"]
    names, units = _components(controller, "error", error.shape[1])
    return tuple(
        TrackingStatistics(
            name=names[i],
            unit=units[i],
            rms=root_mean_square(error[late, i]),
            peak=float(np.abs(error[late, i]).max(initial=0.0)),
            amplitude=float(np.ptp(target[late, i])) / 2 if late.any() else 0.0,
            rms_free=root_mean_square(error[free, i]),
            judged=names[i] not in controller.secondary,
            scale=1.0 if model is None else unit_scale(model, units[i]) or 1.0,
        )
        for i in range(error.shape[1])
    )


def root_mean_square(values: Array) -> float:
    """Return `sqrt(mean(values²))`, NaN without values."""
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")


def _components(
    controller: Controller, output: str, size: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names and units of the rows of a monitor's output."""
    for signal in controller.monitors:
        if signal.name == output and len(signal.components) == size:
            return signal.components, signal.units
    return tuple(f"{output}[{i}]" for i in range(size)), ("",) * size


def tracking_metrics(
    rows: Sequence[TrackingStatistics], scopes: Sequence[str] = ()
) -> Iterator[Metric]:
    """Yield the worst tracking over the judged components, then over those of each scope.

    A scope is the name of a component, or the part of it before a dot: the task "trunk" has
    the components "trunk.x", "trunk.ry". Its metrics are named `tracking.rms:trunk`.

    Raises:
        UnknownNameError: a scope matches no component; the message lists them.
    """
    if not rows:
        return
    judged = [row for row in rows if row.judged]
    if judged:
        yield from _worst(judged, "")
    for scope in scopes:
        yield from _worst(rows_of_scope(rows, scope), f":{scope}")


def rows_of_scope(rows: Sequence[TrackingStatistics], scope: str) -> list[TrackingStatistics]:
    """Return the components that a scope names.

    Raises:
        UnknownNameError: there are none; the message lists the components.
    """
    matches = [row for row in rows if row.name == scope or row.name.startswith(f"{scope}.")]
    if not matches:
        raise unknown_name("component", scope, [row.name for row in rows])
    return matches


def _worst(rows: Sequence[TrackingStatistics], suffix: str) -> Iterator[Metric]:
    """Yield the worst values; an error that is NaN makes them NaN, which no criterion accepts."""
    unit = " or ".join(sorted({row.unit for row in rows if row.unit}))
    rms, peak = np.max([r.rms for r in rows]), np.max([r.peak for r in rows])
    yield from named({f"tracking.rms{suffix}": rms, f"tracking.max{suffix}": peak}, unit)
    moving = [row for row in rows if row.moves]
    if not moving:
        return
    free = [row.share(row.rms_free) for row in moving]
    shares = {
        "rms_share": np.max([row.share(row.rms) for row in moving]),
        "max_share": np.max([row.share(row.peak) for row in moving]),
        "rms_share_free": None if np.isnan(free).all() else np.nanmax(free),
    }
    yield from named({f"tracking.{name}{suffix}": value for name, value in shares.items()})


HOLD_SHARE = "tracking.hold_share"
LATE = 0.25  # share of the run, at its end, in which a constant target is reached


@dataclass(frozen=True)
class HoldStatistics:
    """The error of one component whose target is constant.

    Attributes:
        name, unit: of the component.
        late: RMS of the error in the last quarter of the run.
        start: |error| at the start.
        scale: what an error of 100 % is, in `unit`; 0 where the unit gives none.
    """

    name: str
    unit: str
    late: float
    start: float
    scale: float

    @property
    def share(self) -> float:
        """`late / (scale + start)`; NaN without a scale and a deviation at the start."""
        whole = self.scale + self.start
        return self.late / whole if whole > 0 else float("nan")


def hold_statistics(
    controller: Controller, recording: Recording, model: mujoco.MjModel, settle: float = 0.0
) -> tuple[HoldStatistics, ...]:
    """Return the components of the tasks whose target is constant from `settle` s on.

    Args:
        controller, recording: of the run.
        model: of the plant, for the scales. Where no component has a unit, and there is one for
            each degree of freedom, the units are those of the plant's coordinates.
        settle: s at the start that count as a transient.
    """
    rows = tracking_statistics(controller, recording, settle, model)
    units = [row.unit for row in rows]
    if len(rows) == model.nv and not any(units):
        units = [*dof_units(model)]
    end = float(recording.t[-1])
    begin = end - LATE * max(0.0, end - settle)
    late = tracking_statistics(controller, recording, begin, model)
    return tuple(
        HoldStatistics(
            name=row.name,
            unit=unit,
            late=late[i].rms,
            start=float(np.abs(recording.monitor["error"][0, i])),
            scale=unit_scale(model, unit),
        )
        for i, (row, unit) in enumerate(zip(rows, units, strict=True))
        if not row.moves
    )


def hold_metrics(
    rows: Sequence[HoldStatistics],
    tracking: Sequence[TrackingStatistics],
    scopes: Sequence[str] = (),
) -> Iterator[Metric]:
    """Yield the worst share over all judged constant targets, then over those of each scope.

    Args:
        rows: components with a constant target.
        tracking: all components.
        scopes: as in `tracking_metrics`.
    """
    for scope in ("", *scopes):
        chosen = rows_of_scope(tracking, scope) if scope else [x for x in tracking if x.judged]
        matches = {row.name for row in chosen}
        shares = [row.share for row in rows if row.name in matches]
        if shares:
            yield from named({f"{HOLD_SHARE}:{scope}" if scope else HOLD_SHARE: np.max(shares)})
