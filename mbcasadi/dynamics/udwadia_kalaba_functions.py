"""The constraint force of a mechanism in its ideal and non-ideal part, as a Function  [L15]."""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.terms import Treatment, choose_kind, drop_rule, state_symbols, terms_at
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.formulation.root import ROOTS
from mbcasadi.formulation.udwadia_kalaba import gauss_deviation, nonideal_split
from mbcasadi.linalg import RANK_TOL, root_operations, tree_cholesky, tree_solve
from mbcasadi.shapes import require_name
from mbcasadi.system import System
from mbcasadi.system.parametric import takes_parameters


@checked
@takes_parameters
def udwadia_kalaba_terms(
    system: System,
    *,
    root: str = "cholesky",
    row_scale: float | None = None,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ca.Function:
    """Return (q, v, f, f_nonideal, [t], [mask]) → the motion and both parts of its force.

    Outputs:
        a: (nv, 1) acceleration  [L15, eq. 13].
        f_ideal: (nv, 1) `Aᵀ lam`, the same with and without `f_nonideal`  [L15, eq. 11].
        f_n: (nv, 1) the part of `f_nonideal` that acts on the motion  [L15, eq. 12].
        lam: (nc, 1) multipliers of minimum Euclidean norm; those of rows that repeat depend on
            the units of the rows.
        a_free: (nv, 1) acceleration without the constraint, `f_nonideal` applied.
        deviation: `(a - a_free)ᵀ M (a - a_free)`, least among all admissible `a` (Gauss).

    Args:
        system: the mechanism; its M positive definite.
        root: "cholesky" or "symmetric"; the same result, the first is cheaper.
        row_scale, rank_tol, pivot: drop rule; see `Treatment`.

    Raises:
        UnknownNameError: no such root; the message lists the names.
        UnsupportedFeatureError: M is only semidefinite.
    """
    require_name("root", root, ROOTS)
    if system.semidefinite:
        raise UnsupportedFeatureError(
            f"a root factor needs a positive definite M, but the M of '{system.name}' is "
            "singular; use forward_dynamics with 'lagrange' or 'virtual_mass'"
        )
    of_root = root_operations(system.nv) if root == "symmetric" else 0
    kind = choose_kind(system, pivot, of_root)
    state = state_symbols(system, kind)
    f, C = kind.sym("f", system.nv), kind.sym("f_nonideal", system.nv)
    M, h, A, c = terms_at(system, state)
    rule = drop_rule(system, state, Treatment(row_scale, rank_tol, pivot))
    split = nonideal_split(M, h, f, A, c, C, root=root, **rule)
    a_free = tree_solve(tree_cholesky(M), f + C - h)
    outputs = split._asdict() | {"a_free": a_free}
    outputs["deviation"] = gauss_deviation(M, split.a, a_free)
    inputs = {"q": state.q, "v": state.v, "f": f, "f_nonideal": C} | state.last
    return ca.Function(
        "udwadia_kalaba_terms",
        list(inputs.values()),
        [ca.densify(value) for value in outputs.values()],
        list(inputs),
        list(outputs),
        {"cse": True},
    )
