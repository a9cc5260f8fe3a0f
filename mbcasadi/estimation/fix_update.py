"""The correction by what sees the world: heights, headings, positions and poses of frames.

A frame F at s, C of the IMU is at `p_F = p + R s`, `R_F = R C`. In the errors of `invariant.py`

    p̂_F - p_F = θ × p_F + π =: δ        Log(R̂_F R_Fᵀ) = θ

are what fixes measure: poses by both, a compass by `h θ`, its x axis turned about the vertical,
and a magnetometer of a field m by `R̂_F y - m = θ × m`. These Jacobians appear with a sample only:
between samples nothing makes yaw and position observable.

A sample of age τ < dt measures the state at its own time, by the motion of the tick backwards,

    θ_t = θ + R β_g τ,    π_t = π - ν τ + ½ [g]× θ τ² + p × R β_g τ.

A fix of what nobody knows sets it: the first one of a heading or of a position whose deviation the
first estimate does not tell, and one whose samples were rejected for long. Its errors are then
those of the sample, without a difference of large variances that float would not survive:

    θ ← θ - e_z hᵀ θ + e_z n_h,    δ ← n,    π = δ - θ × p_F.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.regulators.innovation_gate import wrap_angles
from mbcasadi.estimation.covariance import cholesky, congruence, forward, log_density, mirrored
from mbcasadi.estimation.fixes import Fix
from mbcasadi.estimation.invariant import BETA_G, NU, THETA, Layout, Mean
from mbcasadi.estimation.invariant_correction import corrected, reset_map
from mbcasadi.estimation.landmarks import Sight
from mbcasadi.estimation.rotations import product
from mbcasadi.qp.input_guard import MASK_ON
from mbcasadi.spatial.quaternion_columns import matrix_of, quat_of, quat_of_matrix
from mbcasadi.spatial.quaternions import conjugate, exponential, logarithm
from mbcasadi.spatial.vectors import entries

Array = NDArray[np.float64]

FARTHEST_FIX = 1e6
"""A sample with a larger entry is invalid."""

RELAPSED = (0.3, 4)
"""s, and number of samples in a row, for which a fix is rejected until its next sample is taken."""

SET = 1e3
"""By which the number of samples in a row that were rejected grows where one sets what it sees."""

LEAST_ACROSS = 0.1
"""Horizontal part of an x axis below which a heading tells nothing."""

LARGEST_DISTANCE = 1e6
"""Bound of a distance in standard deviations."""

UP = ca.DM([0, 0, 1])


class FixState(NamedTuple):
    """What is known of fixes, and for how long each has been rejected.

    Attributes:
        known: (3,) whether heading, height and horizontal position are known.
        lapsed, refused: s and number of samples, of each fix; the number is `SET` larger after each
            sample that has set what it sees since one fitted, twice at most.
    """

    known: ca.SX
    lapsed: ca.SX
    refused: ca.SX


def fix_state(before: dict[str, ca.SX]) -> FixState:
    """Return what a memory has of fixes."""
    return FixState(before["known"], before["lapsed"], before["refused"])


class Fixed(NamedTuple):
    """The estimate after a fix.

    Attributes:
        mean, P: estimate and covariance.
        distance: of the sample from what was expected, in standard deviations; 0 without one.
        used, rejected: what became of the sample.
        sets: whether it is used without a comparison.
        likelihood: log-density of the sample, as if at its gate if it is rejected; 0 without one,
            and of one that sets what it sees.
    """

    mean: Mean
    P: ca.SX
    distance: ca.SX
    used: ca.SX
    rejected: ca.SX
    sets: ca.SX
    likelihood: ca.SX


@dataclass(frozen=True)
class View:
    """A frame at the time of a sample.

    Attributes:
        place: (3,) m.
        R: (3, 3).
        arm: (3,) from the IMU, world axes.
        turn, shift: (3, n) θ and δ there, by the errors of now.
        B: (6, encoders) of δ above θ by the noise of the encoders.
    """

    place: ca.SX
    R: ca.SX
    arm: ca.SX
    turn: ca.SX
    shift: ca.SX
    B: ca.SX


class Sample(NamedTuple):
    """What a fix says: innovation r, Jacobian H and covariance N, and the part of the heading.

    Attributes:
        heading: error of the heading, its row of H, its variance; None where it sees none.
        place: (3,) error of the position, zero where it sees none.
    """

    r: ca.SX
    H: ca.SX
    N: ca.SX
    heading: tuple[ca.SX, ca.SX, ca.SX] | None
    place: ca.SX


def frame_view(
    layout: Layout, mean: Mean, spot: Sight, motion: tuple[ca.SX, ca.SX, Array], age: ca.SX | None
) -> View:
    """Return a frame as the estimate has it.

    Args:
        layout: of the errors.
        mean: the estimate.
        spot: the frame from the IMU, at the time of the sample; its J times the encoders' noise.
        motion: (3,) rate and (3,) force of the IMU as read, (3,) gravity.
        age: s, of the sample, less than a tick; None for none.
    """
    n, quat, p, g = layout.n, mean.quat, mean.p, motion[2]
    if age is not None:
        back = exponential(entries(-age * (motion[0] - mean.b_g)))
        fall = mean.R @ (motion[1] - mean.b_a) + ca.DM(g)
        quat = ca.vertcat(*product(quat_of(quat), back))
        p = p - age * mean.v + age**2 / 2 * fall
    R = matrix_of(quat_of(quat))
    arm = R @ spot.place
    turn, shift = ca.SX(3, n), ca.SX(3, n)
    turn[:, THETA], shift[:, THETA] = ca.SX.eye(3), -ca.skew(p + arm)
    shift[:, n - 3 :] = ca.SX.eye(3)
    if age is not None:
        turn[:, BETA_G], shift[:, BETA_G] = age * R, -age * ca.skew(arm) @ R
        shift[:, THETA] += ca.sparsify(ca.skew(ca.DM(g))) * (age**2 / 2)
        shift[:, NU] = -age * ca.SX.eye(3)
    B = ca.sparsify(ca.vertcat(R @ spot.J[:3, :], R @ spot.J[3:, :]))
    return View(p + arm, R @ spot.rotation, arm, turn, shift, B)


def sample_of(fix: Fix, view: View, y: ca.SX) -> Sample:
    """Return what a sample (fix.size,) says."""
    B_p, B_r, none = view.B[:3, :], view.B[3:, :], ca.SX(3, 1)
    noise = ca.SX(fix.noise**2)
    if fix.kind == "yaw":
        d = view.R[:, 0]
        r, h = wrap_angles(ca.atan2(d[1], d[0]) - y, (0,)), _heading_row(d)
        H, N = h @ view.turn, noise + ca.sumsqr(h @ B_r)
        return Sample(r, H, N, (r, H, N), none)
    if fix.kind == "magnetometer":
        m, seen = ca.DM(fix.field), view.R @ y
        across = ca.sparsify(-ca.skew(m))
        N = mirrored(noise * ca.SX.eye(3) + (across @ B_r) @ (across @ B_r).T)
        r = ca.atan2(m[0] * seen[1] - m[1] * seen[0], ca.dot(m[:2], seen[:2]))
        heading = (r, _heading_row(m) @ view.turn, noise / ca.sumsqr(m[:2]))
        return Sample(seen - m, across @ view.turn, N, heading, none)
    if fix.kind == "height":
        r = view.place[2] - y
        N = noise + ca.sumsqr(B_p[2, :])
        return Sample(r, view.shift[2, :], N, None, ca.vertcat(0, 0, r))
    r = view.place - y[:3]
    if fix.kind == "position":
        N = mirrored(noise * ca.SX.eye(3) + B_p @ B_p.T)
        return Sample(r, view.shift, N, None, r)
    back = conjugate(quat_of(y[3:] / ca.norm_2(y[3:])))
    theta = ca.vertcat(*logarithm(product(quat_of_matrix(view.R), back)))
    turn = fix.turn_noise**2
    N = ca.diagcat(noise * ca.SX.eye(3), turn * ca.SX.eye(3)) + view.B @ view.B.T
    H, heading = ca.vertcat(view.shift, view.turn), (theta[2], view.turn[2, :], ca.SX(turn))
    return Sample(ca.vertcat(r, theta), H, mirrored(N), heading, r)


def _heading_row(d: ca.SX | ca.DM) -> ca.SX:
    """Return (1, 3) change of the heading of a direction d (3,) by a rotation."""
    lean = d[2] / ca.fmax(ca.sumsqr(d[:2]), LEAST_ACROSS**2)
    return ca.horzcat(-lean * d[0], -lean * d[1], 1)


def is_a_fix(fix: Fix, y: ca.SX, valid: ca.SX, view: View) -> ca.SX:
    """Return whether a sample is valid, a number, and tells something."""
    ok = valid > MASK_ON
    for k in range(y.numel()):
        ok = ca.logic_and(ok, ca.fabs(y[k]) <= FARTHEST_FIX)  # false for NaN
    if fix.kind == "pose":
        ok = ca.logic_and(ok, ca.sumsqr(y[3:]) > 0.25)
    if fix.kind == "yaw":
        ok = ca.logic_and(ok, ca.sumsqr(view.R[:2, 0]) > LEAST_ACROSS**2)
    return ok


def update_by_fix(
    layout: Layout,
    fix: Fix,
    estimate: tuple[Mean, ca.SX],
    views: tuple[View, View],
    sample: tuple[ca.SX, ca.SX],
    before: tuple[ca.SX, ca.SX],
) -> Fixed:
    """Return the estimate after a fix.

    Args:
        layout: of the errors.
        fix: what is measured.
        estimate: mean and covariance.
        views: of the frame, at the time of the sample and now.
        sample: (fix.size,) and its entry of `valid`.
        before: whether all that it sees is known; whether its samples were rejected for long.
    """
    from scipy.special import chdtri  # heavy, and needed when an estimator is made only

    mean, P = estimate
    then, now = views
    ok = is_a_fix(fix, sample[0], sample[1], then)
    rest = ca.DM([0.0] * 3 + [1.0] + [0.0] * 3)[: fix.size]
    own = sample_of(fix, then, ca.if_else(ok, sample[0], rest))
    HP = own.H @ P
    L = cholesky(mirrored(HP @ own.H.T) + own.N)
    w = forward(L, own.r)
    most = float(chdtri(fix.rows, fix.false_alarm))
    inside = ca.sumsqr(w) <= most
    lost = ca.logic_or(ca.logic_not(before[0]), ca.logic_and(before[1], ca.logic_not(inside)))
    sets = ca.logic_and(ok, lost)
    used = ca.logic_and(ok, ca.logic_and(inside, ca.logic_not(sets)))
    counts = ca.logic_and(ok, ca.logic_not(sets))
    likelihood = counts * log_density(ca.fmin(ca.sumsqr(w), most), L)
    W = used * forward(L, HP)
    e, P = W.T @ w, mirrored(P - W.T @ W)
    e, P = _set(layout, fix, own, now, (e, P), sets)
    mean, J = _moved(layout, mean, e, sets * now.arm)
    used = ca.logic_or(used, sets)
    distance = ca.fmin(ca.sqrt(ca.sumsqr(w)), LARGEST_DISTANCE) * ok
    rejected = ca.logic_and(ok, ca.logic_not(used))
    return Fixed(mean, congruence(J, P), distance, used, rejected, sets, likelihood)


def _set(
    layout: Layout, fix: Fix, own: Sample, now: View, after: tuple[ca.SX, ca.SX], sets: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Return errors and covariance, those of the sample alone where it `sets` what it sees."""
    n, across = layout.n, ca.skew(now.place)
    pi, seen = slice(n - 3, n), ca.DM(np.diag([fix.seen[2], fix.seen[2], fix.seen[1]]))
    M, e, noise = ca.SX.eye(n), ca.SX(n, 1), ca.SX(n, n)
    if own.heading is not None:
        r, row, variance = own.heading
        g = ca.vertcat(UP, ca.SX(n - 6, 1), across @ UP)
        M[THETA, :] -= sets * (UP @ row)
        e, noise = g * r, variance * (g @ g.T)
    M[pi, :] = across @ M[THETA, :] + (ca.DM.eye(3) - sets * seen) @ now.shift
    e[pi] += ca.sparsify(seen) @ own.place
    noise[pi, pi] += ca.sparsify(seen) * fix.noise**2
    return after[0] + sets * e, congruence(M, after[1]) + sets * noise


