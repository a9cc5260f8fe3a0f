"""What each actuator carries while a robot stands on some contacts, at rest.

The base rows of `h = B p + Aᵀ lam + Jᵀ f` give the forces f on the contacts, of all that do the
least ones; the other rows then give the forces p of the actuators, and those of loops.
"""

from collections.abc import Sequence
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.limits.actuator_ranges import joint_sums
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.system import GeometryContact, System
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import require_ranges

Array = NDArray[np.float64]

PERIOD = 1.0
"""S, in which activations reach their controls: at rest they have."""


class StandingLoad:
    """Loads of actuators at rest, and their ranges.

    Args:
        system: with a floating base.
        contacts: that carry it.
    """

    def __init__(self, system: System, contacts: Sequence[GeometryContact]) -> None:
        self.system, self.contacts = system, tuple(contacts)

    @cached_property
    def _terms(self) -> ca.Function:
        """(q) → (h, J, B, A, lower, upper) at rest."""
        system = self.system
        q, still = ca.SX.sym("q", system.nq), ca.SX.zeros(system.nv)
        ranges = require_ranges(system, None, None)
        actuators, _ = joint_sums(system, actuator_model(system, ranges, PERIOD, q, still, None))
        h = system.bias_force(q, still) - system.passive_force(q, still)
        J = ca.vertcat(*(each.jacobian(q) for each in self.contacts))
        A = system.constraint_jacobian(q) if system.nc else ca.SX(0, system.nv)
        ends = (actuators.lower, actuators.upper)
        return ca.Function("terms", [q], [h - actuators.rest, J, actuators.moment, A, *ends])

    def excess(self, q: Array, share: float = 1.0) -> Array:
        """Return by how much each load is beyond a share of its range, of its strength.

        Args:
            q: (nq,) pose.
            share: of the range.

        Returns:
            (nu,) zero where it is within.
        """
        h, J, B, A, low, high = (np.array(each, dtype=float) for each in self._terms(q))
        low, high = low.ravel(), high.ravel()
        f = np.linalg.lstsq(J[:, :6].T, h[:6], rcond=None)[0]
        p = np.linalg.lstsq(np.hstack([B, A.T]), h - J.T @ f, rcond=None)[0][: len(low), 0]
        strength = np.maximum(np.abs(low), np.abs(high))
        beyond = np.maximum(0.0, np.maximum(p - share * high, share * low - p))
        return np.where(strength < UNBOUNDED, beyond / np.maximum(strength, 1.0 / UNBOUNDED), 0.0)
