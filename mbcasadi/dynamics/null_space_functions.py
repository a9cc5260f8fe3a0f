"""A mechanism in its independent directions, as named Functions  [S20, eq. 16-21]."""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.terms import Treatment, choose_kind, drop_rule, state_symbols, terms_at
from mbcasadi.formulation.null_space import null_space_inverse, reduced_equations
from mbcasadi.linalg import RANK_TOL
from mbcasadi.system import System, evaluate
from mbcasadi.system.parametric import takes_parameters


@checked
@takes_parameters
def null_space_terms(
    system: System,
    *,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v, [t], [mask]) → the equations of motion without multipliers  [S20, eq. 19].

    `M_r y + h_r = Zᵀ f` with `a = a_across + Z y`, passive forces inside `h_r`.

    Outputs:
        Z: (nv, nv) orthonormal basis of null(A) after zero columns; it may jump where the
            order of the pivots changes.
        M_r: (nv, nv) `Zᵀ M Z`, one on the diagonal where `Z` has a zero column.
        h_r: (nv, 1) `Zᵀ (h - M A⁺ c)`.
        a_across: (nv, 1) `-A⁺ c`, the acceleration that the constraint requires.

    Args:
        system: the mechanism; its M at least positive definite on null(A).
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.
    """
    state = state_symbols(system, choose_kind(system, pivot))
    M, h, A, c = terms_at(system, state)
    rule = drop_rule(system, state, Treatment(row_scale, rank_tol, pivot))
    equations = reduced_equations(M, h, A, c, **rule)
    return _function("null_space_terms", state.inputs, equations._asdict())


@checked
@takes_parameters
def null_space_inverse_dynamics(
    system: System,
    *,
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v, a, [t], [mask]) → (u, lam, residual): S20's inverse dynamics, eq. 20-21.

    `u` is the control of minimum Euclidean norm, which depends on the units of controls;
    `constrained_inverse_dynamics` takes a metric. `residual` (nv, 1) is what neither actuators nor
    constraints can give: zero where the motion is possible [S20, eq. 14]. `a` must obey
    `A a + c = 0`; ranges of u are not considered. With `control_metric=np.ones(nu)` and coordinates
    of one size the control of that function is the same one,
    computed with `Z` in the place of the projector.

    Args:
        system: the mechanism, with actuators.
        row_scale, rank_tol, pivot: drop rule; see `Treatment` for the rows of A.
    """
    kind = choose_kind(system, pivot)
    state, a = state_symbols(system, kind), kind.sym("a", system.nv)
    M, h, A, _ = terms_at(system, state)
    h = h - system.actuator_bias(state.q, state.v)
    rule = drop_rule(system, state, Treatment(row_scale, rank_tol, pivot))
    solution = null_space_inverse(
        M, h, A, evaluate(system.actuation, {"q": state.q, "v": state.v}), a, **rule
    )
    inputs = {"q": state.q, "v": state.v, "a": a} | state.last
    return _function("null_space_inverse_dynamics", inputs, solution._asdict())


def _function(name: str, inputs: dict[str, ca.MX], outputs: dict[str, ca.MX]) -> ca.Function:
    values = [ca.densify(value) for value in outputs.values()]
    return ca.Function(
        name, list(inputs.values()), values, list(inputs), list(outputs), {"cse": True}
    )
