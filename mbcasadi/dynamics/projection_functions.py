"""The matrices of the projection formulation at System level, as named Functions  [A05]."""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.terms import State, Treatment, drop_rule, rates, state_symbols, terms
from mbcasadi.errors import ProblemError, UnsupportedFeatureError
from mbcasadi.formulation.projection import (
    constraint_inertia,
    inertia_norm,
    parameterized_constraint_inertia,
    symmetric_constraint_inertia,
)
from mbcasadi.formulation.projection_forces import (
    coupling,
    decoupling,
    force_split,
    multipliers,
)
from mbcasadi.formulation.projection_rates import path_rate, projector_rate
from mbcasadi.linalg import RANK_TOL, complement, complete_factor
from mbcasadi.system import System
from mbcasadi.system.parametric import takes_parameters


def moving_terms_fun(system: System) -> ca.Function:
    """Return (q, v, [t], [mask]) → (M, h, A, c, C, Mdot, Adot), kinematics shared.

    Passive forces are inside `h`; `C` is the Coriolis matrix, `Mdot = C + Cᵀ`.

    Raises:
        UnsupportedFeatureError: rows nonlinear in v, whose A moves with the acceleration too.
    """
    if system.nc and "v" in system.constraint_jacobian.name_in():
        raise UnsupportedFeatureError(
            f"'{system.name}' has constraint rows that are nonlinear in v: the rate of their A "
            "depends on the acceleration; use forward_dynamics, which needs no rate of A"
        )
    state = state_symbols(system, ca.SX)
    Mdot, Adot = rates(system, state)
    C = system.coriolis_matrix(state.q, state.v)
    outputs = terms(system, state)._asdict() | {"C": C, "Mdot": Mdot, "Adot": Adot}
    inputs = state.inputs
    return ca.Function(
        "moving_terms",
        list(inputs.values()),
        [ca.densify(x) for x in outputs.values()],
        list(inputs),
        list(outputs),
        {"cse": True},
    )


