"""Numbers that say how a closed loop went."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.errors import UnknownNameError
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.comparison import Comparison

Array = NDArray[np.float64]

# A control within this share of its range from a limit is at the limit.
AT_LIMIT = 1e-6
# Targets that move less than this (m or rad) have no amplitude.
SMALLEST_AMPLITUDE = 1e-6


@dataclass(frozen=True)
class Metric:
    """One number of a run.

    Attributes:
        name: `group.name`, what a criterion refers to.
        value: in SI units, or a share.
        unit: "" for a share.
        meaning: one line.
    """

    name: str
    value: float
    unit: str
    meaning: str


@dataclass(frozen=True)
class Tracked:
    """How one component of the tasks was followed.

    Attributes:
        name, unit: of the component.
        rms, peak: of the error.
        amplitude: half of the target's range; 0 where it stands still.
        rms_free: RMS over the ticks without a saturated motor, NaN if there are none.
    """

    name: str
    unit: str
    rms: float
    peak: float
    amplitude: float
    rms_free: float

    def share(self, value: float) -> float:
        """Return `value` over the amplitude, NaN where the target stands still."""
        return value / self.amplitude if self.amplitude > SMALLEST_AMPLITUDE else float("nan")


def saturated(controller: Controller, u: Array) -> NDArray[np.bool_]:
    """Return (nt, nu): the control is at one of its limits."""
    low, high = controller.u_min, controller.u_max
    band = AT_LIMIT * np.where(np.isfinite(high - low), high - low, 0.0)
    return np.asarray((u <= low + band) | (u >= high - band))


def tracked(controller: Controller, recording: Recording, settle: float = 0.0) -> list[Tracked]:
    """Return the tracking of each component, from `settle` seconds on."""
    if not {"target", "error"} <= recording.monitor.keys():
        return []
    late = recording.t >= settle
    free = late & ~saturated(controller, recording.u).any(axis=1)
    target, error = recording.monitor["target"], recording.monitor["error"]
    names, units = _components(controller, "error", error.shape[1])
    result = []
    for i in range(error.shape[1]):
        wanted, missed = target[late, i], error[late, i]
        result.append(
            Tracked(
                name=names[i],
                unit=units[i],
                rms=_rms(missed),
                peak=float(np.abs(missed).max(initial=0.0)),
                amplitude=float(np.ptp(wanted)) / 2 if wanted.size else 0.0,
                rms_free=_rms(error[free, i]),
            )
        )
    return result


def _components(
    controller: Controller, output: str, size: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    for signal in controller.monitors:
        if signal.name == output and len(signal.components) == size:
            return signal.components, signal.units
    return tuple(f"{output}[{i}]" for i in range(size)), ("",) * size


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")


def tracking_metrics(rows: list[Tracked], scopes: Sequence[str] = ()) -> Iterator[Metric]:
    """Yield the worst tracking over all components, then over those of each scope.

    A scope is the name of a component, or what stands before a dot in it: the task "trunk" has
    the components "trunk.x", "trunk.ry". Its metrics are named `tracking.rms:trunk`.

    Raises:
        UnknownNameError: a scope matches no component; the message lists them.
    """
    if not rows:
        return
    yield from _worst(rows, "")
    for scope in scopes:
        mine = [row for row in rows if row.name == scope or row.name.startswith(f"{scope}.")]
        if not mine:
            listed = ", ".join(row.name for row in rows)
            raise UnknownNameError(f"unknown component {scope!r}; the tasks have: {listed}")
        yield from _worst(mine, f":{scope}")


def _worst(rows: list[Tracked], suffix: str) -> Iterator[Metric]:
    shares = [row.share(row.rms) for row in rows]
    free = [row.share(row.rms_free) for row in rows]
    peaks = [row.share(row.peak) for row in rows]
    unit = " or ".join(sorted({row.unit for row in rows if row.unit}))
    yield Metric(f"tracking.rms{suffix}", max(r.rms for r in rows), unit, "worst RMS error")
    yield Metric(f"tracking.max{suffix}", max(r.peak for r in rows), unit, "largest error")
    for name, values, words in (
        ("rms_share", shares, "worst RMS, of the target's amplitude"),
        ("max_share", peaks, "largest error, of the target's amplitude"),
        ("rms_share_free", free, "worst RMS, of the amplitude, while no motor is at its limit"),
    ):
        if not np.isnan(values).all():
            yield Metric(f"tracking.{name}{suffix}", float(np.nanmax(values)), "", words)


def torque_metrics(controller: Controller, recording: Recording) -> Iterator[Metric]:
    """Yield how the controls used their range."""
    beyond = np.maximum(controller.u_min - recording.u, recording.u - controller.u_max)
    excess = max(0.0, float(np.nan_to_num(beyond, nan=np.inf).max(initial=0.0)))
    share = float(saturated(controller, recording.u).any(axis=1).mean())
    yield Metric("torque.excess", excess, "unit of u", "most that a control left its limits")
    yield Metric("torque.saturated", share, "", "share of ticks with a control at its limit")
    yield Metric("torque.max", float(np.abs(recording.u).max(initial=0.0)), "unit of u", "largest")


def closure_metrics(recording: Recording, comparison: Comparison | None) -> Iterator[Metric]:
    """Yield how well loops stay closed; nothing where there are none."""
    if not recording.equality_force.any():
        return
    yield Metric("closure.plant", float(recording.closure.max()), "m", "worst gap in MuJoCo")
    yield Metric("closure.rows", float(recording.residual.max()), "m or rad", "worst row in MuJoCo")
    if comparison is None:
        return
    drift = float(comparison.drift.max())
    yield Metric("closure.model", drift, "m or rad", "worst |phi| of our equations, same states")
    for name, error in (("force", comparison.force_error), ("a", comparison.acceleration_error)):
        what = "constraint force" if name == "force" else "acceleration"
        words = f"relative difference of our {what} and MuJoCo's"
        yield Metric(f"agreement.{name}_median", float(np.median(error)), "", f"median {words}")
        yield Metric(f"agreement.{name}_max", float(error.max()), "", f"largest {words}")


def time_metrics(times: TickTimes | None, period: float) -> Iterator[Metric]:
    """Yield the time of one tick of the generated C, and how much of its period it takes."""
    if times is None:
        return
    yield Metric("time.median", times.median, "s", "time of one tick in C, median")
    yield Metric("time.p99", times.p99, "s", "time of one tick in C, 99th percentile")
    yield Metric("time.max", times.max, "s", "time of one tick in C, longest")
    for name, part in (("preparation", times.preparation), ("feedback", times.feedback)):
        if part is not None:
            yield Metric(f"time.{name}", part.p99, "s", f"time of the {name}, 99th percentile")
    share = times.p99 / period
    yield Metric("time.share", share, "", "time of one tick, 99th percentile, over the period")
    late = float((times.seconds > period).mean())
    yield Metric("time.late", late, "", "share of ticks that took longer than the period")
