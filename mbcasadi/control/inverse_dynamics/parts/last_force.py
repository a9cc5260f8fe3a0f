"""Actuator forces as a task, and what z remembers of the last tick's.

The cost of the forces is, actuator by actuator,

    ½ r (p - p_ref)² + ½ s (p - p_last)² = ½ (r + s) (p - (r p_ref + s p_last) / (r + s))² + const:

a weight on the change is a weight on the force with another reference. z remembers `p_last`; after
a tick of which the force is not known, the first one among them, it counts as `p_ref`.
"""

from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.limits.actuator_limits import LAST_FORCE, PerActuator, last_force
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Outcome, Part
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import real_array
from mbcasadi.system import System
from mbcasadi.system.actuator_model import servo_indices

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class LastForce(Part):
    """The forces of the last tick, remembered, and their share in the reference of the forces.

    Attributes:
        weight, change: (nu,) weights of the forces and of their changes.
    """

    weight: Array
    change: Array

    def bind(self, design: Design) -> Bound:
        """Return the entries of z, and the reference of the whole cost of the forces."""
        has_servos = bool(servo_indices(design.system))

        def forces(now: Instant) -> Instant:
            if not np.any(self.change):
                return now
            last, known = last_force(now)
            before = ca.if_else(known, last, now.p_ref)
            share = ca.DM(self.change / (self.weight + self.change))
            return replace(now, p_ref=now.p_ref + share * (before - now.p_ref))

        def remember(tick: Outcome) -> ca.SX:
            known = tick.measured if has_servos else ca.SX(1)
            force = ca.if_else(tick.solved, tick.p, tick.unlimited.forces(tick.u))
            finite = ca.sum1(ca.fabs(force)) < np.inf
            known = ca.logic_and(finite, ca.logic_or(tick.solved, known))
            return ca.vertcat(ca.if_else(known, force, 0), known)

        names = [f"force.{name}" for name in design.system.actuator_names]
        return Bound(LAST_FORCE, memory=(*names, "force.known"), forces=forces, remember=remember)


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
