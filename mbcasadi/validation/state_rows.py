"""Rows in which planned states and those of the plant are compared."""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.recorded import evaluated
from mbcasadi.validation.recording import Recording

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]


class StateRows:
    """Steps of q, joint by joint (rotation vectors, rad), then v, then what the law adds.

    The plant has q and v. A row of the law's own, such as a filter's state or the last control, is
    what the law takes it to be at that tick: the first column of its plan.
    """

    def __init__(self, controller: Controller, recording: Recording, plant: Plant) -> None:
        given, nq, nv = controller.prediction_rows, plant.nq, plant.nv
        self.controller, self.recording, self.model = controller, recording, plant.model
        whole = all(name.startswith("q.") for name in given[:nq]) and len(given) >= nq + nv
        whole = whole and all(name.startswith("v.") for name in given[nq : nq + nv])
        self.nq, self.nv = (nq, nv) if whole else (0, 0)
        rates = given[self.nq : self.nq + self.nv]
        places = tuple(f"q.{name.removeprefix('v.')}" for name in rates)
        own = given[self.nq + self.nv :]
        self.names = (*places, *rates, *own)
        units = _units(plant.model) if whole else ()
        self.units = (*units, *(f"{unit}/s" for unit in units), *("" for _ in own))
        self.own = bool(own)

    @property
    def known(self) -> int:
        """Number of ticks at which the state is known; the last tick has no plan of its own."""
        ticks = self.recording.ticks
        return min(ticks, ticks - 1 + self.controller.delay) if self.own else ticks

    def actual(self, ticks: Ticks) -> Array:
        """Return x (n, nx) of these ticks; rows that are the law's own are as it took them."""
        q, v = self.recording.q[ticks, : self.nq], self.recording.v[ticks, : self.nv]
        if not self.own:
            return np.hstack([q, v])
        function = self.controller.prediction
        assert function is not None
        now = np.minimum(ticks - self.controller.delay, self.recording.ticks - 2)
        own = evaluated(function, self.recording, np.maximum(now, 0))["x"][:, 0]
        return np.hstack([q, v, own[:, self.nq + self.nv :]])

    def step(self, before: Array, after: Array) -> Array:
        """Return (n, rows) the way from states (n, nx) to others."""
        nq, found = self.nq, np.zeros((len(after), self.nv))
        for row, q0, q1 in zip(found, before[:, :nq], after[:, :nq], strict=True):
            if self.nv:
                mujoco.mj_differentiatePos(self.model, row, 1.0, q0.copy(), q1.copy())
        return np.hstack([found, after[:, nq:] - before[:, nq:]])


def _units(model: mujoco.MjModel) -> tuple[str, ...]:
    """Return m or rad for each degree of freedom."""
    Kind = mujoco.mjtJoint
    of = {Kind.mjJNT_FREE: ("m",) * 3 + ("rad",) * 3, Kind.mjJNT_BALL: ("rad",) * 3}
    of |= {Kind.mjJNT_SLIDE: ("m",), Kind.mjJNT_HINGE: ("rad",)}
    return tuple(unit for kind in model.jnt_type for unit in of[Kind(int(kind))])
