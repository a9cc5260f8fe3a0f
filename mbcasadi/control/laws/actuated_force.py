"""The least force in the actuators' range that causes the desired motion.

A desired force f has a part `P f` that moves the mechanism and a part `(I - P) f` that only
changes the constraint force. Actuators give forces in range(B). With an orthonormal basis X of
range(B), `f = X y`:

    motion first:  y_0 = (P X)⁺ P f
    force then:    y = y_0 + (I - (P X)⁺ P X) Xᵀ f

y_0 is the force of least norm in range(B) that moves the mechanism as f does. That is
`(I + H) P f` of [A05, eq. 57-62]: both are the unique least element of the same set, because X
preserves norms. The second term comes as near to `(I - P) f` as the motion permits. Where only
some multipliers are controlled, it is the least one that gives them.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from mbcasadi.control.law_interface.law import Array
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism, attainable
from mbcasadi.linalg import complete_factor

EXACT = 1e-14
"""Share of the largest entry below which an entry of a constant basis is rounding."""


@dataclass(frozen=True)
class Actuators:
    """Range of the actuation, in the mechanism's weighted coordinates.

    Attributes:
        X: (nv, k) orthonormal columns, or zero, that span range(B).
        B_pinv: (nu, nv) `B⁺`.
        f_0: (nv, 1) actuator force at u = 0.
    """

    X: ca.SX
    B_pinv: ca.SX
    f_0: ca.SX

    def control(self, f: ca.SX) -> ca.SX:
        """Return the least u with `B u + f_0 = f`, nearest where there is none."""
        return self.B_pinv @ (f - self.f_0)


@dataclass(frozen=True)
class PrescribedForce:
    """The force that the actuators give for a desired one.

    Attributes:
        f: (nv, 1) force of the actuators, weighted.
        u: (nu, 1) control.
        f_c: (nv, 1) resulting constraint force, weighted.
        motion: (nv, 1) part of the moving force that is missing, weighted.
        force: (k, 1) part of the desired constraint force or multipliers that is missing.
        attainable: one where nothing is missing.
    """

    f: ca.SX
    u: ca.SX
    f_c: ca.SX
    motion: ca.SX
    force: ca.SX
    attainable: ca.SX


@dataclass(frozen=True)
class Allocation:
    """The force of a motion, `needed = M a + h`, as a force of the actuators.

    The constraints carry the remainder: `f_c = (I - P) (needed - f)`.

    Attributes:
        mechanism: weighted or not; "least" and "nearest" are in its norm.
        needed: (nv, 1).
    """

    mechanism: Mechanism
    needed: ca.SX

    @cached_property
    def actuators(self) -> Actuators:
        """The actuators' range at this state."""
        return actuators(self.mechanism)

    def least(self) -> PrescribedForce:
        """Return the least force that causes the motion  [A05, eq. 62]."""
        return self._prescribe(self._moving_coordinates[0], ca.SX(0, 1), ca.SX(0, 1))

    def with_force(self, f_c: ca.SX) -> PrescribedForce:
        """Return the force that causes the motion, with a constraint force nearest to f_c (nv, 1).

        Args:
            f_c: in range(Aᵀ), weighted.
        """
        y, free = self._moving_coordinates
        f = self.actuators.X @ (y + free @ (self.actuators.X.T @ (self.needed - f_c)))
        missing = f_c - self._constraint_force(f)
        return self._prescribe(self.actuators.X.T @ f, missing, f_c)

    def with_multipliers(self, T: ca.SX, lam: ca.SX) -> PrescribedForce:
        """Return the least force that causes the motion, with `T f_c` nearest to lam.

        Args:
            T: (k, nv) rows of `(A⁺)ᵀ`, weighted.
            lam: (k, 1).
        """
        X = self.actuators.X
        y, free = self._moving_coordinates
        error = T @ (self.needed - X @ y) - lam
        reach = T @ X @ free
        scale = ca.densify(ca.sqrt(ca.sum2(T**2)))
        factor = complete_factor(reach, row_scale=scale, rank_tol=self.mechanism.rank_tol)
        step = factor.pinv_times(error)
        return self._prescribe(y + step, error - reach @ step, lam)

    @cached_property
    def _moving_coordinates(self) -> tuple[ca.SX, ca.SX]:
        """Coordinates of the least moving force, and the projector on those that do not move."""
        P, X = self.mechanism.P, self.actuators.X
        eye = ca.SX.eye(X.shape[1])
        if X.is_constant() and X.shape[1] >= X.shape[0]:  # every force can be had
            return X.T @ (P @ self.needed), eye - X.T @ P @ X
        factor = complete_factor(P @ X, rank_tol=self.mechanism.rank_tol)
        V = factor.basis.V
        return factor.pinv_times(P @ self.needed), eye - V @ V.T

    def _constraint_force(self, f: ca.SX) -> ca.SX:
        remainder = self.needed - f
        return remainder - self.mechanism.P @ remainder

    def _prescribe(self, y: ca.SX, missing: ca.SX, desired: ca.SX) -> PrescribedForce:
        f = self.actuators.X @ y
        motion = self.mechanism.P @ (self.needed - f)
        moving = self.mechanism.P @ self.needed
        is_attainable = ca.logic_and(attainable(motion, moving), attainable(missing, desired))
        return PrescribedForce(
            f, self.actuators.control(f), self._constraint_force(f), motion, missing, is_attainable
        )


def actuators(mechanism: Mechanism) -> Actuators:
    """Return the range of B; constant B is factored when the law is built."""
    B = ca.SX(mechanism.B)
    if not B.is_constant():
        factor = complete_factor(B.T, rank_tol=mechanism.rank_tol)
        B_pinv = factor.pinv_transposed_times(ca.SX.eye(B.shape[0]))
        return Actuators(factor.basis.V, B_pinv, mechanism.f_0)
    matrix = np.array(ca.DM(B), dtype=float)
    X, pinv = _range(matrix, mechanism.rank_tol), np.linalg.pinv(matrix, rcond=mechanism.rank_tol)
    return Actuators(_constant(X), _constant(pinv), mechanism.f_0)


def _range(B: Array, rank_tol: float) -> Array:
    """Return orthonormal columns (nv, k) that span range(B)."""
    gram = B.T @ B
    square = gram.diagonal()
    if np.all(np.abs(gram - np.diag(square)) <= EXACT * square.max(initial=0.0)):
        length = np.sqrt(square)  # each actuator has joints of its own: keep the zeros exact
        nonzero = length > rank_tol * length.max(initial=0.0)
        return np.asarray(B[:, nonzero] / length[nonzero])
    U, size, _ = np.linalg.svd(B, full_matrices=False)
    return np.asarray(U[:, size > rank_tol * size.max(initial=0.0)])


def _constant(matrix: Array) -> ca.SX:
    exact = np.where(np.abs(matrix) > EXACT * np.abs(matrix).max(initial=0.0), matrix, 0.0)
    return ca.SX(ca.sparsify(ca.DM(exact)))
