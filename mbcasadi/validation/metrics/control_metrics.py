"""How the controls used their range, and how long the generated C took for them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric

Array = NDArray[np.float64]

# A control within this share of its range from a limit is at the limit.
AT_LIMIT = 1e-6


def control_names(controller: Controller) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names and units of the controls; numbers where the controller names none."""
    signal = next((s for s in controller.outputs if s.name == "u"), None)
    count = controller.u_min.size
    if signal is None or len(signal.components) != count:
        return tuple(map(str, range(count))), ("",) * count
    return signal.components, signal.units


def saturation(controller: Controller, u: Array) -> NDArray[np.bool_]:
    """Return (nt, nu): whether the control is at one of its limits."""
    low, high = controller.u_min, controller.u_max
    band = AT_LIMIT * np.where(np.isfinite(high - low), high - low, 0.0)
    return np.asarray((u <= low + band) | (u >= high - band))


def torque_metrics(controller: Controller, recording: Recording) -> Iterator[Metric]:
    """Yield excess over the limits, share of saturated ticks, and the largest control.

    A controller of others knows no limits: what it commands beyond those of the actuators MuJoCo
    clips, and counts as saturated.
    """
    beyond = np.maximum(controller.u_min - recording.u, recording.u - controller.u_max)
    excess = max(0.0, float(np.nan_to_num(beyond, nan=np.inf).max(initial=0.0)))
    share = float(saturation(controller, recording.u).any(axis=1).mean())
    if "limits" not in controller.unreported:
        meaning = "largest excess of a control over a limit"
        yield Metric("torque.excess", excess, "unit of u", meaning)
    yield Metric("torque.saturated", share, "", "share of ticks with a control at its limit")
    yield Metric("torque.max", float(np.abs(recording.u).max(initial=0.0)), "unit of u", "largest")


def time_metrics(times: TickTimes | None, period: float) -> Iterator[Metric]:
    """Yield the time of one tick of the generated C, and its share of the period in s."""
    if times is None:
        return
    yield Metric("time.median", times.median, "s", "time of one tick in C, median")
    yield Metric("time.p99", times.p99, "s", "time of one tick in C, 99th percentile")
    yield Metric("time.max", times.max, "s", "time of one tick in C, longest")
    for name, phase in (("preparation", times.preparation), ("feedback", times.feedback)):
        if phase is not None:
            yield Metric(f"time.{name}", phase.p99, "s", f"time of the {name}, 99th percentile")
    share = times.p99 / period
    yield Metric("time.share", share, "", "time of one tick, 99th percentile, over the period")
    late = float((times.seconds > period).mean())
    yield Metric("time.late", late, "", "share of ticks that took longer than the period")
