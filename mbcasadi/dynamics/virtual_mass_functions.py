"""The model of a mechanism in its own coordinates, with a virtual mass, as Functions  [A16]."""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.projection_functions import (
    dense_function,
    moving_terms_fun,
    require_positive,
)
from mbcasadi.dynamics.terms import State, Treatment, drop_rule, state_symbols, terms_fun
from mbcasadi.formulation.projection_rates import path_rate, projector_rate, turning_rate
from mbcasadi.formulation.virtual_mass import constraint_mass, mean_mass
from mbcasadi.formulation.virtual_mass_model import (
    actuator_map,
    constraint_coriolis,
    force_projection,
    mass_condition,
    mass_interval,
    mean_mass_rate,
)
from mbcasadi.linalg import RANK_TOL, complement, complete_factor
from mbcasadi.system import System, evaluate
from mbcasadi.system.parametric import takes_parameters


@checked
@takes_parameters
def virtual_mass_terms(
    system: System,
    *,
    virtual_mass: float | None = None,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v, [t], [mask]) → the matrices of [A16, section 2].

    `M_bar a + C_bar v = P (f + f_passive - g)` for admissible v and rows without time, and
    `d/dt M_bar - 2 C_bar` is skew [A16, eq. 8, Theorem 1], also while the default virtual mass
    follows the configuration: `C_bar` then holds `μ̇ Q / 2`, which is zero on admissible v. P and
    what is made of it depend on the units of q; `formulation.in_metric` takes a metric.

    Outputs:
        P, Lambda, Omega: (nv, nv) projector on null(A), `Λ = -A⁺ Ȧ`, `Ω = Λ - Λᵀ`.
        M_bar, C_bar: (nv, nv).
        virtual_mass: μ, in the unit of M.
        low, high: smallest and largest inertia of the free motions; between them lie the
            virtual masses of least condition [A16, eq. 12].
        cond: condition of `M_bar` [A16, eq. 14].
        S_ob: (nv, nv) `I - M M̄⁻¹ P`; `f_c = -S_ob (f + f_passive - h + M A⁺ c)`.
        rank: of A.

    Args:
        system: the mechanism; its M at least positive definite on null(A).
        virtual_mass: μ > 0; default the mean inertia of the free motions.
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.

    Raises:
        ProblemError: μ is not positive.
        UnsupportedFeatureError: rows nonlinear in v.
    """
    require_positive("virtual_mass", virtual_mass)
    state: State[ca.MX] = state_symbols(system, ca.MX)
    matrices = moving_terms_fun(system)(**state.inputs)
    M, A = matrices["M"], matrices["A"]
    rule = drop_rule(system, state, Treatment(row_scale, rank_tol, pivot))
    factor = complete_factor(A, **rule)
    P, rank = complement(factor.basis.V), factor.basis.rank
    Lambda = path_rate(factor.pinv_times(ca.MX.eye(system.nc)), matrices["Adot"])
    if virtual_mass is None:
        mass = mean_mass(M, P, rank)
        Mdot, Pdot = matrices["Mdot"], projector_rate(P, Lambda)
        mass_rate = mean_mass_rate(M, Mdot, P, Pdot, rank)
    else:
        mass, mass_rate = ca.MX(virtual_mass), ca.MX(0)
    interval = mass_interval(M, P, rank)
    outputs = {
        "P": P,
        "Lambda": Lambda,
        "Omega": turning_rate(Lambda),
        "M_bar": constraint_mass(M, P, mass),
        "C_bar": constraint_coriolis(M, matrices["C"], P, Lambda, mass, mass_rate),
        "virtual_mass": mass,
        "low": interval.low,
        "high": interval.high,
        "cond": mass_condition(M, P, mass),
        "S_ob": force_projection(M, P, mass),
        "rank": rank,
    }
    return dense_function("virtual_mass_terms", state.inputs, outputs)


@checked
@takes_parameters
def actuation_map(
    system: System,
    *,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v, [t], [mask]) → (Gamma_u, R_ob, complete)  [A16, section 3.1].

    `u = Gamma_u f∥` are the controls of least norm for a desired force along the constraint,
    `f = R_ob f∥` is then the generalised force, and `complete` is one where the actuators reach
    every motion. v is read only where constraint rows are nonlinear in v.

    Args:
        system: a mechanism with actuators.
        row_scale, rank_tol, pivot: drop rule; see `Treatment` for the constraint rows.
    """
    state: State[ca.MX] = state_symbols(system, ca.MX)
    A = terms_fun(system)(**state.inputs)["A"]
    rule = drop_rule(system, state, Treatment(row_scale, rank_tol, pivot))
    factor = complete_factor(A, **rule)
    P, B = complement(factor.basis.V), evaluate(system.actuation, {"q": state.q, "v": state.v})
    force_map = actuator_map(B, P, factor.basis.rank)
    return dense_function("actuation_map", state.inputs, force_map._asdict())
