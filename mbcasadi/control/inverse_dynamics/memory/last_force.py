"""Actuator forces as a task: weights, references, and the forces of the last tick.

The cost of the forces is, actuator by actuator,

    ½ r (p - p_ref)² + ½ s (p - p_last)² = ½ (r + s) (p - (r p_ref + s p_last) / (r + s))² + const:

a weight on the change is a weight on the force with another reference. z remembers `p_last`; after
a tick of which the force is not known, the first one among them, it counts as `p_ref`.
"""

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.limits.actuator_limits import LastForce, PerActuator
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import real_array
from mbcasadi.system import System
from mbcasadi.system.actuator_model import ActuatorModel

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup

Array = NDArray[np.float64]


def torque_weights(
    system: System, weight: PerActuator, rate_weight: PerActuator
) -> tuple[Array, Array]:
    """Return the weights (nu,) of actuator forces and of their changes.

    Raises:
        ProblemError: too many numbers, or one that is not finite or not positive; for changes
            zero is allowed.
    """
    given = {"torque_weight": weight, "torque_rate_weight": rate_weight}
    values = []
    for label, value in given.items():
        array = real_array(label, value)
        fits = array.shape in {(), (system.nu,)} and bool(np.all(np.isfinite(array)))
        if not fits or np.any(array < 0) or (label == "torque_weight" and np.any(array == 0)):
            least = "positive" if label == "torque_weight" else "not negative"
            raise ProblemError(
                f"{label} = {value}; expected a finite number that is {least}, or one for each of "
                f"{', '.join(system.actuator_names)}"
            )
        values.append(np.broadcast_to(array, (system.nu,)).astype(float))
    return values[0], values[1]


def last_force(setup: "Setup", memory: ca.SX) -> LastForce:
    """Return the forces of the last tick from the last part of z; none where it has none."""
    nu = setup.system.nu
    if not setup.remembers_force:
        return LastForce(ca.SX(nu, 1), ca.SX(0))
    own = memory[setup.memory_places["forces"], 0]
    return LastForce(own[:nu, 0], own[nu] > 0)


def force_reference(setup: "Setup", reference: ca.SX, last: LastForce) -> ca.SX:
    """Return the reference (nu,) of the whole cost of the forces.

    Args:
        setup: the options.
        reference: (nu,) that of the forces themselves.
        last: forces of the last tick.
    """
    weight, change = setup.torque_weights
    if not np.any(change):
        return reference
    before = ca.if_else(last.known, last.force, reference)
    share = ca.DM(change / (weight + change))
    return reference + share * (before - reference)


def next_force(solved: ca.SX, p: ca.SX, actuators: ActuatorModel, u: ca.SX, known: ca.SX) -> ca.SX:
    """Return what z remembers of this tick (nu + 1,).

    Args:
        solved: whether it has a solution.
        p: (nu,) forces of the solution.
        actuators: at the measured state.
        u: (nu,) control that the tick gives.
        known: whether the forces of a control are known without a solution.
    """
    force = ca.if_else(solved, p, actuators.forces(u))
    finite = ca.sum1(ca.fabs(force)) < np.inf
    known = ca.logic_and(finite, ca.logic_or(solved, known))
    return ca.vertcat(ca.if_else(known, force, 0), known)