def _moved(layout: Layout, mean: Mean, e: ca.SX, arm: ca.SX) -> tuple[Mean, ca.SX]:
    """Return the estimate without an error e (n,), and the reset's map; see `reset_map`.

    The point at an arm (3,) from the IMU moves by its own error: also where the turn is large.
    """
    pi, point = slice(layout.n - 3, layout.n), mean.p + arm
    moved = point - e[pi] - ca.cross(e[THETA], point)
    after, J = corrected(layout, mean, e), reset_map(layout, mean, e)
    J[pi, THETA] = ca.skew(moved) @ J[THETA, THETA] - ca.skew(point)
    return replace(after, p=moved - after.R @ (mean.R.T @ arm)), J


def remembered(fixes: tuple[Fix, ...], before: FixState, after: list[Fixed], dt: ca.SX) -> FixState:
    """Return what is known of fixes after a tick."""
    known, lapsed, refused = ca.SX(before.known), list[ca.SX](), list[ca.SX]()
    for k, (fix, own) in enumerate(zip(fixes, after, strict=True)):
        known = ca.if_else(own.used, ca.fmax(known, ca.DM(fix.seen)), known)
        waiting = ca.logic_or(own.rejected, before.refused[k] > 0)
        lapsed.append(ca.if_else(own.used, 0, ca.fmin(before.lapsed[k] + dt * waiting, 1e3)))
        fits = ca.logic_and(own.used, ca.logic_not(own.sets))
        count = before.refused[k]
        again = ca.fmin(count + SET * (count >= RELAPSED[1]), 2 * SET)
        more = ca.fmin(count + own.rejected, ca.if_else(count < SET, SET - 1, 2 * SET))
        refused.append(ca.if_else(fits, 0, ca.if_else(own.sets, again, more)))
    return FixState(known, ca.vertcat(*lapsed), ca.vertcat(*refused))


def is_lapsed(before: FixState, k: int) -> ca.SX:
    """Return whether the samples of a fix were rejected for long."""
    return ca.logic_and(before.lapsed[k] > RELAPSED[0], before.refused[k] >= RELAPSED[1])


def is_contradicted(refused: ca.SX) -> ca.SX:
    """Return whether some fix was rejected time after time, and none of its samples fits since.

    Args:
        refused: (fixes,) of `FixState`.
    """
    return ca.mmax(refused) >= RELAPSED[1]


def sets_in_vain(before: FixState) -> ca.SX:
    """Return whether a fix has just set what it sees for the second time since a sample fitted.

    Then neither heading nor place is what its samples contradict: the tilt is, or a bias.
    """
    return ca.mmax(ca.logic_and(before.lapsed <= 0, before.refused >= 2 * SET)) > 0


def knows(before: FixState, fix: Fix) -> ca.SX:
    """Return whether all that a fix sees is known."""
    return ca.mmin(ca.vertcat(*(before.known[k] for k in range(3) if fix.seen[k])))
