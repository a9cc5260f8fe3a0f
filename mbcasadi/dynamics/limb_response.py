"""The response of constrained motion, limb by limb, whatever the rank.

With `M = Lᵀ L`, `G = A L⁻¹` and `y = L a` a motion is the y nearest to the free one with
`G y + c = 0` (`formulation.limbwise`). Read as a measurement without noise of a y with unit
covariance, row by row, what the rows leave of the covariance is the response to a force:

    a_f = L⁻¹ (T Tᵀ + F Fᵀ) L⁻ᵀ,   a_c = -L⁻¹ G⁺,   lam_c = -G⁺ᵀ G⁺.

T has as many columns as the limbs share, F the blocks of the limbs (`limb_covariance`). Joints that
no row touches are free: they follow those that carry them with `a_free = S a - M_free⁻¹ f`,

    a_f = [1; S] (root rootᵀ + rest) [1; S]ᵀ + M_free⁻¹,   a_c = [1; S] a_c.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.dynamics.limb_covariance import covariance
from mbcasadi.formulation.limbwise import remainder_limits
from mbcasadi.linalg import (
    response_loops,
    tree_cholesky,
    tree_solve_lower,
    tree_solve_transposed,
)
from mbcasadi.linalg.response_loops import padded_rows

OUTPUTS = ("K", "a_f", "lam_f", "N_left")
"""Outputs of `dynamics.response.response_fun`."""


class LimbFactors(NamedTuple):
    """What the response is made of, sparse like the limbs but for B.

    Fields: `B` (nb + nc, nt) rows `Tᵀ` and `-(G⁺)ᵀ` in the turned coordinates of touched dofs; `U`
    (nt, nv), with `a = Uᵀ` times these coordinates; `rest` (nv, nv), what limbs and free joints
    add to `a_f`; `N_left` (nc, nc), the projector `I - A A⁺` on contradictions.
    """

    B: ca.SX
    U: ca.SX
    rest: ca.SX
    N_left: ca.SX


def limb_response_fun(
    M: ca.Sparsity,
    A: ca.Sparsity,
    rank_tol: float,
    *,
    contradictions: bool = True,
    scalars: bool = False,
) -> ca.Function:
    """Return (M, A, row_scale) → `OUTPUTS` of `dynamics.response`.

    Args:
        M: (nv, nv) pattern of the inertia, positive definite; a tree's structural zeros are used.
        A: (nc, nv) pattern of the constraint Jacobian, of any rank; its zeros define the limbs.
        rank_tol: drop rule of `formulation.limbwise`, with `row_scale` (nc, 1).
        contradictions: make `N_left`; it has no entries else.
        scalars: K in scalar code too, else in loops.
    """
    names = ["M", "A", "row_scale"]
    patterns = [M, A, ca.Sparsity.dense(A.size1(), 1)]
    given = [ca.SX.sym(name, pattern) for name, pattern in zip(names, patterns, strict=True)]
    factors = limb_factors(given[0], given[1], given[2], rank_tol)
    if not contradictions:
        factors = factors._replace(N_left=ca.SX(*factors.N_left.shape))
    nb = factors.B.shape[0] - A.size1()
    if scalars:
        made = _scalar_response(factors, nb)
        return ca.Function("response", given, made, names, [*OUTPUTS], {"cse": True})
    factors = factors._replace(B=padded_rows(factors.B))
    first = ca.Function("limb_factors", given, [*factors], names, [*factors._fields], {"cse": True})
    symbols = [ca.MX.sym(name, pattern) for name, pattern in zip(names, patterns, strict=True)]
    B, U, rest, N_left = first.call(symbols)
    outputs = [*response_loops.response(B, U, rest, (nb, A.size1())), N_left]
    return ca.Function("response", symbols, outputs, names, [*OUTPUTS])


def limb_factors(M: ca.SX, A: ca.SX, row_scale: ca.SX | float, rank_tol: float) -> LimbFactors:
    """Return the factors of the response; see the module's docstring.

    Args:
        M, A: (nv, nv), (nc, nv) as in `limb_response_fun`.
        row_scale, rank_tol: drop rule of `formulation.limbwise`.
    """
    L = tree_cholesky(M)
    X = tree_solve_transposed(L, A.T)
    left = covariance(X.T, remainder_limits(A, X, row_scale, rank_tol))
    touched = left.touched
    free = [i for i in range(M.shape[0]) if i not in touched]
    L_free, nv = L[free, free], M.shape[0]
    of_touched, inverse = (
        tree_solve_lower(factor, x)
        for factor, x in ((L[touched, touched], left.Q), (L_free, ca.SX.eye(len(free))))
    )
    U, rest = ca.SX(len(touched), nv), ca.SX(nv, nv)
    U[:, touched] = of_touched.T
    U[:, free] = -(tree_solve_lower(L_free, L[free, touched]) @ of_touched).T
    F = U.T @ ca.diag(left.free)
    rest[free, free] = inverse @ inverse.T
    rest = ca.sparsify(rest + F @ F.T)
    N_left = ca.SX.eye(A.shape[0]) - X[touched, :].T @ left.Q @ left.Y
    B = ca.densify(ca.horzcat(left.T, -left.Y).T)
    return LimbFactors(B, ca.sparsify(U), rest, N_left)


def _scalar_response(factors: LimbFactors, nb: int) -> list[ca.SX]:
    of_dofs, S = factors.B @ factors.U, factors.B[nb:, :]
    a_f = of_dofs[:nb, :].T @ of_dofs[:nb, :] + factors.rest
    C = of_dofs[nb:, :]
    K = padded_rows(ca.blockcat([[a_f, C.T], [C, -S @ S.T]]))
    return [K, ca.densify(a_f), ca.densify(C), factors.N_left]
