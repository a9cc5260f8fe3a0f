"""Constrained motion by Gauss's principle, limb by limb.

With `M = Lᵀ L`, `X = L⁻ᵀ Aᵀ` and `y = L a`, the motion is the y nearest to the free one,

    least |y - y0|,   y0 = L⁻ᵀ (f - h),   with   Xᵀ y + c = 0          [A05, section 2; L15, eq. 5]

`L` and X keep the zeros of a kinematic tree: the rows of a leg touch the joints of the leg and of
what carries it. So each limb is eliminated by itself, and what joins the limbs is as small as
their common carrier (`linalg.limb_factor`), whatever the rank. Neither `A M⁻¹ Aᵀ` nor a
projector is formed.

Lengths are those of the kinetic energy here. A row is dropped when what the rows before it leave
of it is, as a share of the row, at most `rank_tol · max(1, row_scale / |A_i|)`.
"""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description.tolerance import tolerance
from mbcasadi.formulation.lagrange import lagrange
from mbcasadi.formulation.motion import ConstrainedMotion, require_motion
from mbcasadi.formulation.udwadia_kalaba import udwadia_kalaba
from mbcasadi.linalg import (
    RANK_TOL,
    DropRule,
    Sym,
    limb_factor,
    limbs_of,
    tree_cholesky,
    tree_solve_lower,
    tree_solve_transposed,
)
from mbcasadi.shapes import require_scale


@checked
def limbwise(
    M: Sym,
    h: Sym,
    f: Sym,
    A: Sym,
    c: Sym,
    *,
    semidefinite: bool = False,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ConstrainedMotion[Sym]:
    """Return `a = L⁻¹ y` with the y nearest to `L⁻ᵀ (f - h)`.

    Scalar code (SX) with a definite M uses the structural zeros of M and A. Other kinds are solved
    in loops by `udwadia_kalaba`, and a semidefinite M by `lagrange`, which give the same motion.

    Args:
        M: (nv, nv) inertia, symmetric positive definite; a tree's structural zeros are used.
        h: (nv, 1) bias force, passive forces subtracted.
        f: (nv, 1) applied force.
        A: (nc, nv) constraint Jacobian, of any rank.
        c: (nc, 1) constraint bias, `A a + c = 0`.
        semidefinite: M is positive semidefinite, and definite on null(A).
        row_scale, rank_tol: drop rule of `linalg.row_basis`, shares of rows measured as above.
        pivot: of these two; rows are exchanged inside limbs in any case.
    """
    require_motion(M, h, f, A, c)
    rule: DropRule = {"row_scale": row_scale, "rank_tol": rank_tol, "pivot": pivot}
    if semidefinite:
        return lagrange(M, h, f, A, c, semidefinite=True, **rule)
    if not isinstance(A, ca.SX):
        return udwadia_kalaba(M, h, f, A, c, **rule)
    require_scale("row_scale", row_scale, A.shape[0])
    L = tree_cholesky(M)
    y0 = tree_solve_transposed(L, f - h)
    rows = sorted(set(A.sparsity().row()))  # no multiplier of the others acts
    lam = ca.SX.zeros(A.shape[0])
    scale = ca.SX(row_scale) * ca.SX.ones(A.shape[0])
    X = tree_solve_transposed(L, A[rows, :].T)
    limits = remainder_limits(A[rows, :], X, scale[rows], rank_tol)
    y, lam[rows] = limb_factor(X.T, limits).nearest(y0, c[rows])
    return ConstrainedMotion(tree_solve_lower(L, y), A.T @ lam, lam)


def remainder_limits(
    A: ca.SX, X: ca.SX, row_scale: ca.SX | ca.DM | float, rank_tol: float
) -> ca.SX:
    """Return the (nc, 1) squared lengths at or below which a remainder of X counts as zero."""
    size2 = ca.densify(ca.sum2(A**2))
    there = size2 > 0
    share = ca.densify(ca.sum1(X**2).T) / ca.if_else(there, size2, 1)
    return tolerance(rank_tol) ** 2 * ca.if_else(there, share * ca.fmax(size2, row_scale**2), 1)


def limbwise_operations(M: ca.Sparsity, A: ca.Sparsity) -> int:
    """Return about how many operations `limbwise` takes on matrices with these patterns."""
    L = np.tril(_filled(M))
    X = _filled(A).T
    count = 0
    for k in reversed(range(L.shape[0])):  # what elimination fills, as `tree_cholesky` goes
        carriers = np.flatnonzero(L[k, :k])
        L[np.ix_(carriers, carriers)] |= np.tri(carriers.size, dtype=bool)
        X[carriers] |= X[k]
        count += carriers.size**2 + 2 * carriers.size * int(X[k].sum() + 3)
    return count + limbs_of(ca.sparsify(ca.DM(X.T.astype(float))).sparsity()).operations


def _filled(pattern: ca.Sparsity) -> NDArray[np.bool_]:
    return np.array(ca.DM(pattern, 1), dtype=bool).reshape(pattern.shape)
