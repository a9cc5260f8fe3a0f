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
z_i then stays free, as do directions that no row touches: they are F. The last rows of the limbs,
those that a straight leg leaves to the shared columns, are taken up by their size, so that no order
decides on a rank: their directions are columns of T from the start.
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

    Fields: `L` (nv, nv); `V` (nv, nc) orthonormal or zero columns; `R` (nc, nc) upper triangular;
    `order` (nc, nc) a permutation, `Gᵀ = V R orderᵀ`; `kept` (nc, 1) flags; `left` (nv, ·) a root of
    `T Tᵀ + F`.
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
    return LimbFactors(L, *_covariance(X.T, remainder_limits(A, X, row_scale, rank_tol)))


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
        T: (nb + k, ·) its root, beside free directions.
        V: (nb + k, rows) orthonormal or zero columns.
        R: (rows, rows) coordinates of the rows, upper triangular.
        order: (m, rows) a one at the row of G that each one is.
        kept: a flag of each row.
        free: variance of each direction that is left beside T, one or zero.
    """

    def __init__(self, nb: int, m: int) -> None:
        self.T, self.V = ca.SX.eye(nb), ca.SX(nb, 0)
        self.R, self.order = ca.SX(0, 0), ca.SX(m, 0)
        self.kept: list[ca.SX] = []
        self.free: list[ca.SX] = []

    def measure(self, row: _Row, met: list[int]) -> None:
        """Take up one row, and the direction of its own that is new.

        Args:
            row: of a limb, not its last one.
            met: places in T of the limb's directions; the new one is added.
        """
        part, sigma = self.part_of(row, met), row.own[-1]
        phi, unit = self._take(part, row.place, sigma**2, row.threshold2)
        size = ca.sqrt(ca.if_else(self.kept[-1], ca.sumsqr(phi) + sigma**2, 1))
        self.T = self.T - ((self.T @ phi) * (unit / (size + ca.fabs(sigma)))) @ phi.T
        sign = ca.if_else(sigma < 0, -1, 1)
        self._add_direction(-(sign * unit) * phi.T, met)
        self.V[-1, -1] = sigma * unit
        self.free.append(1 - self.kept[-1])

    def measure_by_size(self, rows: list[tuple[_Row, list[int]]]) -> None:
        """Take up the last rows of the limbs, the largest remainder beside its threshold first.

        Their own directions become columns of T, so that rows of several limbs can be exchanged.

        Args:
            rows: each with the places in T of its limb's directions; new ones are added.
        """
        for row, met in rows:
            if row.new:
                self.T = ca.horzcat(self.T, ca.SX(self.T.shape[0], 1))
                unit = ca.SX(1, self.T.shape[1])
                unit[-1] = 1
                self._add_direction(unit, met)
                self.free.append(ca.SX(1, 1))
        parts = ca.vertcat(*(self.part_of(row, met) for row, met in rows))
        places = ca.horzcat(*(row.place for row, _ in rows))
        limits = ca.vertcat(*(row.threshold2 for row, _ in rows))
        reach, left = parts @ self.T, ca.SX.ones(len(rows))
        for k in range(len(rows)):
            e = left
            if k < len(rows) - 1:
                e = one_hot(left * (ca.densify(ca.sum2(reach**2)) / limits + LEAST_SCORE))
                left = left - e
            phi, unit = self._take(e.T @ parts, places @ e, ca.SX(1, 1), e.T @ limits)
            shrunk = phi * unit**2
            self.T = self.T - (self.T @ phi) @ shrunk.T
            reach = reach - (reach @ phi) @ shrunk.T

    def part_of(self, row: _Row, met: list[int]) -> ca.SX:
        """Return (1, nb + k) the parts of a row in the places of T, without a new direction."""
        part = ca.SX(1, self.T.shape[0])
        if row.shared.numel():
            part[: row.shared.numel()] = row.shared
        if met:
            part[met] = row.own[: len(met)]
        return part

    def _take(
        self, part: ca.SX, place: ca.SX, own2: ca.SX, threshold2: ca.SX
    ) -> tuple[ca.SX, ca.SX]:
        """Add a row to V, R and the flags; return φ and `1/√α`, zero where it is dropped."""
        phi = (part @ self.T).T
        alpha = ca.sumsqr(phi) + own2
        keep = alpha > threshold2
        size = ca.sqrt(ca.if_else(keep, alpha, 1))
        unit = keep / size
        rows = self.R.shape[0]
        self.R = ca.horzcat(ca.vertcat(self.R, ca.SX(1, rows)), ca.SX(rows + 1, 1))
        self.R[:, -1] = ca.vertcat((part @ self.V).T, keep * size)
        self.order = ca.horzcat(self.order, place)
        self.V = ca.horzcat(self.V, (self.T @ phi) * unit)
        self.kept.append(keep)
        return phi, unit

    def _add_direction(self, root: ca.SX, met: list[int]) -> None:
        met.append(self.T.shape[0])
        self.T = ca.vertcat(self.T, root)
        self.V = ca.vertcat(self.V, ca.SX(1, self.V.shape[1]))


def _covariance(G: ca.SX, threshold2: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return V, R, the order of the rows, flags, and a root of what the rows leave.

    Args:
        G: (m, n) rows.
        threshold2: (m, 1) squared remainders at or below which a row is dropped.
    """
    m, n = G.shape
    limbs = limbs_of(G.sparsity())
    shared, nb = list(limbs.shared), len(limbs.shared)
    covariance = _Covariance(nb, m)
    turned: list[tuple[_TurnedLimb, list[int]]] = []
    last: list[tuple[_Row, list[int]]] = []
    for group in limbs.groups:
        limb, met = _turned_limb(G, group, shared, threshold2), list[int]()
        turned.append((limb, met))
        for k, row in enumerate(limb.rows):
            if row.new and k < len(limb.rows) - 1:
                covariance.measure(row, met)
            else:
                last.append((row, met))
    if last:
        covariance.measure_by_size(last)
    V, left = _in_columns(covariance, turned, shared, n)
    kept = ca.vertcat(ca.SX(0, 1), *covariance.kept)
    return V, ca.sparsify(covariance.R), covariance.order, kept, left


