"""The response of constrained motion, limb by limb, whatever the rank.

With `M = Lᵀ L`, `G = A L⁻¹` and `y = L a` a motion is the y nearest to the free one with
`G y + c = 0` (`formulation.limbwise`). Read as a measurement without noise of a y with unit
covariance, row by row, what the rows leave of the covariance is the response to a force:

    a_f = L⁻¹ (T Tᵀ + F Fᵀ) L⁻ᵀ,   a_c = -L⁻¹ G⁺,   lam_c = -G⁺ᵀ G⁺.

T has as many columns as the limbs share, F the blocks of the limbs (`limb_covariance`). Joints that
no row touches are free: they follow those that carry them with `a_free = S a - M_free⁻¹ f`,

    a_f = [1; S] (root rootᵀ + rest) [1; S]ᵀ + M_free⁻¹,   a_c = [1; S] a_c.
"""

import casadi as ca

from mbcasadi.dynamics.limb_covariance import covariance
from mbcasadi.formulation.limbwise import remainder_limits
from mbcasadi.linalg import tree_cholesky, tree_solve_lower, tree_solve_transposed


def limb_response_fun(
    M: ca.Sparsity, A: ca.Sparsity, rank_tol: float, *, contradictions: bool = True
) -> ca.Function:
    """Return (M, A, row_scale) → (K, N_left) of `dynamics.response`, as one Function of scalars.

    Args:
        M: (nv, nv) pattern of the inertia, positive definite; a tree's structural zeros are used.
        A: (nc, nv) pattern of the constraint Jacobian, of any rank; its zeros tell the limbs.
        rank_tol: drop rule of `formulation.limbwise`, with `row_scale` (nc, 1).
        contradictions: make `N_left`; it has no entries else.
    """
    names = ["M", "A", "row_scale"]
    patterns = [M, A, ca.Sparsity.dense(A.size1(), 1)]
    given = [ca.SX.sym(name, pattern) for name, pattern in zip(names, patterns, strict=True)]
    K, N_left = limb_response(given[0], given[1], given[2], rank_tol)
    N_left = N_left if contradictions else ca.SX(*N_left.shape)
    return ca.Function("response", given, [K, N_left], names, ["K", "N_left"], {"cse": True})


def limb_response(
    M: ca.SX, A: ca.SX, row_scale: ca.SX | float, rank_tol: float
) -> tuple[ca.SX, ca.SX]:
    """Return K and N_left; see the head of this file.

    Args:
        M, A: (nv, nv), (nc, nv) as in `limb_response_fun`.
        row_scale, rank_tol: drop rule of `formulation.limbwise`.
    """
    L = tree_cholesky(M)
    X = tree_solve_transposed(L, A.T)
    left = covariance(X.T, remainder_limits(A, X, row_scale, rank_tol))
    touched = left.touched
    free = [i for i in range(M.shape[0]) if i not in touched]
    L_free, of_touched = L[free, free], L[touched, touched]
    follow = ca.sparsify(-tree_solve_lower(L_free, L[free, touched]))
    root, F, Y = (tree_solve_lower(of_touched, x[touched, :]) for x in (left.T, left.F, left.Y))
    a_c = ca.SX(*left.Y.shape)
    a_c[touched, :], a_c[free, :] = -Y, -follow @ Y
    a_f = _response_to_force(_gram(root) + _gram(F), follow, L_free, (touched, free))
    K = ca.blockcat([[a_f, a_c], [a_c.T, -_gram(left.Y.T)]])
    return ca.densify(K), ca.SX.eye(A.shape[0]) - X.T @ left.Y


def _response_to_force(
    core: ca.SX, follow: ca.SX, L_free: ca.SX, dofs: tuple[list[int], list[int]]
) -> ca.SX:
    """Return (nv, nv) `a_f`.

    Args:
        core: (nt, nt) its block of the touched dofs.
        follow: (nf, nt), the S of this file's head.
        L_free: (nf, nf) factor of the inertia of free dofs.
        dofs: touched and free ones.
    """
    touched, free = dofs
    n = len(touched) + len(free)
    a_f, followed = ca.SX(n, n), follow @ core
    inverse = tree_solve_lower(L_free, ca.SX.eye(len(free)))
    own = ca.triu(followed @ follow.T) + ca.triu(inverse @ inverse.T)
    a_f[touched, touched] = core
    a_f[free, touched], a_f[touched, free] = followed, followed.T
    a_f[free, free] = own + ca.triu(own, False).T
    return a_f


def _gram(B: ca.SX) -> ca.SX:
    """Return `B Bᵀ`; the lower half is that of the upper one."""
    upper = ca.triu(B @ B.T)
    return ca.SX(upper + ca.triu(upper, False).T)
