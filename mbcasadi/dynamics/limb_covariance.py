"""What constraint rows leave of a unit covariance, limb by limb, whatever the rank.

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

from mbcasadi.linalg import limbs_of
from mbcasadi.linalg.householder import one_hot, reflector
from mbcasadi.linalg.limbs import Limb

LEAST_SCORE = 1e-40
"""Score of a row that is left without an own remainder: every step takes one row."""


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


def covariance(G: ca.SX, threshold2: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return V, R, the order of the rows, flags, and a root of what the rows leave.

    Args:
        G: (m, n) rows.
        threshold2: (m, 1) squared remainders at or below which a row is dropped.
    """
    m, n = G.shape
    limbs = limbs_of(G.sparsity())
    shared, nb = list(limbs.shared), len(limbs.shared)
    state = _Covariance(nb, m)
    turned: list[tuple[_TurnedLimb, list[int]]] = []
    last: list[tuple[_Row, list[int]]] = []
    for group in limbs.groups:
        limb, met = _turned_limb(G, group, shared, threshold2), list[int]()
        turned.append((limb, met))
        for k, row in enumerate(limb.rows):
            if row.new and k < len(limb.rows) - 1:
                state.measure(row, met)
            else:
                last.append((row, met))
    if last:
        state.measure_by_size(last)
    V, left = _in_columns(state, turned, shared, n)
    kept = ca.vertcat(ca.SX(0, 1), *state.kept)
    return V, ca.sparsify(state.R), state.order, kept, left


def _in_columns(
    state: _Covariance, turned: list[tuple[_TurnedLimb, list[int]]], shared: list[int], n: int
) -> tuple[ca.SX, ca.SX]:
    """Return V and the root of what the rows leave in the n columns of G.

    Args:
        state: after all rows.
        turned: limbs with the places of their directions.
        shared: columns.
        n: number of columns.
    """
    nb, untouched = len(shared), {*range(n)} - {*shared}
    V, left = ca.SX(n, state.V.shape[1]), ca.SX(n, state.T.shape[1])
    if shared:
        V[shared, :], left[shared, :] = state.V[:nb, :], state.T[:nb, :]
    roots = []
    for limb, met in turned:
        columns, Q = list(limb.columns), limb.Q[:, : len(met)]
        V[columns, :], left[columns, :] = Q @ state.V[met, :], Q @ state.T[met, :]
        free = ca.SX.ones(limb.Q.shape[1])
        free[: len(met)] = ca.vertcat(ca.SX(0, 1), *(state.free[i - nb] for i in met))
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
