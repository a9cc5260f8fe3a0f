"""The response of constrained motion, limb by limb, whatever the rank.

With `M = Lᵀ L`, `G = A L⁻¹` and `y = L a` a motion is the y nearest to the free one with
`G y + c = 0` (`formulation.limbwise`). Read as a measurement without noise of a y with unit
covariance, row by row, what the rows leave of the covariance is the response to a force:

    a_f = L⁻¹ (T Tᵀ + F) L⁻ᵀ,   a_c = -L⁻¹ V R⁺ᵀ,   lam_c = -R⁺ R⁺ᵀ,   Gᵀ = V R.

The rows of a limb touch own and shared columns. Reflections turn the own ones, strongest row
first, such that row i has the shared part w, the parts l of directions before it and σ of one new
direction z_i. With T on shared columns and former directions, zero noise and unit variance of z_i,

    φ = Tᵀ [w; l],   α = |φ|² + σ²,   V_i = [T φ; σ]/√α,
    T ← T (I - φ φᵀ/(α + |σ| √α)),   T_i = -sign(σ) φᵀ/√α

(J. E. Potter's update; Battin, Astronautical Guidance, 1964). T has as many columns as there are
shared ones, and nothing is divided by σ. A row whose α is not above its threshold is dropped; its
z_i then stays free, as do directions that no row touches: they are F.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.formulation.limbwise import remainder_limits
from mbcasadi.linalg import (
    limbs_of,
    row_basis,
    tree_cholesky,
    tree_solve_lower,
    tree_solve_transposed,
)
from mbcasadi.linalg.householder import one_hot, reflector
from mbcasadi.linalg.limbs import Limb

LEAST_SCORE = 1e-40
"""Score of a row that is left without an own remainder: every step takes one row."""


class LimbFactors(NamedTuple):
    """What the response is made of; see the head of this file.

    Fields: `L` (nv, nv); `V` (nv, nc) orthonormal or zero columns; `R` (nc, nc); `kept` (nc, 1)
    flags; `left` (nv, ·) a root of `T Tᵀ + F`.
    """

    L: ca.SX
    V: ca.SX
    R: ca.SX
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
    V, R, kept, left = _covariance(X.T, remainder_limits(A, X, row_scale, rank_tol))
    return LimbFactors(L, V, R, kept, left)


def limb_response(factors: LimbFactors) -> LimbResponse:
    """Return the response of motion; see the head of this file."""
    L, V, R, kept, left = factors
    U, R_pinv = _pseudo_inverse(R, kept)
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


class _TurnedLimb(NamedTuple):
    """A limb after the reflections of its own columns.

    Fields: `columns` of it; `Q` (n, n) orthogonal; `rows` by strength.
    """

    columns: tuple[int, ...]
    Q: ca.SX
    rows: list["_Row"]


class _Row(NamedTuple):
    """A row after the reflections.

    Fields: `place` (m, 1) a one at the row of G; `shared` (1, nb) and `own` (1, k) parts, the last
    of `own` along its new direction, if `new`; `threshold2` (1, 1).
    """

    place: ca.SX
    shared: ca.SX
    own: ca.SX
    new: bool
    threshold2: ca.SX


class _Covariance:
    """What the rows so far leave of the unit covariance of shared columns and met directions.

    Attributes:
        T: (nb + k, nb) its root, beside free directions.
        V: (nb + k, rows) orthonormal or zero columns.
        R: (rows, m) coordinates of the rows of G.
        kept: a flag of each row.
        free: variance of each direction that is left beside T, one or zero.
    """

    def __init__(self, nb: int, m: int) -> None:
        self.T, self.V, self.R = ca.SX.eye(nb), ca.SX(nb, 0), ca.SX(0, m)
        self.kept: list[ca.SX] = []
        self.free: list[ca.SX] = []

    def measure(self, row: _Row, first: int) -> None:
        """Take up one row.

        Args:
            row: of a limb.
            first: place in T of the limb's first direction.
        """
        nb, known = self.T.shape[1], row.own[: row.own.numel() - row.new]
        sigma = row.own[-1] if row.new else ca.SX(1, 1)
        part = ca.horzcat(row.shared, ca.SX(1, first - nb), known)
        phi = (part @ self.T).T
        alpha = ca.sumsqr(phi) + sigma**2
        keep = alpha > row.threshold2
        size = ca.sqrt(ca.if_else(keep, alpha, 1))
        unit, reach = keep / size, self.T @ phi
        of_rows = ca.vertcat((part @ self.V).T, keep * size)
        self.R = ca.vertcat(self.R, ca.SX(1, self.R.shape[1]))
        self.R += of_rows @ row.place.T
        self.T = self.T - (reach * (unit / (size + ca.fabs(sigma)))) @ phi.T
        column = reach * unit
        if row.new:
            sign = ca.if_else(sigma < 0, -1, 1)
            self.T = ca.vertcat(self.T, -(sign * unit) * phi.T)
            self.V = ca.vertcat(self.V, ca.SX(1, self.V.shape[1]))
            column = ca.vertcat(column, sigma * unit)
            self.free.append(1 - keep)
        self.V = ca.horzcat(self.V, column)
        self.kept.append(keep)


def _covariance(G: ca.SX, threshold2: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return (n, m) V, (m, m) R with `Gᵀ = V R`, flags, and a root of what the rows leave.

    Args:
        G: (m, n) rows.
        threshold2: (m, 1) squared remainders at or below which a row is dropped.
    """
    m, n = G.shape
    limbs = limbs_of(G.sparsity())
    shared, nb = list(limbs.shared), len(limbs.shared)
    covariance = _Covariance(nb, m)
    turned: list[tuple[_TurnedLimb, slice]] = []
    for group in limbs.groups:
        limb = _turned_limb(G, group, shared, threshold2)
        first = covariance.T.shape[0]
        for row in limb.rows:
            covariance.measure(row, first)
        turned.append((limb, slice(first, covariance.T.shape[0])))
    V, left, untouched = ca.SX(n, m), ca.SX(n, nb), {*range(n)} - {*shared}
    if shared:
        V[shared, :], left[shared, :] = covariance.V[:nb, :], covariance.T[:nb, :]
    roots = []
    for limb, met in turned:
        columns, Q = list(limb.columns), limb.Q[:, : met.stop - met.start]
        V[columns, :], left[columns, :] = Q @ covariance.V[met, :], Q @ covariance.T[met, :]
        free = ca.SX.ones(limb.Q.shape[1])
        free[: met.stop - met.start] = ca.vertcat(
            ca.SX(0, 1), *covariance.free[met.start - nb : met.stop - nb]
        )
        root = ca.SX(n, limb.Q.shape[1])
        root[columns, :] = limb.Q @ ca.diag(free)
        roots.append(root)
        untouched -= {*columns}
    roots.append(ca.SX.eye(n)[:, sorted(untouched)])
    kept = ca.vertcat(ca.SX(0, 1), *covariance.kept)
    return ca.sparsify(V), ca.sparsify(covariance.R), kept, ca.sparsify(ca.horzcat(left, *roots))


