"""The correction by feet that stand, and what becomes of those that do not.

Joints see a landmark at `y = R h(q̃, ŝ)`, with ŝ of passive joints; with their errors δs, the
noise of the encoders and that of the place

    r = y - ρ̂ = -η + C δs + n,     N = Cov(n) = J Σ Jᵀ + noise of the place,  C = R J_s
    r = Log(R̂ R_h R̂_iᵀ) = -χ + C δs + n                                     of a sole

A landmark that stands is used unless a test rejects it. With `w = L⁻¹ r`, `L Lᵀ = S`, white and of
unit variance while it stands, and the mean `m ← (1 - a) m + a w` of about `2 / a` samples,

    |w|² <= χ²      a step: a lost contact, a kick
    |m|² (2 - a) / a <= χ²      a slip that no single sample shows

each with half of the false alarms. All others, also those that have just landed, are set to where
the joints see them, `ρ̂ = y`, so `η = C δs + n`: their covariance is N beside that of δs, and what N
has in common with landmarks that were used is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca

from mbcasadi.estimation.covariance import (
    LOG_TWO_PI,
    backward,
    cholesky,
    forward,
    log_density,
    mirrored,
)
from mbcasadi.estimation.invariant import Layout, Mean
from mbcasadi.estimation.rotations import product
from mbcasadi.spatial.quaternion_columns import column_of, quat_of, quat_of_matrix
from mbcasadi.spatial.quaternions import conjugate, logarithm


@dataclass(frozen=True)
class Seen:
    """A landmark as the joints see it, world axes.

    Attributes:
        place: (3,) from the IMU, m.
        quat: (4,) of a sole; None for a point.
        B: (3 or 6, encoders) change of place and rotation by unit noise of the encoders, times
            their standard deviations.
        C: (3 or 6, k) by the positions of passive joints.
        N: (3 or 6,) further variances.
    """

    place: ca.SX
    quat: ca.SX | None
    B: ca.SX
    C: ca.SX
    N: ca.SX


class Update(NamedTuple):
    """The estimate's errors after an update.

    Attributes:
        e: (n,) estimate of the errors.
        P: (n, n) covariance.
        used: whether each landmark corrected the estimate.
        distances: of each landmark from what was expected, in standard deviations; 0 where it does
            not stand.
        means: of its white innovations; 0 where it does not stand.
        likelihood: logarithm of the density of what the joints saw, as expected.
    """

    e: ca.SX
    P: ca.SX
    used: tuple[ca.SX, ...]
    distances: tuple[ca.SX, ...]
    means: tuple[ca.SX, ...]
    likelihood: ca.SX


MEMORY = 0.1
"""Share a of a sample in the mean of the innovations."""


def update_by_landmarks(
    layout: Layout,
    mean: Mean,
    P: ca.SX,
    seen: Sequence[Seen],
    feet: Sequence[Sequence[int]],
    stands: Sequence[ca.SX],
    means: Sequence[ca.SX],
    false_alarm: float,
) -> Update:
    """Return the estimate's errors after landmarks that stand have been used.

    Args:
        layout: of the errors.
        mean: the estimate, whose errors are estimated as zero before.
        P: (n, n) their covariance.
        seen: each landmark.
        feet: landmarks whose joints have encoders in common, in groups.
        stands: whether each landmark stands now, and stood at the last tick.
        means: of the white innovations of each before.
        false_alarm: share of good samples that are rejected.
    """
    update, gates = Update(ca.SX(layout.n, 1), P, (), (), (), ca.SX(0)), dict[int, _Gate]()
    for foot in feet:
        e, P = update.e, update.P
        innovation = [_innovation(layout, mean, seen[i], i) for i in foot]
        rows = [row for i in foot for row in layout.rows(i)]
        N, C = _noise([seen[i] for i in foot]), ca.vertcat(*(seen[i].C for i in foot))
        PH = P[:, layout.bent] @ C.T - P[:, rows]
        r = ca.vertcat(*innovation) + e[rows] - C @ e[layout.bent]
        S = C @ PH[layout.bent, :] - PH[rows, :] + N
        tested = _gates(layout, foot, r, S, (stands, means), false_alarm)
        gates |= tested
        D = ca.vertcat(*(ca.repmat(tested[i].used, layout.landmarks[i].size, 1) for i in foot))
        U = PH @ ca.diag(D)
        if len(foot) == 1:
            L = tested[foot[0]].L  # without effect where it is not used
        else:
            L = cholesky(ca.diag(D) @ S @ ca.diag(D) + ca.diag(1 - D))
        W, w = forward(L, U.T), forward(L, D * r)
        e = e + W.T @ w
        likelihood = update.likelihood + _likelihood(w, L, D, [tested[i] for i in foot])
        P = mirrored(P - W.T @ W)
        shared = None if len(foot) == 1 else -backward(L, W).T @ ca.diag(D) @ N
        e, P = _reset(e, P, (rows, layout.bent), C, D, N, shared)
        update = update._replace(e=e, P=P, likelihood=likelihood)
    each = [gates[i] for i in range(len(layout.landmarks))]
    return update._replace(
        used=tuple(gate.used for gate in each),
        distances=tuple(gate.distance for gate in each),
        means=tuple(gate.mean for gate in each),
    )


def set_landmarks(layout: Layout, mean: Mean, seen: Sequence[Seen], used: Sequence[ca.SX]) -> Mean:
    """Return the estimate with landmarks that were not used where the joints see them."""
    places = tuple(
        ca.if_else(u, old, new.place) for u, old, new in zip(used, mean.places, seen, strict=True)
    )
    turns = list(mean.turns)
    for i, landmark in enumerate(layout.landmarks):
        quat = seen[i].quat
        if landmark.sole and quat is not None:
            k = layout.sole(i)
            turns[k] = ca.if_else(used[i], turns[k], quat)
    return replace(mean, places=places, turns=tuple(turns))


class _Gate(NamedTuple):
    stands: ca.SX
    used: ca.SX
    distance: ca.SX
    mean: ca.SX
    L: ca.SX
    most: float


def _gates(
    layout: Layout,
    foot: Sequence[int],
    r: ca.SX,
    S: ca.SX,
    before: tuple[Sequence[ca.SX], Sequence[ca.SX]],
    false_alarm: float,
) -> dict[int, _Gate]:
    """Return which landmarks of a foot are used, by what stood before and the means."""
    from scipy.special import chdtri  # heavy, and needed when an estimator is made only

    gates, at = dict[int, _Gate](), 0
    for i in foot:
        size, stands = layout.landmarks[i].size, before[0][i]
        own = slice(at, at + size)
        L = cholesky(S[own, own])
        w = forward(L, r[own])
        square, most = ca.sumsqr(w), float(chdtri(size, false_alarm / 2))
        mean = ca.if_else(stands, (1 - MEMORY) * before[1][i] + MEMORY * w, 0)
        mean = mean * ca.fmin(1, LARGEST_MEAN / ca.fmax(ca.norm_2(mean), LARGEST_MEAN))
        slow = ca.sumsqr(mean) * ((2 - MEMORY) / MEMORY)
        inside = ca.logic_and(square <= most, slow <= most)  # false for NaN
        used = ca.logic_and(stands, inside)
        distance = ca.if_else(stands, ca.sqrt(square), 0)
        gates[i] = _Gate(stands, used, distance, mean, L, most)
        at += size
    return gates


def _likelihood(w: ca.SX, L: ca.SX, D: ca.SX, gates: Sequence[_Gate]) -> ca.SX:
    """Return the log-density of a foot's innovation; a rejected one counts as if at its gate.

    Args:
        w: white innovation of the landmarks that are used, zero in other rows.
        L: its root; of other rows, that of a foot's only landmark, or ones.
        D: 1 where a row is used.
        gates: of the foot's landmarks.
    """
    used = log_density(ca.sumsqr(w), L if len(gates) > 1 else ca.diag(D) @ L + ca.diag(1 - D))
    for gate in gates:
        rejected = ca.logic_and(gate.stands, ca.logic_not(gate.used))
        farthest = ca.fmin(gate.distance**2, gate.most)
        used += ca.if_else(rejected, log_density(farthest, gate.L), 0)
    return used + (D.numel() - ca.sum1(D)) * LOG_TWO_PI / 2


LARGEST_MEAN = 3.0
"""Bound of a mean innovation: after a large one the landmark is used again within 20 samples."""


def _innovation(layout: Layout, mean: Mean, seen: Seen, i: int) -> ca.SX:
    place = seen.place - mean.places[i]
    if seen.quat is None:
        return place
    estimate = quat_of(mean.turns[layout.sole(i)])
    return ca.vertcat(place, *logarithm(product(quat_of(seen.quat), conjugate(estimate))))


def _noise(seen: Sequence[Seen]) -> ca.SX:
    """Return the covariance N of all rows of a foot."""
    B = ca.vertcat(*(each.B for each in seen))
    return mirrored(B @ B.T + ca.diag(ca.vertcat(*(each.N for each in seen))))


def _reset(
    e: ca.SX,
    P: ca.SX,
    places: tuple[list[int], list[int]],
    C: ca.SX,
    D: ca.SX,
    N: ca.SX,
    shared: ca.SX | None,
) -> tuple[ca.SX, ca.SX]:
    """Return errors and covariance with landmarks that were not used set to the joints' view.

    Args:
        e, P: after the update.
        places: of the landmarks' errors, and of those of passive joints.
        C: (rows, k) change of what the joints see by passive ones.
        D: 1 where a row was used.
        N: covariance of their noise.
        shared: (n, rows) covariance of the errors with this noise; None for none.
    """
    rows, bent = places
    T, out = ca.SX.eye(P.shape[0]), ca.diag(1 - D)
    T[rows, rows], T[rows, bent] = ca.diag(D), out @ C
    added = ca.SX(*P.shape)
    added[rows, rows] = out @ N @ out
    if shared is not None:
        cross = T @ shared @ out
        added[:, rows] += cross
        added[rows, :] += cross.T
    return T @ e, mirrored(T @ P @ T.T + added)


def seen_from(
    place: ca.SX, rotation: ca.SX | None, slopes: tuple[ca.SX, ca.SX], N: ca.SX, mean: Mean
) -> Seen:
    """Return a landmark in world axes.

    Args:
        place: (3,) in the IMU's axes, m.
        rotation: (3, 3) of a sole there; None for a point.
        slopes: B and C as in `Seen`, in the IMU's axes.
        N: (3 or 6,) further variances.
        mean: the estimate.
    """
    R, quat = mean.R, None
    B, C = (ca.vertcat(*(R @ x[k : k + 3, :] for k in range(0, N.numel(), 3))) for x in slopes)
    if rotation is not None:
        quat = column_of(product(quat_of(mean.quat), quat_of_matrix(rotation)))
    return Seen(R @ place, quat, B, C, N)