@checked
@takes_parameters
def projection_terms(
    system: System,
    *,
    gamma: float | None = None,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v, [t], [mask]) → the matrices of [A05, sections 3 to 5].

    `M_c a = P (f - h) + C_c v`, and the same with `M_c_prime, C_c_prime` and `M_c_second,
    C_c_second`. The matrices `C_c = M Ṗ`, `(I - 2 P) M Ṗ`, `γ Ṗ` hold for admissible v and rows
    without time; `normal` holds always and takes the place of `Ṗ v`.

    P, A⁺ and what is made of them depend on the units of q; `formulation.metric_projector` takes a
    metric.

    Outputs:
        P, Pdot: (nv, nv) projector on null(A) and its rate.
        normal: (nv, 1) `(I - P) a = -A⁺ c`, the acceleration that the constraint requires.
        M_c, C_c, M_c_prime, C_c_prime, M_c_second, C_c_second: (nv, nv).
        gamma: γ of `M_c_second`, in the unit of M.
        decoupling: `‖(I - P) M P‖ / ‖M‖`; zero iff moving forces do not act on the constraint
            force [A05, Prop. 3].
        rank: of A.
        unique: one where the multipliers are unique, else zero [A05, Remark 4].
        undetermined: (nc, nc) projector on the part of lam that A does not determine.

    Args:
        system: the mechanism; its M positive definite for `M_c` and `M_c_prime`.
        gamma: γ > 0; default the Frobenius norm of M.
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.

    Raises:
        ProblemError: γ is not positive.
        UnsupportedFeatureError: rows nonlinear in v.
    """
    require_positive("gamma", gamma)
    state: State[ca.MX] = state_symbols(system, ca.MX)
    matrices = moving_terms_fun(system)(**state.inputs)
    M, A = matrices["M"], matrices["A"]
    rule = drop_rule(system, state, Treatment(row_scale, rank_tol, pivot))
    factor = complete_factor(A, **rule)
    P = complement(factor.basis.V)
    A_pinv = factor.pinv_times(ca.MX.eye(system.nc))
    Pdot = projector_rate(P, path_rate(A_pinv, matrices["Adot"]))
    scale = inertia_norm(M) if gamma is None else ca.MX(gamma)
    C_c = M @ Pdot
    outputs = {
        "P": P,
        "Pdot": Pdot,
        "normal": -A_pinv @ matrices["c"],
        "M_c": constraint_inertia(M, P),
        "C_c": C_c,
        "M_c_prime": symmetric_constraint_inertia(M, P),
        "C_c_prime": C_c - 2 * P @ C_c,
        "M_c_second": parameterized_constraint_inertia(M, P, scale),
        "C_c_second": scale * Pdot,
        "gamma": scale,
        "decoupling": decoupling(M, P),
        "rank": factor.basis.rank,
        "unique": factor.basis.rank >= system.nc,
        "undetermined": ca.MX.eye(system.nc) - factor.U @ factor.U.T,
    }
    return dense_function("projection_terms", state.inputs, outputs)


@checked
@takes_parameters
def force_channels(
    system: System,
    *,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v, f, [t], [mask]) → the force as it moves, and as it loads  [A05, figure 1].

    `f_c = f_c_direct + f_c_coupled` [A05, eq. 32 with the sign of lam turned]. f_c does not depend
    on the units of q, its parts and lam of repeated rows do: see `formulation.in_metric`.

    Outputs:
        f_potent, f_impotent: (nv, 1) `P f` moves the mechanism, `(I - P) f` does not.
        coupling: (nv, nv) `(I - P) M M_c⁻¹`.
        f_c_direct: (nv, 1) `-(f - h)⊥`, what impotent forces load directly.
        f_c_coupled: (nv, 1) what moving forces and the path's curvature load by inertia.
        lam, unique: (nc, 1) multipliers of minimum norm; one where there are no others.

    Args:
        system: the mechanism; its M positive definite.
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.

    Raises:
        UnsupportedFeatureError: M is only semidefinite, or rows are nonlinear in v.
    """
    if system.semidefinite:
        raise UnsupportedFeatureError(
            f"force channels need a positive definite M, but the M of '{system.name}' is "
            "singular; use S_ob of virtual_mass_terms"
        )
    state: State[ca.MX] = state_symbols(system, ca.MX)
    matrices = moving_terms_fun(system)(**state.inputs)
    M, A, f = matrices["M"], matrices["A"], ca.MX.sym("f", system.nv)
    rule = drop_rule(system, state, Treatment(row_scale, rank_tol, pivot))
    factor = complete_factor(A, **rule)
    P = complement(factor.basis.V)
    of_f, of_total = force_split(f, P), force_split(f - matrices["h"], P)
    ratio = coupling(M, P)
    direct = -of_total.impotent
    coupled = ratio @ (of_total.potent - M @ factor.pinv_times(matrices["c"]))
    shares = multipliers(A, direct + coupled, **rule)
    outputs = {
        "f_potent": of_f.potent,
        "f_impotent": of_f.impotent,
        "coupling": ratio,
        "f_c_direct": direct,
        "f_c_coupled": coupled,
        "lam": shares.lam,
        "unique": shares.unique,
    }
    inputs = {"q": state.q, "v": state.v, "f": f} | state.last
    return dense_function("force_channels", inputs, outputs)


def require_positive(name: str, value: float | None) -> None:
    """Raise `ProblemError` where a mass is given and not positive."""
    if value is not None and not value > 0:
        raise ProblemError(f"{name} is {value}, expected a positive number in the unit of M")


def dense_function(name: str, inputs: dict[str, ca.MX], outputs: dict[str, ca.MX]) -> ca.Function:
    """Return a Function with named inputs and outputs, without structural zeros."""
    dense = [ca.densify(x) for x in outputs.values()]
    return ca.Function(name, list(inputs.values()), dense, list(inputs), list(outputs))