def _turned_limb(G: ca.SX, limb: Limb, shared: list[int], threshold2: ca.SX) -> _TurnedLimb:
    """Return the rows of one limb after reflections of its own columns, strongest first."""
    places, columns = list(limb.rows), list(limb.columns)
    m, n = len(places), len(columns)
    # The reflections of the rows, and below the product of them.
    own = ca.vertcat(ca.densify(G[places, columns]), ca.SX.eye(n))
    limits, left, rows = threshold2[places], ca.SX.ones(m), []
    for k in range(m):
        e = left
        if k < m - 1:
            scores = ca.densify(ca.sum2(own[:m, k:] ** 2)) / limits
            e = one_hot(left * (scores + LEAST_SCORE))
            left = left - e
        if k < n:
            own = _reflected(own, (e.T @ own[:m, k:]).T)
        of_all = ca.SX(G.shape[0], 1)
        of_all[places] = e
        part = e.T @ own[:m, : min(k + 1, n)]
        rows.append(_Row(of_all, e.T @ G[places, shared], part, k < n, e.T @ limits))
    return _TurnedLimb(limb.columns, own[m:, :], rows)


def _reflected(own: ca.SX, x: ca.SX) -> ca.SX:
    """Return the matrix with its last columns reflected such that x lies along their first."""
    width = x.numel()
    if width == 1:
        return own
    head = ca.SX(ca.DM.eye(width)[:, 0])
    u, beta = reflector(x, head, ca.sumsqr(x) > 0)
    first = own.shape[1] - width
    tail = own[:, first:]
    return ca.horzcat(own[:, :first], tail - (tail @ u) @ (beta * u).T)
