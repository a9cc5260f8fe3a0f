"""How the controls used their range, and how long the generated C took for them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import TickTimes
from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric, named

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
    values = {
        "torque.excess": None if "limits" in controller.unreported else excess,
        "torque.saturated": saturation(controller, recording.u).any(axis=1).mean(),
        "torque.max": np.abs(recording.u).max(initial=0.0),
    }
    yield from named(values)


def time_metrics(times: TickTimes | None, period: float) -> Iterator[Metric]:
    """Yield the time of one tick of the generated C, and its share of the period in s."""
    if times is None:
        return
    phases = {"time.preparation": times.preparation, "time.feedback": times.feedback}
    values = {
        "time.median": times.median,
        "time.p99": times.p99,
        "time.max": times.max,
        **{name: None if phase is None else phase.p99 for name, phase in phases.items()},
        "time.share": times.p99 / period,
        "time.late": (times.seconds > period).mean(),
    }
    yield from named(values)
