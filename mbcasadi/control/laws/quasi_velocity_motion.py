"""The force of the tracking law in quasi-velocities, in joint space  [A10, section 4].

With `M = W Wᵀ` and an orthonormal basis V2 of null(A W⁻ᵀ) the motion is

    v̇_r + Γ_r v_r = u_r,   v_r = V2ᵀ Wᵀ v,   u_r = V2ᵀ W⁻¹ f      [A10, eq. 26-31]
    dθ/dt = B_θ v_r,        B_θ = J W⁻ᵀ V2,   J = ∂θ/∂q             [A10, eq. 37]

and the law gives it a desired quasi-velocity `s_r` and a composite error `ε = v_r - s_r`:

    s_r = B_θ⁺ (dθ_d/dt - K_p θ̃),   u_r = ds_r/dt + Γ_r s_r - K_d ε   [A10, eq. 38-39]

so that `dε/dt = -(Γ_r + K_d) ε`. Nothing here depends on the choice of V2 (the gauge): with
`s = W⁻ᵀ V2 s_r`, an admissible joint velocity, and a Coriolis matrix with `Ṁ = C + Cᵀ`,

    W V2 (ds_r/dt + Γ_r s_r) = M ds/dt + C s   up to forces in range(Aᵀ)

where `Γ_r = V2ᵀ (Γ V2 + V̇2)` is that of (30) with the skew `Γ = (W⁻¹ C - Ẇᵀ) W⁻ᵀ` (7b
corrected; the printed Γ is not skew, and the decay of ε would not follow). A scalar K_d gives
`W K_d Wᵀ (v - s) = K_d M (v - s)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.verdicts import is_definite
from mbcasadi.control.law_interface.weights import weights_of
from mbcasadi.control.laws.actuated_force import Allocation, KineticNorm
from mbcasadi.control.laws.task_coordinates import Coordinates
from mbcasadi.control.tasks.task import per_row
from mbcasadi.errors import ProblemError, UnsupportedFeatureError
from mbcasadi.formulation.quasi_velocity import quasi_velocity
from mbcasadi.formulation.root import ConstraintBasis, RootFactor, constraint_basis, root_factor
from mbcasadi.linalg import CompleteFactor, complete_factor
from mbcasadi.shapes import real_array, require_positive, weight
from mbcasadi.system import System, evaluate

LEAST = ("quasi_force", "force")
"""Norms in which the control with a motion is least: `fᵀ M⁻¹ f` of all forces but Coriolis ones, or
that of the actuators' force in the sizes of the coordinates (`law_interface/weights.py`)."""


