"""The mechanism at one state, as control laws need it."""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from mbcasadi.control.laws.law import At
from mbcasadi.linalg import CompleteFactor, complement, complete_factor
from mbcasadi.system import System, evaluate

RANK_TOL = 1e-6
"""Rows of A that are weaker than this, relative to their length, are dropped. A plant leaves its
loops open by small gaps, and rows that repeat others on the manifold then do so only nearly."""


@dataclass(frozen=True)
class Mechanism:
    """`M a + h = B u + f_0 + Aᵀ lam`, `A a + c = 0`; passive forces are inside h.

    Attributes:
        system: the mechanism.
        at: the state; rows that are off are zero in A and c.
        rank_tol: relative length below which a row of A is dropped.
    """

    system: System
    at: At
    rank_tol: float = RANK_TOL

    @cached_property
    def M(self) -> ca.SX:
        """(nv, nv) inertia."""
        return self.system.mass_matrix(self.at.q)

    @cached_property
    def h(self) -> ca.SX:
        """(nv, 1) bias force minus passive force."""
        q, v = self.at.q, self.at.v
        return self.system.bias_force(q, v) - self.system.passive_force(q, v)

    @cached_property
    def B(self) -> ca.SX:
        """(nv, nu) actuation."""
        return self.system.actuation(self.at.q)

    @cached_property
    def f_0(self) -> ca.SX:
        """(nv, 1) actuator force at u = 0."""
        return self.system.actuator_bias(self.at.q, self.at.v)

    @cached_property
    def A(self) -> ca.SX:
        """(nc, nv) constraint Jacobian."""
        if not self.system.nc:
            return ca.SX(0, self.system.nv)
        A = evaluate(self.system.loop_jacobian, {"q": self.at.q, "v": self.at.v})
        return ca.SX(ca.diag(self.at.rows) @ A) if self.system.mask is not None else ca.SX(A)

    @cached_property
    def c(self) -> ca.SX:
        """(nc, 1) constraint bias."""
        if not self.system.nc:
            return ca.SX(0, 1)
        return self.at.rows * self.system.loop_bias(self.at.q, self.at.v)

    @cached_property
    def rows(self) -> CompleteFactor[ca.SX]:
        """Complete orthogonal factors of A."""
        return complete_factor(self.A, rank_tol=self.rank_tol)

    @cached_property
    def P(self) -> ca.SX:
        """(nv, nv) projector on null(A)."""
        return complement(self.rows.basis.V)

    @cached_property
    def a_across(self) -> ca.SX:
        """(nv, 1) `-A⁺ c`, the acceleration that the constraints ask for."""
        return -self.rows.pinv_times(self.c)
