"""Functions that a controller carries for reports, at the ticks of a recording; planned states."""

from collections.abc import Mapping

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, ReportedLimits
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import KNOWN_INPUTS, Recording
from mbcasadi.validation.closed_loop.columns import dof_units
from mbcasadi.validation.metrics.comparison import evaluate_rows

Array = NDArray[np.float64]

PREDICTION_INPUTS = ("u", "z_next")
"""Inputs that a prediction may have beside the controller's."""

LIMIT_INPUTS = ("u", "u_last")
"""Inputs that a bounded value may have beside the controller's."""

RECORDED_INPUTS = ("q", "v", "act", "ref", "tuning", "p", "mask", "z", "u")
"""Inputs whose values are columns of a recording with the same name."""

CHUNK = 500
"""Points of one call: inputs may be references over a horizon, thousands of numbers each."""


def require_reportable(controller: Controller) -> None:
    """Raise unless prediction and limits of a controller can be evaluated.

    Raises:
        ProblemError: an input that no recording has, or outputs and names that do not fit.
    """
    if controller.prediction is not None:
        _require_inputs(controller, "prediction", controller.prediction, PREDICTION_INPUTS)
        _require_plan(controller, controller.prediction)
    if controller.limits is not None:
        _require_inputs(controller, "limits", controller.limits.value, LIMIT_INPUTS)
        _require_bounds(controller, controller.limits)


def _require_inputs(
    controller: Controller, role: str, function: ca.Function, more: tuple[str, ...]
) -> None:
    known = (*KNOWN_INPUTS, *more)
    unknown = [name for name in function.name_in() if name not in known]
    if unknown or not function.n_in():
        raise ProblemError(
            f"controller {controller.name!r}: {role} has the inputs {unknown}; a recording "
            f"provides {', '.join(known)} only"
        )


def _require_plan(controller: Controller, prediction: ca.Function) -> None:
    names, nu = prediction.name_out(), controller.u_min.size
    fits = sorted(names) == ["u", "x"]
    if fits:
        x, u = prediction.size_out("x"), prediction.size_out("u")
        fits = x == (len(controller.prediction_rows), u[1] + 1) and u[0] == nu and u[1] > 0
    if not fits:
        shapes = {name: prediction.size_out(name) for name in names}
        raise ProblemError(
            f"controller {controller.name!r}: the prediction gives {shapes}; expected x "
            f"({len(controller.prediction_rows)}, N + 1), a name for each row, and u ({nu}, N)"
        )


def _require_bounds(controller: Controller, limits: ReportedLimits) -> None:
    value, count = limits.value, len(limits.signal.components)
    shapes = {name: value.size_out(name) for name in value.name_out()}
    sizes = [limits.lower.size, limits.upper.size, len(limits.soft), len(limits.signal.units)]
    if shapes != {"value": (count, 1)} or sizes != [count] * len(sizes):
        raise ProblemError(
            f"controller {controller.name!r}: limits give {shapes}, with lower, upper, soft and "
            f"units of sizes {sizes}; expected value ({count}, 1) and {count} of each, as there "
            "are names"
        )


def evaluate_at_ticks(
    function: ca.Function, recording: Recording, ticks: NDArray[np.int64]
) -> dict[str, Array]:
    """Return name → (n, columns, rows) of each output at n ticks.

    Inputs are those of the controller and its outputs `u`, `z_next`; `z_next` is the z of the
    tick that follows, which the last tick does not have.

    Args:
        function: with inputs that a recording has.
        recording: a closed loop.
        ticks: (n,) indices.
    """
    inputs = {n: getattr(recording, n)[ticks] for n in RECORDED_INPUTS}
    inputs["t"], inputs["f_c"] = recording.t[ticks, None], recording.equality_force[ticks]
    if "f_measured" in function.name_in():
        inputs["f_measured"] = recording.f_measured[ticks]
    if "z_next" in function.name_in():
        inputs["z_next"] = recording.z[ticks + 1]
    return evaluate_points(function, inputs)


def evaluate_points(function: ca.Function, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return name → (n, columns, rows) of each output at n points, inputs (n, size) by name."""
    rows = [inputs[name] for name in function.name_in()]
    n = len(next(iter(inputs.values())))
    chunks = [
        evaluate_rows(function, *(values[first : first + CHUNK] for values in rows))
        for first in range(0, n, CHUNK)
    ]
    return {
        name: np.concatenate(flat).reshape(n, function.size2_out(name), function.size1_out(name))
        for name, flat in zip(function.name_out(), zip(*chunks, strict=True), strict=True)
    }


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