@dataclass(frozen=True)
class QuasiMotion:
    """The desired motion at one state.

    Attributes:
        mechanism: at this state.
        coordinates: θ.
        kp: (k, k) K_p, 1/s.
        kd: (nv, nv) K_d, 1/s, in the quasi-velocities of the Cholesky root.
        turning: of `turning_fun`.
    """

    mechanism: Mechanism
    coordinates: Coordinates
    kp: ca.DM
    kd: ca.DM
    turning: ca.Function

    @cached_property
    def rows(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """θ (k, 1), J (k, nv) and `J̇ v` (k, 1)."""
        at = self.mechanism.at
        theta, J, c = self.coordinates.rows(at.q, at.v)
        return theta, J, c

    @property
    def target(self) -> ca.SX:
        """(k, 1) θ_d."""
        return self.mechanism.at.ref["theta.q"]

    @property
    def error(self) -> ca.SX:
        """(k, 1) `θ_d - θ = -θ̃`."""
        return self.target - self.rows[0]

    @cached_property
    def root(self) -> RootFactor[ca.SX]:
        """`M = W Wᵀ`, the root that keeps the zeros of the tree."""
        return root_factor(self.mechanism.M)

    @cached_property
    def has_definite_inertia(self) -> ca.SX:
        """One where M is positive definite."""
        return is_definite(self.root.W.T, ca.diag(self.mechanism.M))

    @cached_property
    def across(self) -> ConstraintBasis[ca.SX]:
        """Basis V1 across the constraint."""
        return constraint_basis(self.root, self.mechanism.A, **self.mechanism.rule)

    @cached_property
    def C(self) -> ca.SX:
        """(nv, nv) Coriolis matrix, `Ṁ = C + Cᵀ`."""
        return self.mechanism.system.coriolis_matrix(self.mechanism.at.q, self.mechanism.at.v)

    @cached_property
    def J_W(self) -> ca.SX:
        """(k, nv) `J W⁻ᵀ`."""
        return self.root.divide(ca.SX(self.rows[1]).T).T

    @cached_property
    def along(self) -> CompleteFactor[ca.SX]:
        """Factors of `B_θ V2ᵀ = J W⁻ᵀ (I - V1 V1ᵀ)`  [A10, eq. 37]."""
        V1, tol = self.across.V1, self.mechanism.rank_tol
        J_free = ca.densify(self.J_W - (self.J_W @ V1) @ V1.T)
        length = ca.densify(ca.sqrt(ca.sum2(self.J_W**2)))
        return complete_factor(J_free, row_scale=length, rank_tol=tol)

    @cached_property
    def s(self) -> ca.SX:
        """(nv, 1) `W⁻ᵀ V2 B_θ⁺ (dθ_d/dt - K_p θ̃)`, the desired joint velocity.

        Where θ does not determine the motion, it is the one of least kinetic energy, in any units.
        """
        rate = self.mechanism.at.ref["theta.v"] + self.kp @ self.error
        return self.root.divide_transposed(self.along.pinv_times(rate))

    @cached_property
    def s_dot(self) -> ca.SX:
        """(nv, 1) rate of s along the motion, from the conditions that define s.

        `A s = 0`, `J s = r` and `M s = Aᵀ ν_A + Jᵀ ν_J` are differentiated, so no derivative
        passes through a factorisation. The entries of θ must be independent.
        """
        m, root, V1 = self.mechanism, self.root, self.across.V1
        momentum = m.M @ self.s
        nu_J = self.along.pinv_transposed_times(root.W.T @ self.s)
        nu_A = self.across.factor.pinv_transposed_times(momentum - self.rows[1].T @ nu_J)
        A_s, A_nu, J_s, J_nu = self.turning(m.at.q, m.at.v, m.at.rows, self.s, nu_A, nu_J)
        rate = m.at.ref["theta.a"] + self.kp @ (m.at.ref["theta.v"] - self.rows[1] @ m.at.v)
        bar = V1 @ self.across.rate(A_s)
        bar += self.along.pinv_times(rate - J_s - self.J_W @ bar)
        free = root.divide(A_nu + J_nu - (self.C + self.C.T) @ self.s)
        for V in (V1, self.along.basis.V):
            free -= V @ (V.T @ free)
        return root.divide_transposed(bar + free)

    @cached_property
    def epsilon(self) -> ca.SX:
        """(nv, 1) `V2 ε`, the composite error in all quasi-velocities  [A10, eq. 38]."""
        bar = self.root.W.T @ (self.mechanism.at.v - self.s)
        V1 = self.across.V1
        return bar - V1 @ (V1.T @ bar)

    @cached_property
    def force(self) -> ca.SX:
        """(nv, 1) actuator force for (39), gravity and passive forces compensated.

        `M ds/dt + C s - W K_d Wᵀ (v - s) + g - f_passive`; its part in null(A) has an effect.
        """
        m = self.mechanism
        inertial = m.M @ self.s_dot + self.C @ (self.s - m.at.v)
        return inertial - self.root.W @ (self.kd @ self.epsilon) + m.h

    def allocation(self, needed: ca.SX, least: str) -> Allocation:
        """Return the allocation of a force (nv, 1) in one of the norms `LEAST`."""
        m = self.mechanism
        if least == "force":
            weighted = replace(m, weights=weights_of(m.system, None))
            return Allocation(weighted, weighted.weighted_force(needed))
        gravity = m.system.gravity_force(m.at.q)
        static = gravity - m.system.passive_force(m.at.q, m.at.v)
        return Allocation(m, needed, KineticNorm(self.root, self.across.V1, static))

    @cached_property
    def a(self) -> ca.SX:
        """(nv, 1) acceleration under that force."""
        m = self.mechanism
        a: ca.SX = quasi_velocity(m.M, m.h, self.force, m.A, m.c, **m.rule).a
        return a


def turning_fun(system: System, coordinates: Coordinates | None = None) -> ca.Function:
    """Return (q, v, rows, s, nu_A, [nu_J]) → (Ȧ s, Ȧᵀ nu_A, [J̇ s, J̇ᵀ nu_J])."""
    sizes = {"q": system.nq, "v": system.nv, "rows": system.nc, "s": system.nv, "nu_A": system.nc}
    if coordinates is not None:
        sizes["nu_J"] = len(coordinates.names)
    x = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    A = ca.SX(0, system.nv)
    if system.nc:
        A = ca.diag(x["rows"]) @ evaluate(system.loop_jacobian, {"q": x["q"]})
    values = {"A_s": A @ x["s"], "A_nu": A.T @ x["nu_A"]}
    if coordinates is not None:
        J = coordinates.rows(x["q"], 0)[1]
        values |= {"J_s": J @ x["s"], "J_nu": J.T @ x["nu_J"]}
    along = system.velocity_map(x["q"]) @ x["v"]
    turned = [ca.densify(ca.jtimes(ca.SX(value), x["q"], along)) for value in values.values()]
    return ca.Function("turning", [*x.values()], turned, [*x], [*values], {"cse": True})


def require_plain(system: System) -> None:
    """Refuse systems for which these laws do not hold.

    Raises:
        UnsupportedFeatureError: M is only semidefinite, or rows are not `A(q) v = 0`.
    """
    if system.semidefinite:
        raise UnsupportedFeatureError(
            f"quasi-velocities need a positive definite M, but the M of '{system.name}' is "
            "singular; use computed_torque"
        )
    require_still_rows(system)


def require_still_rows(system: System) -> None:
    """Refuse systems with rows that are not `A(q) v = 0`.

    Raises:
        UnsupportedFeatureError: rows that depend on v, or that do not allow rest.
    """
    if system.nc and (
        "constraint_velocity" in system.builders or "v" in system.loop_jacobian.name_in()
    ):
        raise UnsupportedFeatureError(
            f"'{system.name}' has constraint rows that are not A(q) v = 0; use computed_torque"
        )


def gain_matrix(owner: str, label: str, value: ArrayLike, names: Sequence[str]) -> ca.DM:
    """Return a gain as a matrix (k, k), symmetric positive definite; structural zeros are kept.

    Args:
        owner: what the gain belongs to, for messages.
        label: name of the option, for messages.
        value: a positive number, (k,) of them, or (k, k).
        names: of the k entries.

    Raises:
        ProblemError: another shape, or not positive definite.
    """
    given, k = real_array(f"{owner}: {label}", value), len(names)
    if given.ndim == 2 and given.shape != (k, k):
        raise ProblemError(
            f"{owner}: {label} has shape {given.shape}, expected a number, ({k},) or ({k}, {k}), "
            f"for {', '.join(names)}"
        )
    if given.ndim == 2:
        return ca.sparsify(ca.DM(weight(f"{owner}: {label}", given, k, definite=True)))
    rows = per_row(owner, label, given.tolist(), names)
    require_positive(**{label: float(rows.min())})
    return ca.DM(ca.diag(rows))


def decay_rate(kd: ca.DM) -> float:
    """Return λ_min(K_d), 1/s: `‖ε(t)‖ <= exp(-λ_min t) ‖ε(0)‖`  [A10, eq. 41 corrected]."""
    return float(np.linalg.eigvalsh(kd.full()).min())
