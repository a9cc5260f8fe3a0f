"""Quasi-velocities of a `System`: their equations, and when they are rates of coordinates.

The equations and the letters are those of `formulation.quasi_velocity_equations`. They take
`A v = 0`: rows that depend on time, or on v in another way, are for `forward_dynamics` with
`formulation="quasi_velocity"`.
"""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.terms import (
    State,
    Treatment,
    choose_kind,
    drop_rule,
    rates,
    state_symbols,
    terms,
)
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.formulation.quasi_velocity_equations import (
    coriolis_term,
    free_basis_near,
    quasi_terms,
)
from mbcasadi.formulation.root import constraint_basis, root_factor
from mbcasadi.linalg import RANK_TOL, Sym, root_operations
from mbcasadi.system import System
from mbcasadi.system.parametric import takes_parameters


@checked
@takes_parameters
def quasi_velocity_terms(
    system: System,
    *,
    root: str = "cholesky",
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v, f, [mask]) → the fields of `QuasiTerms`, and lam.

    `v̇_r + Γ_r v_r = u_r` for the motion and `A_Wᵀ lam = V1 (Γ_o v_r - u_o)` for the constraint
    force [A10, eq. 28-33, signs of lam turned], in the gauge `V2ᵀ V̇2 = 0`. The input f is what
    is applied on top of passive forces; u holds passive forces and gravity too. On a drifted
    state `v_o ≠ 0` shows the drift, and lam leaves it out.

    Args:
        system: the mechanism.
        root: "cholesky" or "symmetric".
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.

    Raises:
        UnknownNameError: no such root; the message lists the names.
        UnsupportedFeatureError: rows that are not `A(q) v = 0`, or an M that is only semidefinite.
    """
    _require_plain_rows(system)
    kind = choose_kind(system, pivot, _operations_of_root(system, root))
    state = state_symbols(system, kind)
    f = kind.sym("f", system.nv)
    M, C, f_rest, A, Adot = _matrices_fun(system).call(list(state.inputs.values()))
    rule = drop_rule(system, state, Treatment(row_scale, rank_tol, pivot))
    equations, lam = quasi_terms(
        M,
        C,
        state.v,
        f + f_rest,
        A,
        Adot,
        root=root,
        **rule,
    )
    inputs = {"q": state.q, "v": state.v, "f": f} | state.last
    return _function("quasi_velocity_terms", inputs, equations._asdict() | {"lam": lam})


@checked
@takes_parameters
def quasi_velocity_motion(
    system: System,
    *,
    root: str = "cholesky",
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v_r, f, V_ref, [mask]) → (dq, dv_r, V2), the state-space form  [A10, eq. 15, 32].

    `q̇ = N W⁻ᵀ V2 v_r`, `v̇_r = u_r - Γ_r v_r`: every v_r is admissible, so the velocity cannot
    drift. `V2(q)` is the basis next to `V_ref`, and Γ_r holds its turning (`free_basis_near`).
    Begin with `V_ref = V2` of `quasi_velocity_terms` and `v_r = V2ᵀ v_bar`; take the V2 that
    comes out as the new `V_ref` at any time, v_r stays what it is. Without constraints
    `V_ref` is the identity and v_r is v_bar. v_r keeps nv entries; those where V2 has zero
    columns stay zero.

    Args:
        system: the mechanism.
        root: "cholesky" or "symmetric".
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.

    Raises:
        UnknownNameError, UnsupportedFeatureError: as in `quasi_velocity_terms`.
    """
    _require_plain_rows(system)
    kind = choose_kind(system, pivot, _operations_of_root(system, root))
    state = state_symbols(system, kind)
    v_r, f = kind.sym("v_r", system.nv), kind.sym("f", system.nv)
    V_ref = kind.sym("V_ref", system.nv, system.nv)
    matrices = _matrices_fun(system)
    M, _, _, A, _ = matrices.call(list(state._replace(v=0 * f).inputs.values()))
    factor = root_factor(M, root)
    rule = drop_rule(system, state, Treatment(row_scale, rank_tol, pivot))
    rows = constraint_basis(factor, A, **rule)
    V2 = free_basis_near(rows.V1, V_ref)
    v_bar = V2 @ v_r
    v = factor.divide_transposed(v_bar)
    dq = system.velocity_map(state.q) @ v
    _, C, f_rest, _, _ = matrices.call(list(state._replace(v=v).inputs.values()))
    turning = _directional_derivative(V2, state.q, dq) @ v_r
    dv_r = V2.T @ (factor.divide(f + f_rest) - coriolis_term(M, C, root) @ v_bar - turning)
    inputs = {"q": state.q, "v_r": v_r, "f": f, "V_ref": V_ref} | state.last
    return _function("quasi_velocity_motion", inputs, {"dq": dq, "dv_r": dv_r, "V2": V2})


