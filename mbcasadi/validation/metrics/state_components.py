"""Components in which planned states and those of the plant are compared."""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.recorded_signals import evaluate_at_ticks

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]

LAST_CONTROL = "u_last."
"""Prefix of the rows that hold the control of the period before."""


class StateComponents:
    """Steps of q, joint by joint (rotation vectors, rad), then v, then rows of the law's own.

    The plant has q and v. The value of another row, such as a filter's state, is the one that the
    law starts from at that tick: the first column of its plan. Rows `u_last.` repeat the controls,
    which are compared themselves, and are omitted.

    Attributes:
        names, units: of the components.
        own_rows: indices of the rows of the law's own.
    """

    def __init__(self, controller: Controller, recording: Recording, plant: Plant) -> None:
        rows, nq, nv = controller.prediction_rows, plant.nq, plant.nv
        self._controller, self._recording, self._model = controller, recording, plant.model
        has_q = all(name.startswith("q.") for name in rows[:nq]) and len(rows) >= nq + nv
        has_state = has_q and all(name.startswith("v.") for name in rows[nq : nq + nv])
        self._nq, self._nv = (nq, nv) if has_state else (0, 0)
        velocities = rows[self._nq : self._nq + self._nv]
        positions = tuple(f"q.{name.removeprefix('v.')}" for name in velocities)
        first = self._nq + self._nv
        self.own_rows = [i for i in range(first, len(rows)) if not rows[i].startswith(LAST_CONTROL)]
        self.names = (*positions, *velocities, *(rows[i] for i in self.own_rows))
        units = dof_units(plant.model) if has_state else ()
        self.units = (*units, *(f"{unit}/s" for unit in units), *("" for _ in self.own_rows))
        self._own_values: dict[int, Array] = {}

    @property
    def known_ticks(self) -> int:
        """Number of ticks at which the state is known; the last tick has no plan of its own."""
        ticks = self._recording.ticks
        return min(ticks, ticks - 1 + self._controller.delay) if self.own_rows else ticks

    def select(self, x: Array) -> Array:
        """Return (..., rows of q, v and the law's own) of planned states (..., nx)."""
        return np.asarray(x[..., [*range(self._nq + self._nv), *self.own_rows]])

    def states_at(self, ticks: Ticks) -> Array:
        """Return the same rows (n, ...) of the plant at n ticks."""
        q, v = self._recording.q[ticks, : self._nq], self._recording.v[ticks, : self._nv]
        if not self.own_rows:
            return np.hstack([q, v])
        now = np.clip(ticks - self._controller.delay, 0, self._recording.ticks - 2)
        return np.hstack([q, v, self._own_states(now)])

    def _own_states(self, ticks: Ticks) -> Array:
        """Return the law's own rows; each plan is evaluated once, as it may be slow in Python."""
        new = np.array(sorted(set(ticks.tolist()) - self._own_values.keys()), dtype=np.int64)
        function = self._controller.prediction
        if new.size and function is not None:
            values = evaluate_at_ticks(function, self._recording, new)["x"][:, 0, self.own_rows]
            self._own_values |= dict(zip(new.tolist(), values, strict=True))
        return np.array([self._own_values[k] for k in ticks.tolist()]).reshape(len(ticks), -1)

    def difference(self, x0: Array, x1: Array) -> Array:
        """Return (n, components) `x1 ⊖ x0` of states (n, rows)."""
        nq, dq = self._nq, np.zeros((len(x1), self._nv))
        for row, q0, q1 in zip(dq, x0[:, :nq], x1[:, :nq], strict=True):
            if self._nv:
                mujoco.mj_differentiatePos(self._model, row, 1.0, q0.copy(), q1.copy())
        return np.hstack([dq, x1[:, nq:] - x0[:, nq:]])


def dof_units(model: mujoco.MjModel) -> tuple[str, ...]:
    """Return m or rad for each degree of freedom."""
    Kind = mujoco.mjtJoint
    units = {
        Kind.mjJNT_FREE: ("m",) * 3 + ("rad",) * 3,
        Kind.mjJNT_BALL: ("rad",) * 3,
        Kind.mjJNT_SLIDE: ("m",),
        Kind.mjJNT_HINGE: ("rad",),
    }
    return tuple(unit for kind in model.jnt_type for unit in units[Kind(int(kind))])
