"""The response of constrained motion, limb by limb, whatever the rank.

With `M = Lᵀ L`, `G = A L⁻¹` and `y = L a` a motion is the y nearest to the free one with
`G y + c = 0` (`formulation.limbwise`). Read as a measurement without noise of a y with unit
covariance, row by row, what the rows leave of the covariance is the response to a force:

    a_f = L⁻¹ (T Tᵀ + F) L⁻ᵀ,   a_c = -L⁻¹ V R⁺ᵀ,   lam_c = -R⁺ R⁺ᵀ,   Gᵀ = V R.

`limb_covariance` has the steps.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.dynamics.limb_covariance import covariance
from mbcasadi.formulation.limbwise import remainder_limits
from mbcasadi.linalg import (
    row_basis,
    tree_cholesky,
    tree_solve_lower,
    tree_solve_transposed,
)


class LimbFactors(NamedTuple):
    """What the response is made of; see the head of this file.

    Fields: `L` (nv, nv); `V` (nv, nc) orthonormal or zero columns; `R` (nc, nc) upper triangular;
    `order` (nc, nc) a permutation, `Gᵀ = V R orderᵀ`; `kept` (nc, 1) flags; `left` (nv, ·) a root
    of `T Tᵀ + F`.
    """

    L: ca.SX
    V: ca.SX
    R: ca.SX
    order: ca.SX
    kept: ca.SX
    left: ca.SX


class LimbResponse(NamedTuple):
    """Response to a unit of force and of constraint bias.

    Fields: `a_f` (nv, nv), `a_c` (nv, nc), `lam_c` (nc, nc) as in `dynamics.response`; `N_left`
    (nc, nc), the projector `I - A A⁺` on contradictions.
    """

    a_f: ca.SX
    a_c: ca.SX
    lam_c: ca.SX
    N_left: ca.SX


def limb_response_fun(M: ca.Sparsity, A: ca.Sparsity, rank_tol: float) -> ca.Function:
    """Return (M, A, row_scale) → (a_f, a_c, lam_c, N_left), as two Functions of scalars.

    Args:
        M: (nv, nv) pattern of the inertia, positive definite; a tree's structural zeros are used.
        A: (nc, nv) pattern of the constraint Jacobian, of any rank; its zeros tell the limbs.
        rank_tol: drop rule of `formulation.limbwise`, with `row_scale` (nc, 1).
    """
    names = ["M", "A", "row_scale"]
    patterns = [M, A, ca.Sparsity.dense(A.size1(), 1)]
    given = [ca.SX.sym(name, pattern) for name, pattern in zip(names, patterns, strict=True)]
    parts = limb_factors(given[0], given[1], given[2], rank_tol)
    first = ca.Function("limb_factors", given, [*parts], names, [*parts._fields], {"cse": True})
    held = LimbFactors(*(ca.SX.sym(key, part.sparsity()) for key, part in parts._asdict().items()))
    made = limb_response(held)
    second = ca.Function("limb_response", [*held], [*made], [*held._fields], [*made._fields])
    symbols = [ca.MX.sym(name, pattern) for name, pattern in zip(names, patterns, strict=True)]
    outputs = second.call(first.call(symbols))
    return ca.Function("response", symbols, outputs, names, [*made._fields])


def limb_factors(M: ca.SX, A: ca.SX, row_scale: ca.SX | float, rank_tol: float) -> LimbFactors:
    """Return the factors of the response.

    Args:
        M, A: (nv, nv), (nc, nv) as in `limb_response_fun`.
        row_scale, rank_tol: drop rule of `formulation.limbwise`.
    """
    L = tree_cholesky(M)
    X = tree_solve_transposed(L, A.T)
    return LimbFactors(L, *covariance(X.T, remainder_limits(A, X, row_scale, rank_tol)))


def limb_response(factors: LimbFactors) -> LimbResponse:
    """Return the response of motion; see the head of this file."""
    L, V, R, order, kept, left = factors
    U, R_pinv = (order @ part for part in _pseudo_inverse(R, kept))
    W = tree_solve_lower(L, left)
    a_c = -tree_solve_lower(L, V) @ R_pinv.T
    a_f, lam_c, reached = (_gram(part) for part in (W, R_pinv, U))
    return LimbResponse(a_f, ca.densify(a_c), -lam_c, ca.SX.eye(V.shape[1]) - reached)


def _gram(B: ca.SX) -> ca.SX:
    """Return `B Bᵀ`; the lower half is that of the upper one."""
    upper = ca.triu(B @ B.T)
    return ca.densify(upper + ca.triu(upper, False).T)


def _pseudo_inverse(R: ca.SX, kept: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return U and `R⁺ = U T⁻¹` of `R = T Uᵀ`, with orthonormal or zero columns of U."""
    last_first = list(reversed(range(R.shape[0])))
    basis = row_basis(R[last_first, :], row_scale=0.0, rank_tol=0.0, pivot=False)
    T = ca.triu(basis.R.T[last_first, last_first] + ca.diag(1 - kept))
    U = basis.V[:, last_first]
    return U, ca.solve(T.T, U.T).T
