"""Rows in which planned states and those of the plant are compared."""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.recorded_signals import evaluated

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]

LAST_CONTROL = "u_last."
"""Before the names of rows that hold the control of the period before."""


class StateRows:
    """Steps of q, joint by joint (rotation vectors, rad), then v, then what the law adds.

    The plant has q and v. A row of the law's own, such as a filter's state, is what the law takes
    it to be at that tick: the first column of its plan. Rows `u_last.` repeat the controls, which
    are compared themselves, and are left out.
    """

    def __init__(self, controller: Controller, recording: Recording, plant: Plant) -> None:
        given, nq, nv = controller.prediction_rows, plant.nq, plant.nv
        self.controller, self.recording, self.model = controller, recording, plant.model
        whole = all(name.startswith("q.") for name in given[:nq]) and len(given) >= nq + nv
        whole = whole and all(name.startswith("v.") for name in given[nq : nq + nv])
        self.nq, self.nv = (nq, nv) if whole else (0, 0)
        rates = given[self.nq : self.nq + self.nv]
        places = tuple(f"q.{name.removeprefix('v.')}" for name in rates)
        self.own = [
            i for i in range(self.nq + self.nv, len(given)) if not given[i].startswith(LAST_CONTROL)
        ]
        self.names = (*places, *rates, *(given[i] for i in self.own))
        units = _units(plant.model) if whole else ()
        self.units = (*units, *(f"{unit}/s" for unit in units), *("" for _ in self.own))
        self._seen: dict[int, Array] = {}

    @property
    def known(self) -> int:
        """Number of ticks at which the state is known; the last tick has no plan of its own."""
        ticks = self.recording.ticks
        return min(ticks, ticks - 1 + self.controller.delay) if self.own else ticks

    def planned(self, x: Array) -> Array:
        """Return (..., rows of q, v and the law's own) of planned states (..., nx)."""
        return np.asarray(x[..., [*range(self.nq + self.nv), *self.own]])

    def actual(self, ticks: Ticks) -> Array:
        """Return the same (n, ...) of these ticks; rows that are the law's own as it took them."""
        q, v = self.recording.q[ticks, : self.nq], self.recording.v[ticks, : self.nv]
        if not self.own:
            return np.hstack([q, v])
        now = np.clip(ticks - self.controller.delay, 0, self.recording.ticks - 2)
        return np.hstack([q, v, self._taken(now)])

    def _taken(self, ticks: Ticks) -> Array:
        """Return the law's own rows; a plan may take as long as a tick of the law in Python."""
        new = np.array(sorted(set(ticks.tolist()) - self._seen.keys()), dtype=np.int64)
        function = self.controller.prediction
        if new.size and function is not None:
            found = evaluated(function, self.recording, new)["x"][:, 0, self.own]
            self._seen |= dict(zip(new.tolist(), found, strict=True))
        return np.array([self._seen[tick] for tick in ticks.tolist()]).reshape(len(ticks), -1)

    def step(self, before: Array, after: Array) -> Array:
        """Return (n, rows) the way from states to others."""
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
