"""How well the tasks of a controller were tracked."""

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
from mbcasadi.validation.metrics.control_metrics import saturation
from mbcasadi.validation.metrics.metric import Metric
from mbcasadi.validation.metrics.unit_scales import unit_scale

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
    rms, peak = float(np.max([r.rms for r in rows])), float(np.max([r.peak for r in rows]))
    yield Metric(f"tracking.rms{suffix}", rms, unit, "worst RMS error")
    yield Metric(f"tracking.max{suffix}", peak, unit, "largest error")
    moving = [row for row in rows if row.moves]
    if not moving:
        return
    for name, values, meaning in (
        ("rms_share", [r.share(r.rms) for r in moving], "worst RMS, of the target's amplitude"),
        ("max_share", [r.share(r.peak) for r in moving], "largest error, of that amplitude"),
    ):
        yield Metric(f"tracking.{name}{suffix}", float(np.max(values)), "", meaning)
    free = [row.share(row.rms_free) for row in moving]
    if not np.isnan(free).all():
        meaning = "worst RMS, of the amplitude, while no motor is at its limit"
        yield Metric(f"tracking.rms_share_free{suffix}", float(np.nanmax(free)), "", meaning)
