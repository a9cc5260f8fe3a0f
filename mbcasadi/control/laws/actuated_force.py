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

"Least" and "nearest" are those of a norm, that of the mechanism's weights: see
`law_interface/weights.py`. The kinetic norm `fᵀ M⁻¹ f` is that of the quasi-forces `u = W⁻¹ f`,
`M = W Wᵀ`  [A10, section 4.2]: the same in all units. A10's quasi-force is that of all forces but
Coriolis ones, gravity included: the least actuator force is then the one nearest to the force that
holds the mechanism still, and with actuators for every force it leaves `u_o = 0`.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from mbcasadi.control.law_interface.law import Array
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.verdicts import attainable
from mbcasadi.formulation.root import RootFactor
from mbcasadi.linalg import bounded_least_norm, complement, complete_factor, row_basis

EXACT = 1e-14
"""Share of the largest entry below which an entry of a constant basis is rounding."""


@dataclass(frozen=True)
class Actuators:
    """Range of the actuation, in the mechanism's weighted coordinates.

    Attributes:
        X: (nv, k) orthonormal columns, or zero, that span range(B).
        B_pinv: (nu, nv) `B⁺`, least in the metric of controls.
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
class KineticNorm:
    """The norm `fᵀ M⁻¹ f` of forces at one state, M positive definite.

    Attributes:
        root: `M = W Wᵀ`.
        V1: (nv, k) orthonormal basis of range(W⁻¹ Aᵀ), zero columns allowed.
        static: (nv, 1) force that counts as none, `g - f_passive`.
    """

    root: RootFactor[ca.SX]
    V1: ca.SX
    static: ca.SX


@dataclass(frozen=True)
class Allocation:
    """The force of a motion, `needed = M a + h`, as a force of the actuators.

    The constraints carry the remainder: `f_c = (I - P) (needed - f)`.

    Attributes:
        mechanism: weighted or not.
        needed: (nv, 1).
        norm: in which forces are least and nearest, of a mechanism without weights; None for that
            of the mechanism's weighted coordinates.
    """

    mechanism: Mechanism
    needed: ca.SX
    norm: KineticNorm | None = None

    @cached_property
    def actuators(self) -> Actuators:
        """The actuators' range at this state, in the coordinates of the norm."""
        joint = actuators(self.mechanism)
        if self.norm is None:
            return joint
        root, X = self.norm.root, joint.X
        if X.is_constant() and X.shape[1] >= X.shape[0]:  # every force can be produced
            basis = ca.SX.eye(X.shape[0])
        else:
            basis = row_basis(root.divide(X).T, row_scale=0.0, rank_tol=0.0, pivot=False).V
        return Actuators(basis, joint.B_pinv @ root.W, root.divide(joint.f_0))

    @cached_property
    def P(self) -> ca.SX:
        """(nv, nv) projector on the forces that move the mechanism, in the norm's coordinates."""
        return self.mechanism.P if self.norm is None else complement(self.norm.V1)

    def least(self, limits: Array | None = None) -> PrescribedForce:
        """Return the least force that causes the motion  [A05, eq. 62; A10, section 4.2].

        Args:
            limits: (nu, 2) of u; forces that do not move the mechanism keep u within them where
                that is possible.
        """
        y = self._least_coordinates
        if limits is not None and np.isfinite(limits).any():
            y = y + self._relief(y, limits)
        return self._prescribe(y, ca.SX(0, 1), ca.SX(1))

    def _relief(self, y: ca.SX, limits: Array) -> ca.SX:
        """Return the least step of y that causes no motion and brings u within its limits."""
        bounded = np.flatnonzero(np.isfinite(limits).any(axis=1)).tolist()
        response = (self.actuators.B_pinv @ self.actuators.X)[bounded, :]
        u = self.actuators.control(self.actuators.X @ y)[bounded]
        low, high = ca.DM(limits[bounded, 0]), ca.DM(limits[bounded, 1])
        scale = ca.densify(ca.sqrt(ca.sum2(response**2)))
        free = response @ self._moving_coordinates[1]
        return bounded_least_norm(free, low - u, high - u, scale, rank_tol=self.mechanism.rank_tol)

    def with_force(self, f_c: ca.SX) -> PrescribedForce:
        """Return the force that causes the motion, with a constraint force nearest to f_c (nv, 1).

        Args:
            f_c: in range(Aᵀ), weighted.
        """
        y, free = self._moving_coordinates
        desired, X = self._into_norm(f_c), self.actuators.X
        y = y + free @ (X.T @ (self._needed - desired))
        missing = desired - self._constraint_force(X @ y)
        attained = self._is_attained(missing, desired)
        return self._prescribe(y, self._out_of_norm(missing), attained)

    def with_multipliers(self, T: ca.SX, lam: ca.SX, size: Array) -> PrescribedForce:
        """Return the least force that causes the motion, with `T f_c` nearest to lam.

        Args:
            T: (k, nv) rows of `(A⁺)ᵀ`, weighted.
            lam: (k, 1).
            size: (k,) of the rows' residuals, by which errors of multipliers count.
        """
        sizes = ca.DM(size)
        T = ca.diag(sizes) @ (T if self.norm is None else T @ self.norm.root.W)
        X, y = self.actuators.X, self._least_coordinates
        error = T @ (self._needed - X @ y) - sizes * lam
        reach = T @ X @ self._moving_coordinates[1]
        scale = ca.densify(ca.sqrt(ca.sum2(T**2)))
        factor = complete_factor(reach, row_scale=scale, rank_tol=self.mechanism.rank_tol)
        step = factor.pinv_times(error)
        missing = error - reach @ step
        attained = attainable(missing, sizes * lam, ca.fabs(T) @ ca.fabs(self._needed))
        return self._prescribe(y + step, missing / sizes, attained)

    @property
    def _needed(self) -> ca.SX:
        return self._into_norm(self.needed)

    @cached_property
    def _moving_coordinates(self) -> tuple[ca.SX, ca.SX]:
        """Coordinates of the least moving force, and the projector on those that do not move."""
        P, X = self.P, self.actuators.X
        eye = ca.SX.eye(X.shape[1])
        if X.is_constant() and X.shape[1] >= X.shape[0]:  # every force can be produced
            return X.T @ (P @ self._needed), eye - X.T @ P @ X
        scale = self.mechanism.scale_of_forces(X)
        factor = complete_factor(P @ X, row_scale=scale, rank_tol=self.mechanism.rank_tol)
        V = factor.basis.V
        return factor.pinv_times(P @ self._needed), eye - V @ V.T

    @cached_property
    def _least_coordinates(self) -> ca.SX:
        """Coordinates of the least force that causes the motion, in the norm."""
        y, free = self._moving_coordinates
        if self.norm is None:
            return y
        return y + free @ (self.actuators.X.T @ self._into_norm(self.norm.static))

    def _is_attained(self, missing: ca.SX, desired: ca.SX) -> ca.SX:
        """Return whether the missing part of a force, in the norm, is small beside its terms."""
        sizes = ca.DM(1) if self.norm is not None else self.mechanism.force_sizes
        return attainable(*(sizes * x for x in (missing, desired, self._needed)))

    def _into_norm(self, f: ca.SX) -> ca.SX:
        return f if self.norm is None else self.norm.root.divide(f)

    def _out_of_norm(self, f: ca.SX) -> ca.SX:
        return f if self.norm is None else self.norm.root.W @ f

    def _constraint_force(self, f: ca.SX) -> ca.SX:
        remainder = self._needed - f
        return remainder - self.P @ remainder

    def _prescribe(self, y: ca.SX, missing: ca.SX, attained: ca.SX) -> PrescribedForce:
        f, moving = self.actuators.X @ y, self.P @ self._needed
        motion = moving - self.P @ f
        return PrescribedForce(
            self._out_of_norm(f),
            self.actuators.control(f),
            self._out_of_norm(self._constraint_force(f)),
            self._out_of_norm(motion),
            missing,
            ca.logic_and(self._is_attained(motion, moving), attained),
        )


def actuators(mechanism: Mechanism) -> Actuators:
    """Return the range of B; constant B is factored when the law is built."""
    B = ca.SX(mechanism.unit_actuation)
    if not B.is_constant():
        factor = complete_factor(B.T, row_scale=ca.norm_fro(B), rank_tol=mechanism.rank_tol)
        B_pinv = factor.pinv_transposed_times(ca.SX.eye(B.shape[0]))
        return Actuators(factor.basis.V, mechanism.control(B_pinv), mechanism.f_0)
    matrix = np.array(ca.DM(B), dtype=float)
    X, pinv = _range(matrix, mechanism.rank_tol), np.linalg.pinv(matrix, rcond=mechanism.rank_tol)
    return Actuators(_constant(X), mechanism.control(_constant(pinv)), mechanism.f_0)


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
