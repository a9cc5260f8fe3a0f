"""The mechanism at one state: the matrices that control laws use."""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.law_interface.law import Array, Command, LawInputs
from mbcasadi.control.law_interface.options import LAW_RANK_TOL
from mbcasadi.control.law_interface.verdicts import attainable, is_definite
from mbcasadi.control.law_interface.weights import (
    WeightedQuantities,
    control_weights_of,
    weights_of,
)
from mbcasadi.formulation.virtual_mass import constraint_mass, mean_mass
from mbcasadi.linalg import (
    CompleteFactor,
    DropRule,
    MatrixRoot,
    complement,
    complete_factor,
    complete_factor_scaled,
    row_basis,
    tree_cholesky,
    tree_solve,
)
from mbcasadi.system import System, evaluate
from mbcasadi.system.closing import row_scale_at
from mbcasadi.system.row_lengths import typical_row_lengths
from mbcasadi.system.sizes import residual_sizes


@dataclass(frozen=True)
class Mechanism(WeightedQuantities):
    """`M a + h = B u + f_0 + Aᵀ lam`, `A a + c = 0`; passive forces are inside h.

    Attributes:
        system: the mechanism.
        at: the state; rows that are off are zero in A and c.
        rank_tol: relative length below which a row of A is dropped.
        weights: `W^{1/2}` and its inverse of a metric [A05, §7.2]; with it the members are those
            of `v_W = W^{1/2} v`, `f_W = W^{-1/2} f`; `joint_rate` and `joint_force` convert back.
        control_weights: the same of a metric of controls, in which u is least; None for the
            Euclidean one.
    """

    system: System
    at: LawInputs
    rank_tol: float = LAW_RANK_TOL
    weights: MatrixRoot[ca.DM] | None = None
    control_weights: MatrixRoot[ca.DM] | None = None

    @classmethod
    def measured(
        cls,
        system: System,
        at: LawInputs,
        rank_tol: float,
        *,
        metric: ArrayLike | None = None,
        control_metric: ArrayLike | None = None,
    ) -> "Mechanism":
        """Return the mechanism with the metrics of `weights.py`, the default ones where None."""
        weights = weights_of(system, metric)
        return cls(system, at, rank_tol, weights, control_weights_of(system, control_metric))

    @cached_property
    def M(self) -> ca.SX:
        """(nv, nv) inertia."""
        M = self.weighted_force(self.system.mass_matrix(self.at.q))
        return M if self.weights is None else M @ self.weights.inverse

    @cached_property
    def h(self) -> ca.SX:
        """(nv, 1) bias force minus passive force."""
        q, v = self.at.q, self.at.v
        return self.weighted_force(self.system.bias_force(q, v) - self.system.passive_force(q, v))

    @cached_property
    def B(self) -> ca.SX:
        """(nv, nu) actuation."""
        return self.weighted_force(
            evaluate(self.system.actuation, {"q": self.at.q, "v": self.at.v})
        )

    @cached_property
    def f_0(self) -> ca.SX:
        """(nv, 1) actuator force at u = 0."""
        return self.weighted_force(self.system.actuator_bias(self.at.q, self.at.v))

    @cached_property
    def unit_actuation(self) -> ca.SX:
        """(nv, nu) actuation by controls of the size one in their metric."""
        return self.B if self.control_weights is None else self.B @ self.control_weights.inverse

    def least_control(self, force: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return `u = (P B)⁺ f`, `f = P (force - f_0)` and `f - P B u`  [A16, eq. 19 corrected].

        u is the least of the controls that come nearest; the last output, the force that no
        control gives, is zero where the motion is possible.

        Args:
            force: (nv, 1) of the actuators.
        """
        desired, PB = self.P @ (force - self.f_0), self.P @ self.unit_actuation
        scale = self.scale_of_forces(self.unit_actuation)
        actuators = complete_factor(PB, row_scale=scale, rank_tol=self.rank_tol)
        unit = actuators.pinv_times(desired)
        return self.control(unit), desired, desired - PB @ unit

    def command(self, force: ca.SX, a: ca.SX, error: ca.SX, target: ca.SX | None) -> Command:
        """Return the least control of a force, and the acceleration a that it is meant to give.

        Args:
            force, a: (nv, 1) each, in the metric.
            error, target: of the motion, for reports.
        """
        u, desired, missing = self.least_control(force)
        return Command(
            u=u,
            a=self.joint_rate(a),
            residual={"force": self.joint_force(missing)},
            attainable=self.is_attained(missing, desired),
            error=error,
            target=target,
        )

    @cached_property
    def A(self) -> ca.SX:
        """(nc, nv) constraint Jacobian."""
        if not self.system.nc:
            return ca.SX(0, self.system.nv)
        A = evaluate(self.system.loop_jacobian, {"q": self.at.q, "v": self.at.v})
        on = ca.diag(self.at.rows) @ A if self.system.mask is not None else A
        return self.weighted_rows(ca.SX(on))

    @cached_property
    def c(self) -> ca.SX:
        """(nc, 1) constraint bias."""
        if not self.system.nc:
            return ca.SX(0, 1)
        return self.at.rows * self.system.loop_bias(self.at.q, self.at.v)

    @cached_property
    def rows(self) -> CompleteFactor[ca.SX]:
        """Complete orthogonal factors of A; its rank does not depend on units."""
        scales = self.system.scales
        if self.weights is not None or np.ptp(scales.coordinates) == 0.0:
            return complete_factor(self.A, **self.rule)
        return complete_factor_scaled(
            self.A,
            ca.DM(scales.coordinates),
            row_scale=self._row_scale(scales.rows),
            rank_tol=self.rank_tol,
        )

    @cached_property
    def _sized_rows(self) -> tuple[CompleteFactor[ca.SX], ca.DM] | None:
        """Factors of the rows over the sizes of their residuals; None where these are equal."""
        size = residual_sizes(self.system)
        if not size.size or np.ptp(size) == 0.0:
            return None
        sizes, rule = ca.DM(size), self.rule
        rule["row_scale"] = rule["row_scale"] / sizes
        return complete_factor(ca.diag(1 / sizes) @ self.A, **rule), sizes

    @cached_property
    def _across(self) -> tuple[ca.SX, ca.DM]:
        """Orthonormal basis of `diag(size) range(Aᵀ)`, and the sizes; those are 1 in a metric."""
        V, size = self.rows.basis.V, self.force_sizes
        if np.ptp(np.array(size)) == 0.0:
            return V, ca.DM.ones(self.system.nv)
        span = ca.diag(size) @ V
        return row_basis(span.T, row_scale=0.0, rank_tol=0.0, pivot=False).V, size

    def constraint_part(self, force: ca.SX) -> ca.SX:
        """Return the force in range(Aᵀ) nearest to forces (nv, k).

        In the metric; without one in the sizes of the coordinates.
        """
        V, size = self._across
        sizes = ca.repmat(size, 1, force.shape[1])
        return V @ (V.T @ (sizes * force)) / sizes

    def multipliers(self, f_c: ca.SX) -> ca.SX:
        """Return the least multipliers (nc, k) of constraint forces (nv, k).

        Least in `Σ (size_i lam_i)²`, sizes of `residual_sizes`: where rows repeat, no share
        depends on the units.
        """
        if self._sized_rows is None:
            return self.rows.pinv_transposed_times(f_c)
        factor, sizes = self._sized_rows
        return factor.pinv_transposed_times(f_c) / ca.repmat(sizes, 1, f_c.shape[1])

    @property
    def rule(self) -> DropRule:
        """The drop rule of the rows of A as they are, for a formulation."""
        scales = self.system.scales
        if self.weights is None:
            usual = scales.row_norms
        else:
            of_rate = self.weights.inverse.full()
            usual = typical_row_lengths(self.system, scales.states, of_rate)
        return {"row_scale": self._row_scale(usual), "rank_tol": self.rank_tol, "pivot": True}

    @property
    def force_sizes(self) -> ca.DM:
        """(nv, 1) factors that make forces on rotations and on translations comparable."""
        if self.weights is not None:
            return ca.DM.ones(self.system.nv)
        return ca.DM(self.system.scales.coordinates)

    def scale_of_forces(self, forces: ca.SX) -> ca.SX:
        """Return (nv, 1) the scales of the rows of `P forces` for a drop rule; forces (nv, k)."""
        return ca.norm_fro(ca.diag(self.force_sizes) @ forces) / self.force_sizes

    def factor_along(self, J: ca.SX) -> CompleteFactor[ca.SX]:
        """Return the factors of `J P`, rows (k, nv) along the free motion."""
        size = self.force_sizes
        length = ca.densify(ca.sqrt(ca.sum2((J @ ca.diag(size)) ** 2)))
        return complete_factor_scaled(J @ self.P, size, row_scale=length, rank_tol=self.rank_tol)

    def is_attained(self, missing: ca.SX, desired: ca.SX) -> ca.SX:
        """Return whether the missing part of a desired force (nv, 1) is small beside its terms."""
        terms = (desired, self.h, self.f_0)
        return attainable(self.force_sizes * missing, *(self.force_sizes * x for x in terms))

    def _row_scale(self, usual: Array) -> ca.SX | ca.DM:
        """Return the scales of the rows, from their usual lengths, at the gap of the state."""
        return row_scale_at(ca.DM(usual), self.rank_tol, self.at.gap)

    @cached_property
    def P(self) -> ca.SX:
        """(nv, nv) projector on null(A)."""
        return complement(self.rows.basis.V)

    @cached_property
    def a_across(self) -> ca.SX:
        """(nv, 1) `-A⁺ c`, the acceleration that the constraints require."""
        return -self.rows.pinv_times(self.c)

    @cached_property
    def M_bar(self) -> ca.SX:
        """(nv, nv) `P M P + μ (I - P)`, μ the mean inertia of the free motions  [A16, eq. 8b]."""
        return constraint_mass(self.M, self.P, mean_mass(self.M, self.P, self.rows.basis.rank))

    @cached_property
    def M_bar_root(self) -> ca.SX:
        """Lower triangular L, `M̄ = Lᵀ L`."""
        return tree_cholesky(self.M_bar)

    @cached_property
    def has_unique_motion(self) -> ca.SX:
        """One where M is positive definite on null(A), so that forces determine the motion."""
        return is_definite(self.M_bar_root, ca.diag(self.M_bar))

    def response(self, force: ca.SX) -> ca.SX:
        """Return `(P M P)⁺ f = M̄⁻¹ P f`, the acceleration that forces (nv, k) cause.

        M need be positive definite on null(A) only: see `has_unique_motion`.
        """
        return tree_solve(self.M_bar_root, self.P @ force)

    def acceleration(self, force: ca.SX) -> ca.SX:
        """Return a (nv, 1) under the applied force (nv, 1), with `A a + c = 0`  [A16, eq. 27]."""
        return self.response(force - self.h - self.M @ self.a_across) + self.a_across