@checked
@takes_parameters
def quasi_velocity_curvature(system: System, *, root: str = "cholesky") -> ca.Function:
    """Return (q, v1, v2) → (R), the curvature of the inertia as a metric, (nv, nv) and skew.

    `R = D₁Γ(v2) - D₂Γ(v1) - Γ([v1, v2]) + Γ(v1) Γ(v2) - Γ(v2) Γ(v1)`, with `D₁` the derivative
    along v1. M is flat where R vanishes for all q, v1, v2. Then there are
    coordinates in which the system without forces is `ξ̈ = 0` [A10, section 2.4]; otherwise no
    root factor whatever gives integrable quasi-velocities. A given root does so only if its own
    `Γ` vanishes, which is more: a particle in polar coordinates is flat, and the root
    `diag(1, r)` is not integrable.

    Constraints do not enter. The norm of R does not depend on the root.

    Args:
        system: the mechanism.
        root: "cholesky" or "symmetric", in whose frame R is written.
    """
    q = ca.SX.sym("q", system.nq)
    v1, v2 = ca.SX.sym("v1", system.nv), ca.SX.sym("v2", system.nv)
    M, N = system.mass_matrix(q), system.velocity_map(q)

    def Gamma(v: ca.SX) -> ca.SX:
        return ca.SX(coriolis_term(M, system.coriolis_matrix(q, v), root))

    def along(value: ca.SX, v: ca.SX) -> ca.SX:
        return ca.SX(_directional_derivative(value, q, N @ v))

    Gamma_1, Gamma_2 = Gamma(v1), Gamma(v2)
    # Constant v1 and v2 are fields of velocity; with quaternions these do not commute.
    commutator = along(N @ v2, v1) - along(N @ v1, v2)
    bracket = (N.T @ commutator) / ca.sum1(N**2).T  # columns of N are orthogonal
    R = along(Gamma_2, v1) - along(Gamma_1, v2) - Gamma(bracket)
    R = R + Gamma_1 @ Gamma_2 - Gamma_2 @ Gamma_1
    return _function("quasi_velocity_curvature", {"q": q, "v1": v1, "v2": v2}, {"R": R})


def _matrices_fun(system: System) -> ca.Function:
    """Return (q, v, [mask]) → (M, C, f_rest, A, Adot); `f_rest` is passive force minus gravity."""
    state: State[ca.SX] = state_symbols(system, ca.SX)
    (M, h, A, _), (_, Adot) = terms(system, state), rates(system, state)
    C = system.coriolis_matrix(state.q, state.v)
    outputs = {"M": M, "C": C, "f_rest": C @ state.v - h, "A": A, "Adot": Adot}
    return _function("quasi_velocity_matrices", state.inputs, outputs)


def _operations_of_root(system: System, root: str) -> int:
    return root_operations(system.nv) if root == "symmetric" else 0


def _require_plain_rows(system: System) -> None:
    if system.semidefinite:
        raise UnsupportedFeatureError(
            f"quasi-velocities need a positive definite M, but the M of '{system.name}' is "
            "singular; use the formulation 'lagrange' or 'virtual_mass'"
        )
    if system.nc and (
        "constraint_velocity" in system.builders or "v" in system.constraint_jacobian.name_in()
    ):
        raise UnsupportedFeatureError(
            f"'{system.name}' has constraint rows that are not A(q) v = 0; their motion is "
            "forward_dynamics(system, 'quasi_velocity')"
        )


def _directional_derivative(value: Sym, q: Sym, dq: Sym) -> Sym:
    return ca.jtimes(value, q, dq)


def _function(name: str, inputs: dict[str, Sym], outputs: dict[str, Sym]) -> ca.Function:
    return ca.Function(
        name,
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
        {"cse": True},
    )
