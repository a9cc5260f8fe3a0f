"""The response of constrained motion to forces and to constraint bias, by one factorisation.

    [ M  -Aᵀ ] [ a   ]   [ r  ]        a   = a_f r + a_c c,
    [ A   0  ] [ lam ] = [ -c ]        lam = a_cᵀ r + lam_c c,

With `Aᵀ = V R`, `A⁺ = V Y` from the rows' factorisation, `M = Lᵀ L`, `Sᵀ S = Vᵀ M⁻¹ V`:

    a_f = M⁻¹ - Wᵀ W,   a_c = -Wᵀ G,   lam_c = -Gᵀ G,   W = S⁻ᵀ Vᵀ M⁻¹,   G = S⁻ᵀ Y,

for rows of any rank: `formulation.lagrange` for unit right-hand sides.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Generic, NamedTuple

import casadi as ca

from mbcasadi.dynamics.limb_response import limb_response_fun
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.formulation.lagrange import mean_inertia
from mbcasadi.formulation.limbwise import limbwise_operations
from mbcasadi.linalg import (
    UNROLL_LIMIT,
    CompleteFactor,
    DropRule,
    Sym,
    complete_factor,
    kind_for,
    operations,
    response_loops,
    tree_cholesky,
    tree_solve,
    tree_solve_lower,
    tree_solve_transposed,
)
from mbcasadi.linalg.loops import MOST_ROWS
from mbcasadi.linalg.response_loops import padded_rows

KEPT = 16
"""Responses that are kept: motion and derivatives of one mechanism have the same."""


class Response(NamedTuple, Generic[Sym]):
    """Response to a unit of force and of constraint bias.

    Fields: `a_f` (nv, nv) symmetric; `a_c` (nv, nc); `lam_c` (nc, nc); `factor` of A.
    The response of the multipliers to a force is `a_cᵀ`.
    """

    a_f: Sym
    a_c: Sym
    lam_c: Sym
    factor: CompleteFactor[Sym]


def response_fun(
    M: ca.Sparsity,
    A: ca.Sparsity,
    treatment: Treatment,
    semidefinite: bool,
    *,
    contradictions: bool = True,
    scalars: bool = False,
) -> ca.Function:
    """Return (M, A, row_scale) → (K, a_f, lam_f, N_left), the response of motion.

    `K = [a_f, a_c; lam_f, lam_c]` with `lam_f = a_cᵀ`, rows of zeros below (`response_loops`), and
    `N_left = I - A A⁺`. Limb by limb where M is definite and the
    motion itself is scalar code, a third as long; else by dense factors.

    Args:
        M, A: (nv, nv), (nc, nv) patterns.
        treatment: the drop rule.
        semidefinite: M is positive semidefinite, and definite on null(A).
        contradictions: N_left is needed.
        scalars: no loops in what is made limb by limb.
    """
    patterns = tuple(M.compress()), tuple(A.compress())
    rule = replace(treatment, baumgarte=None, row_scale=None)  # they are in c, and an input
    return _response_fun(patterns, rule, semidefinite, contradictions, scalars)


@lru_cache(maxsize=KEPT)
def _response_fun(
    patterns: tuple[tuple[int, ...], ...],
    treatment: Treatment,
    semidefinite: bool,
    contradictions: bool,
    scalars: bool,
) -> ca.Function:
    """Return the Function of `response_fun` for compressed patterns."""
    M, A = (ca.Sparsity.compressed(pattern) for pattern in patterns)
    if treatment.compact and not semidefinite and 0 < A.size1() <= MOST_ROWS:
        plain = replace(treatment, compact=False)
        made = response_fun(M, A, plain, semidefinite, contradictions=contradictions)
        return response_loops.constrained_response_fun(made, treatment.rank_tol)
    if not semidefinite and limbwise_operations(M, A) <= UNROLL_LIMIT:
        return limb_response_fun(
            M, A, treatment.rank_tol, contradictions=contradictions, scalars=scalars
        )
    nc, nv = A.shape
    count = 4 * nv * (nv + nc) ** 2  # solves for nv + nc columns
    count += 2 * operations(A, treatment.pivot) if nc else 0
    kind = kind_for(count)
    s = {"M": kind.sym("M", M), "A": kind.sym("A", A), "row_scale": kind.sym("row_scale", nc)}
    unit = response(s["M"], s["A"], treatment.rule(s["row_scale"]), semidefinite)
    blocks = ca.blockcat([[unit.a_f, unit.a_c], [unit.a_c.T, unit.lam_c]])
    outputs = {
        "K": padded_rows(kind(blocks)),
        "a_f": unit.a_f,
        "lam_f": unit.a_c.T,
        "N_left": kind.eye(nc) - unit.factor.U @ unit.factor.U.T,
    }
    dense = [ca.densify(part) for part in outputs.values()]
    return ca.Function("response", [*s.values()], dense, [*s], [*outputs], {"cse": True})


def response(M: Sym, A: Sym, rule: DropRule, semidefinite: bool = False) -> Response[Sym]:
    """Return `a = a_f r + a_c c`, `lam = a_cᵀ r + lam_c c` for `M a - Aᵀ lam = r`, `A a = -c`.

    An M that is definite on null(A) only gets inertia `s V Vᵀ` across the constraint, as in
    `formulation.lagrange`; multipliers alone know of it, `lam_c = s Yᵀ Y - Gᵀ G`.

    Args:
        M: (nv, nv) inertia; a tree's structural zeros are used.
        A: (nc, nv) constraint Jacobian, of any rank.
        rule: the drop rule.
        semidefinite: M is positive semidefinite, and definite on null(A).
    """
    kind = type(M)
    factor = complete_factor(A, **rule)
    V, used = factor.basis.V, factor.basis.used
    s = mean_inertia(M) if semidefinite else 0
    L = tree_cholesky(M + s * (V @ V.T) if semidefinite else M)
    X = tree_solve_transposed(L, V)  # M⁻¹ = L⁻¹ L⁻ᵀ
    S = tree_cholesky(X.T @ X + ca.diag(1 - used))
    W = tree_solve_lower(L, tree_solve_transposed(S, X.T).T).T
    Y = ca.solve(factor.T.T, factor.U.T)
    G = tree_solve_transposed(S, Y)
    lam_c = symmetric(s * (Y.T @ Y) - G.T @ G if semidefinite else -G.T @ G)
    a_f = symmetric(tree_solve(L, kind.eye(M.shape[0])) - W.T @ W)
    return Response(a_f, -W.T @ G, lam_c, factor)


def symmetric(matrix: Sym) -> Sym:
    """Return the matrix; in scalar code its lower half is that of the upper one."""
    if not isinstance(matrix, ca.SX):
        return ca.densify(matrix)
    return ca.densify(ca.triu(matrix) + ca.triu(matrix, False).T)
