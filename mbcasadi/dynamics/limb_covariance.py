"""What constraint rows leave of a unit covariance, and their pseudo-inverse, limb by limb.

The rows of a limb touch own and shared columns. Reflections turn the own ones, strongest row
first, such that row i has the shared part w, the parts l of directions before it and σ of one new
direction z_i. With T on shared columns and former directions, zero noise and unit variance of z_i,

    φ = Tᵀ [w; l],   α = |φ|² + σ²,   K = [T φ; σ]/α,
    T ← T (I - φ φᵀ/(α + |σ| √α)),   T_i = -sign(σ) φᵀ/√α

(J. E. Potter's update; Battin, Astronautical Guidance, 1964). T has as many columns as there are
shared ones, and nothing is divided by σ. With Y the pseudo-inverse of the rows so far,
`d = [w, l] Y` is the row in terms of them, and

    Y ← Y - K (d - eᵀ),   e a one at the row

(T. N. E. Greville, SIAM Review 2, 1960). A row whose α is not above its threshold is dropped: its
K is `Y dᵀ/(1 + d dᵀ)`, its z_i stays free, as do directions that no row touches: they are F. The
last rows of the limbs, those that a straight leg leaves to the shared columns, are taken up by
their size, so that no order decides on a rank.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.dynamics.turned_limb import LEAST_SCORE, LimbRow, TurnedLimb, turned_limb
from mbcasadi.linalg import limbs_of
from mbcasadi.linalg.householder import one_hot


class _Gain(NamedTuple):
    """What one row does to T and Y.

    Fields: `kept`; `φ`; factors `per_force` of `T φ` in K, `shrink` of `T φ φᵀ` in T, `per_row` of
    `Y dᵀ` in K; along the new direction `new`, the part of K, and `turn`, the factor of φᵀ in T.
    """

    kept: ca.SX
    phi: ca.SX
    per_force: ca.SX
    shrink: ca.SX
    per_row: ca.SX
    new: ca.SX
    turn: ca.SX


class _Covariance:
    """What the rows so far leave of the unit covariance of shared columns and met directions.

    Attributes:
        T: (nb + k, nb) its root, beside free directions.
        Y: (nb + k, m) pseudo-inverse of the rows.
        free: variance of each direction that is left beside T, one or zero.
    """

    def __init__(self, nb: int, m: int) -> None:
        self.T, self.Y = ca.SX.eye(nb), ca.SX(nb, m)
        self.free: list[ca.SX] = []

    def measure(self, row: LimbRow, met: list[int]) -> None:
        """Take up one row, and the direction of its own that is new.

        Args:
            row: of a limb, not its last one.
            met: places in T of the limb's directions; the new one is added.
        """
        part = self.part_of(row, met)
        d = part @ self.Y
        gain = _gain((part @ self.T).T, row.sigma, row.threshold2, d)
        change = d - row.place.T
        K = self._update(gain, d)
        self.Y = ca.vertcat(self.Y - K @ change, -gain.new * change)
        met.append(self.T.shape[0])
        self.T = ca.vertcat(self.T, gain.turn * gain.phi.T)
        self.free.append(1 - gain.kept)

    def measure_by_size(self, rows: list[tuple[LimbRow, list[int]]]) -> None:
        """Take up the last rows of the limbs, the largest remainder beside its threshold first.

        Args:
            rows: each with the places in T of its limb's directions; new ones are added.
        """
        parts = ca.vertcat(*(self.part_of(row, met) for row, met in rows))
        places = ca.horzcat(*(row.place for row, _ in rows))
        limits = ca.vertcat(*(row.threshold2 for row, _ in rows))
        sigma = ca.vertcat(*(row.sigma for row, _ in rows))
        new = [k for k, (row, _) in enumerate(rows) if row.new]
        for place, k in enumerate(new):
            rows[k][1].append(self.T.shape[0] + place)
        first, self.free = self.T.shape[0], [*self.free, *(ca.SX(1) for _ in new)]
        reach, D, left = parts @ self.T, parts @ self.Y, ca.SX.ones(len(rows))
        self.T, self.Y = (ca.vertcat(x, ca.SX(len(new), x.shape[1])) for x in (self.T, self.Y))
        for k in range(len(rows)):
            e = left
            if k < len(rows) - 1:
                size2 = ca.densify(ca.sum2(reach**2)) + sigma**2
                e = one_hot(left * (size2 / limits + LEAST_SCORE))
                left = left - e
            d = e.T @ D
            gain = _gain(reach.T @ e, e.T @ sigma, e.T @ limits, d)
            change, among = d - (places @ e).T, reach @ gain.phi
            D = D - (among * gain.per_force + (D @ d.T) * gain.per_row) @ change
            reach = reach - (among * gain.shrink) @ gain.phi.T
            K = self._update(gain, d)
            if new:
                own = e[new]
                K[first:] = K[first:] + own * gain.new
                self.T[first:, :] = self.T[first:, :] + (own * gain.turn) @ gain.phi.T
                for place, flag in enumerate(ca.vertsplit(own)):
                    self.free[place - len(new)] -= flag * gain.kept
            self.Y = self.Y - K @ change

    def part_of(self, row: LimbRow, met: list[int]) -> ca.SX:
        """Return (1, nb + k) the parts of a row in the places of T, without a new direction."""
        part = ca.SX(1, self.T.shape[0])
        if row.shared.numel():
            part[: row.shared.numel()] = row.shared
        if met:
            part[met] = row.own[: len(met)]
        return part

    def _update(self, gain: _Gain, d: ca.SX) -> ca.SX:
        """Take a row out of T; return K without the part of a new direction."""
        along = self.T @ gain.phi
        self.T = self.T - (along * gain.shrink) @ gain.phi.T
        return along * gain.per_force + (self.Y @ d.T) * gain.per_row


def _gain(phi: ca.SX, sigma: ca.SX, threshold2: ca.SX, d: ca.SX) -> _Gain:
    """Return what a row does to T and Y."""
    alpha = ca.sumsqr(phi) + sigma**2
    kept = alpha > threshold2
    size = ca.sqrt(ca.if_else(kept, alpha, 1))
    unit = kept / size
    per_force = unit**2
    shrink = unit / (size + ca.fabs(sigma))
    per_row = (1 - kept) / (1 + ca.sumsqr(d))
    turn = -ca.if_else(sigma < 0, -1, 1) * unit
    return _Gain(kept, phi, per_force, shrink, per_row, sigma * per_force, turn)


class Covariance(NamedTuple):
    """What rows G leave of a unit covariance: `Q (T Tᵀ + F) Qᵀ`, and the unit on untouched columns.

    Fields: `Q` (nt, nt) orthogonal, from turned coordinates to the touched columns; in the turned
    ones `Y` (nt, m) of `G⁺ = Q Y`, `T` (nt, nb) and `free` (nt, 1), the diagonal of F, ones or
    zeros; `touched` columns of G.
    """

    Q: ca.SX
    Y: ca.SX
    T: ca.SX
    free: ca.SX
    touched: list[int]


def covariance(G: ca.SX, threshold2: ca.SX) -> Covariance:
    """Return the pseudo-inverse of rows, and the roots of what they leave.

    Args:
        G: (m, n) rows.
        threshold2: (m, 1) squared remainders at or below which a row is dropped.
    """
    m = G.shape[0]
    limbs = limbs_of(G.sparsity())
    shared, nb = list(limbs.shared), len(limbs.shared)
    state = _Covariance(nb, m)
    turned: list[tuple[TurnedLimb, list[int]]] = []
    last: list[tuple[LimbRow, list[int]]] = []
    for group in limbs.groups:
        limb, met = turned_limb(G, group, shared, threshold2), list[int]()
        turned.append((limb, met))
        for k, row in enumerate(limb.rows):
            if row.new and k < len(limb.rows) - 1:
                state.measure(row, met)
            else:
                last.append((row, met))
    if last:
        state.measure_by_size(last)
    return _of_touched(state, turned, shared)


def _of_touched(
    state: _Covariance, turned: list[tuple[TurnedLimb, list[int]]], shared: list[int]
) -> Covariance:
    """Return it with the touched columns in their order.

    Args:
        state: after all rows.
        turned: limbs with the places of their directions.
        shared: columns.
    """
    nb = len(shared)
    touched = sorted([*shared, *(column for limb, _ in turned for column in limb.columns)])
    place = {column: i for i, column in enumerate(touched)}
    n = len(touched)
    Q, free = ca.SX(n, n), ca.SX(n, 1)
    Y, T = ca.SX(n, state.Y.shape[1]), ca.SX(n, nb)
    at = [place[column] for column in shared]
    if shared:
        Q[at, at], Y[at, :], T[at, :] = ca.SX.eye(nb), state.Y[:nb, :], state.T[:nb, :]
    for limb, met in turned:
        at = [place[column] for column in limb.columns]
        Q[at, at], free[at] = limb.Q, 1
        at = at[: len(met)]
        Y[at, :], T[at, :] = state.Y[met, :], state.T[met, :]
        free[at] = ca.vertcat(ca.SX(0, 1), *(state.free[i - nb] for i in met))
    Q, Y, T, free = (ca.sparsify(part) for part in (Q, Y, T, free))
    return Covariance(Q, Y, T, free, touched)