def _in_columns(
    covariance: _Covariance, turned: list[tuple[_TurnedLimb, list[int]]], shared: list[int], n: int
) -> tuple[ca.SX, ca.SX]:
    """Return V and the root of what the rows leave in the n columns of G.

    Args:
        covariance: after all rows.
        turned: limbs with the places of their directions.
        shared: columns.
        n: number of columns.
    """
    nb, untouched = len(shared), {*range(n)} - {*shared}
    V, left = ca.SX(n, covariance.V.shape[1]), ca.SX(n, covariance.T.shape[1])
    if shared:
        V[shared, :], left[shared, :] = covariance.V[:nb, :], covariance.T[:nb, :]
    roots = []
    for limb, met in turned:
        columns, Q = list(limb.columns), limb.Q[:, : len(met)]
        V[columns, :], left[columns, :] = Q @ covariance.V[met, :], Q @ covariance.T[met, :]
        free = ca.SX.ones(limb.Q.shape[1])
        free[: len(met)] = ca.vertcat(ca.SX(0, 1), *(covariance.free[i - nb] for i in met))
        free = ca.sparsify(free)
        root = ca.SX(n, limb.Q.shape[1])
        root[columns, :] = limb.Q @ ca.diag(free)
        roots.append(root[:, [k for k in range(free.numel()) if free.sparsity().has_nz(k, 0)]])
        untouched -= {*columns}
    roots.append(ca.SX.eye(n)[:, sorted(untouched)])
    return ca.sparsify(V), ca.sparsify(ca.horzcat(left, *roots))


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
