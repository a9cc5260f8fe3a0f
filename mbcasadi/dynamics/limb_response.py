"""The response of constrained motion, limb by limb, whatever the rank.

With `M = Lᵀ L`, `G = A L⁻¹` and `y = L a` a motion is the y nearest to the free one with
`G y + c = 0` (`formulation.limbwise`). Read as a measurement without noise of a y with unit
covariance, row by row, what the rows leave of the covariance is the response to a force:

    a_f = L⁻¹ (T Tᵀ + F Fᵀ) L⁻ᵀ,   a_c = -L⁻¹ G⁺,   lam_c = -G⁺ᵀ G⁺.

T has as many columns as the limbs share, F the blocks of the limbs (`limb_covariance`). Joints that
no row touches are free: they follow those that carry them with `a_free = S a - M_free⁻¹ f`,

    a_f = [1; S] (root rootᵀ + rest) [1; S]ᵀ + M_free⁻¹,   a_c = [1; S] a_c.
"""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca

from mbcasadi.dynamics.limb_covariance import covariance
from mbcasadi.formulation.limbwise import remainder_limits
from mbcasadi.linalg import tree_cholesky, tree_solve, tree_solve_lower, tree_solve_transposed


class LimbResponse(NamedTuple):
    """Response to a unit of force and of constraint bias.

    Fields: `a_f` (nv, nv), `a_c` (nv, nc), `lam_c` (nc, nc) as in `dynamics.response`; `N_left`
    (nc, nc), the projector `I - A A⁺` on contradictions; and the parts of `a_f`, which are sparse
    like the limbs: of touched dofs `root` (nt, ·) and `rest` (nt, nt), of free ones `follow`
    (nf, nt), the S of this file's head, and `L_free` (nf, nf), the factor of their inertia.
    """

    a_f: ca.SX
    a_c: ca.SX
    lam_c: ca.SX
    N_left: ca.SX
    root: ca.SX
    rest: ca.SX
    follow: ca.SX
    L_free: ca.SX


@dataclass(frozen=True)
class Dofs:
    """The dofs that some row touches in the coordinates y, and the others."""

    touched: list[int]
    free: list[int]


@dataclass(frozen=True)
class LimbwiseResponse:
    """The response as a Function, and what uses the zeros of its parts.

    Attributes:
        function: (M, A, row_scale) → the fields of `LimbResponse`.
        dofs: in the parts.
    """

    function: ca.Function
    dofs: Dofs

    def slopes_fun(self, rho_1: ca.Sparsity, rho_2: ca.Sparsity) -> ca.Function:
        """Return (parts of the response, rho_1, rho_2) → (da, dlam).

        `da = a_c rho_2 - a_f rho_1` and `dlam = lam_c rho_2 - a_cᵀ rho_1`.

        Args:
            rho_1: pattern of derivatives of forces, (nv, k).
            rho_2: pattern of derivatives of constraint bias, (nc, k).
        """
        names = ["a_c", "lam_c", "root", "rest", "follow", "L_free"]
        parts = {key: ca.SX.sym(key, self.function.sparsity_out(key)) for key in names}
        touched, free = self.dofs.touched, self.dofs.free
        force, bias = ca.SX.sym("rho_1", rho_1), ca.SX.sym("rho_2", rho_2)
        on_free, root, a_c = force[free, :], parts["root"], parts["a_c"][touched, :]
        on_touched = force[touched, :] + parts["follow"].T @ on_free
        moved = a_c @ bias - root @ (root.T @ on_touched) - parts["rest"] @ on_touched
        da = ca.SX(*force.shape)
        da[touched, :] = moved
        da[free, :] = parts["follow"] @ moved - tree_solve(parts["L_free"], on_free)
        dlam = parts["lam_c"] @ bias - a_c.T @ on_touched
        inputs = parts | {"rho_1": force, "rho_2": bias}
        outputs = [ca.densify(da), ca.densify(dlam)]
        return ca.Function("slopes", [*inputs.values()], outputs, [*inputs], ["da", "dlam"])


def limb_response_fun(
    M: ca.Sparsity, A: ca.Sparsity, rank_tol: float, *, contradictions: bool = True
) -> LimbwiseResponse:
    """Return the response of motion; see the head of this file.

    Args:
        M: (nv, nv) pattern of the inertia, positive definite; a tree's structural zeros are used.
        A: (nc, nv) pattern of the constraint Jacobian, of any rank; its zeros tell the limbs.
        rank_tol: drop rule of `formulation.limbwise`, with `row_scale` (nc, 1).
        contradictions: make `N_left`; it has no entries else.
    """
    names = ["M", "A", "row_scale"]
    patterns = [M, A, ca.Sparsity.dense(A.size1(), 1)]
    given = [ca.SX.sym(name, pattern) for name, pattern in zip(names, patterns, strict=True)]
    unit, dofs = _limb_response(given[0], given[1], given[2], rank_tol)
    unit = unit if contradictions else unit._replace(N_left=ca.SX(*unit.N_left.shape))
    function = ca.Function("response", given, [*unit], names, [*unit._fields], {"cse": True})
    return LimbwiseResponse(function, dofs)


def _limb_response(
    M: ca.SX, A: ca.SX, row_scale: ca.SX, rank_tol: float
) -> tuple[LimbResponse, Dofs]:
    L = tree_cholesky(M)
    X = tree_solve_transposed(L, A.T)
    left = covariance(X.T, remainder_limits(A, X, row_scale, rank_tol))
    dofs = Dofs(left.touched, [i for i in range(M.shape[0]) if i not in left.touched])
    touched, free = dofs.touched, dofs.free
    L_free, of_touched = L[free, free], L[touched, touched]
    follow = ca.sparsify(-tree_solve_lower(L_free, L[free, touched]))
    root, F, Y = (tree_solve_lower(of_touched, x[touched, :]) for x in (left.T, left.F, left.Y))
    rest, a_c = _gram(F), ca.SX(*left.Y.shape)
    a_c[touched, :], a_c[free, :] = -Y, -follow @ Y
    a_f = _response_to_force(_gram(root) + rest, follow, L_free, dofs)
    N_left = ca.SX.eye(A.shape[0]) - X.T @ left.Y
    lam_c = ca.densify(-_gram(left.Y.T))
    return LimbResponse(a_f, ca.densify(a_c), lam_c, N_left, root, rest, follow, L_free), dofs


def _response_to_force(core: ca.SX, follow: ca.SX, L_free: ca.SX, dofs: Dofs) -> ca.SX:
    """Return (nv, nv) `a_f`, with `core` (nt, nt) its block of the touched dofs."""
    touched, free = dofs.touched, dofs.free
    n = len(touched) + len(free)
    a_f, followed = ca.SX(n, n), follow @ core
    inverse = tree_solve_lower(L_free, ca.SX.eye(len(free)))
    own = ca.triu(followed @ follow.T) + ca.triu(inverse @ inverse.T)
    a_f[touched, touched] = core
    a_f[free, touched], a_f[touched, free] = followed, followed.T
    a_f[free, free] = own + ca.triu(own, False).T
    return ca.densify(a_f)


def _gram(B: ca.SX) -> ca.SX:
    """Return `B Bᵀ`; the lower half is that of the upper one."""
    upper = ca.triu(B @ B.T)
    return ca.SX(upper + ca.triu(upper, False).T)
