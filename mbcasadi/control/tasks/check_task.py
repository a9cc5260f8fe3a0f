"""A test of a task: whether Jacobian and bias are those of its error.

A task of your own is trusted by the controllers. Here its error is differentiated along motions of
the mechanism, by central differences, and compared with what the task says.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.task import Task, own_slices
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_whole
from mbcasadi.system import System

Array = NDArray[np.float64]

STEP = 1e-5
"""Of the differences, s at speeds of one: the third derivative and rounding count alike."""

MOST_ERROR = 1e-6
"""Of a derivative, relative to the largest one of the task's: differences reach 1e-9."""


@dataclass(frozen=True)
class TaskCheck:
    """Largest errors over all states and rows, relative to the largest value of each.

    Attributes:
        hold: error at the reference that holds the pose, in the task's units; zero for tasks of
            velocities, which have no pose, and for those without a reference.
        jacobian: `d(error)/dt = -J v`, or `∂error/∂v = -J` for tasks of velocities.
        bias: `J̇ v`.
    """

    hold: float
    jacobian: float
    bias: float


@checked
def check_task(task: Task, system: System, *, states: int = 5, seed: int = 0) -> TaskCheck:
    """Compare a task's Jacobian and bias with differences of its error, at random states.

    Args:
        task: the task.
        system: the mechanism.
        states: number of states; configurations are near those where constraints hold.
        seed: of the states.

    Raises:
        ProblemError: a derivative differs by more than 1e-6 of the largest one, the error does not
            vanish at `hold_reference`, or it is not finite, and the message names the row; or no
            states, or a negative seed.
    """
    require_whole(1, states=states)
    require_whole(0, seed=seed)
    rows = task.components(system)
    if len(task.units(system)) != len(rows):
        raise ProblemError(f"{task.name}: {len(task.units(system))} units for {len(rows)} rows")
    kit = _Kit(task, system)
    rng = np.random.default_rng(seed)
    found = np.zeros((states, 3, len(rows)))
    for k in range(states):
        pose = system.scales.states[k % len(system.scales.states)][0]
        q = np.array(system.integrate(pose, 0.1 * rng.normal(size=system.nv))).ravel()
        found[k] = kit.errors(q, rng.normal(size=system.nv))
    worst = found.max(axis=0)
    for label, errors in zip(("hold_reference", "Jacobian", "bias"), worst, strict=True):
        row = int(np.argmax(np.nan_to_num(errors, nan=np.inf)))
        if not errors[row] <= MOST_ERROR:
            raise ProblemError(
                f"{task.name}: the {label} of row '{rows[row]}' is off by {errors[row]:.2g}; "
                "expected error = reference - value, its rate -J v, and bias = J̇ v"
            )
    hold, jacobian, bias = (float(errors.max()) for errors in worst)
    return TaskCheck(hold, jacobian, bias)


class _Kit:
    """A task's error, Jacobian and bias as a Function, and their differences."""

    def __init__(self, task: Task, system: System) -> None:
        self.task, self.system = task, system
        self.slots = task.slots(system)
        q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
        ref = ca.SX.sym("ref", sum(slot.size for slot in self.slots))
        parts = ca.vertsplit(ref, np.cumsum([0, *(slot.size for slot in self.slots)]).tolist())
        named = {slot.name: part for slot, part in zip(self.slots, parts, strict=True)}
        r = task.residual(system, q, v, own_slices(task, system, named))
        self.of_velocity = bool(ca.jacobian(r.error, v).nnz())
        outputs = [r.error, r.J, r.c, ca.jacobian(r.error, v)]
        self.function = ca.Function("task", [q, v, ref], [ca.densify(x) for x in outputs])

    def errors(self, q: Array, v: Array) -> Array:
        """Return (3, k): of the reference that holds q, of the Jacobian, of the bias."""
        held = self.task.hold_reference(self.system, q)
        short = [slot.name.removeprefix(f"{self.task.name}.") for slot in self.slots]
        ref = np.concatenate([np.zeros(0), *(np.ravel(held[name]) for name in short)])
        error, J, bias, by_v = (np.array(x) for x in self.function(q, v, ref))
        ahead, behind = (self._at(q, sign * STEP * v, v, ref) for sign in (1, -1))
        error_rate, rate_rate = ((a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True))
        if self.of_velocity:
            off_J = np.abs(by_v + J).max(axis=1) / max(1.0, np.abs(J).max())
            return np.stack([0 * off_J, off_J, _relative(-error_rate, bias.ravel())])
        off_J = _relative(-error_rate, (J @ v).ravel())
        holds = np.abs(error).ravel() * bool(self.slots)
        return np.stack([holds, off_J, _relative(rate_rate, bias.ravel())])

    def _at(self, q: Array, dv: Array, v: Array, ref: Array) -> tuple[Array, Array]:
        """Return the error and `J v` at `q ⊕ dv`."""
        error, J, *_ = (np.array(x) for x in self.function(self.system.integrate(q, dv), v, ref))
        return error.ravel(), (J @ v).ravel()


def _relative(found: Array, expected: Array) -> Array:
    size = max(1.0, float(np.abs(expected).max(initial=0.0)))
    result: Array = np.abs(found - expected) / size
    return result
