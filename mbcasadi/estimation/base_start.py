"""Where a base estimator starts: its first memory, and roll and pitch by the accelerometer."""

from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.base_samples import Sample
from mbcasadi.estimation.covariance import packed
from mbcasadi.estimation.invariant import (
    BETA_A,
    BETA_G,
    NU,
    THETA,
    Mean,
    passive_deviations,
)
from mbcasadi.estimation.landmarks import FREE_Q
from mbcasadi.estimation.rotations import product, turn_between
from mbcasadi.spatial.quaternion_columns import column_of, matrix_of, quat_of, quat_of_matrix

Array = NDArray[np.float64]

UNLEVELLED = 0.3
"""rad, standard deviation of roll and pitch that no accelerometer has levelled."""


def memory_at(design: BaseDesign) -> ca.DM:
    """Return the memory (nz,) of an estimator that starts at rest at `q0`."""
    q = design.q0
    joints, linkage = q[FREE_Q:], design.linkage
    at, sights = design.kinematics(ca.SX(ca.DM(joints)))
    R_B = matrix_of(quat_of(ca.SX(ca.DM(q[3:7]))))
    quat = product(quat_of(ca.SX(ca.DM(q[3:7]))), quat_of_matrix(at.rotation))
    mean = Mean(
        quat=column_of(quat),
        v=ca.SX(3, 1),
        p=ca.DM(q[:3]) + R_B @ at.place,
        b_g=ca.SX(3, 1),
        b_a=ca.SX(3, 1),
        places=(),
        turns=(),
        passive=ca.SX(2 * len(design.layout.passive), 1),
    )
    places = tuple(mean.R @ s.place for s in sights)
    seen = [design.seen(s, k, mean, s) for k, s in enumerate(sights)]
    mean = replace(mean, places=places, turns=tuple(s.quat for s in seen if s.quat is not None))
    count = len(sights)
    parts = {
        "x": mean.column,
        "P": packed(_placed(design, mean.p, ca.SX(ca.DM(_first_covariance(design))))),
        "stood": ca.SX(count, 1),
        "mean": ca.SX(design.memory.sizes["mean"], 1),
        "joint": ca.SX(ca.DM(joints[linkage.places(linkage.encoded)])),
        "joint_rate": ca.SX(design.joints, 1),
        "follower": ca.SX(ca.DM(joints[linkage.followers])),
        "smooth": ca.SX(ca.DM(joints[design.smooth_places])),
        "gyro": ca.SX(3, 1),
        "changed": ca.SX(3, 1),
        "force": mean.R.T @ ca.DM(-design.gravity),
        **{key: ca.SX(1, 1) for key in ("missing", "lost", "doubt", "started")},
        "known": ca.SX(ca.DM([float(known) for known in design.known])),
        **{key: ca.SX(len(design.fixes), 1) for key in ("lapsed", "refused")},
    }
    return ca.evalf(design.memory.join({k: ca.densify(x) for k, x in parts.items()}))


def _placed(design: BaseDesign, p: ca.SX, P: ca.SX) -> ca.SX:
    """Return a first covariance whose place is independent of the rotation, `π = δp + p × θ`.

    Args:
        design: with the deviations of the place.
        p: (3,) of the IMU.
        P: (n, n), without an error of the place.
    """
    P, pi, across = ca.SX(P), slice(design.layout.n - 3, design.layout.n), ca.skew(p)
    P[pi, :] = across @ P[THETA, :]
    P[:, pi] = P[pi, :].T
    P[pi, pi] = across @ P[THETA, THETA] @ across.T + ca.diag(
        ca.DM(design.first_deviations[1:]) ** 2
    )
    return P


def _first_covariance(design: BaseDesign) -> Array:
    """Return the covariance (n, n) of the first estimate, before it is levelled."""
    up = design.gravity / np.linalg.norm(design.gravity)
    yaw, heading = np.outer(up, up), design.first_deviations[0]
    P = np.eye(design.layout.n)
    P[THETA, THETA] = UNLEVELLED**2 * (np.eye(3) - yaw) + heading**2 * yaw
    P[NU, NU] *= design.start.speed**2
    P[BETA_G, BETA_G] *= design.imu.gyro_bias**2
    P[BETA_A, BETA_A] *= design.imu.accelerometer_bias**2
    own = [*design.layout.bent, *design.layout.bending]
    P[own, own] = np.square(passive_deviations(design.layout))
    return P


EXCLUDED, LIFE = (3.0, 10.0), 36e3
"""Deviations of a bias that are not its own, while the estimate is doubted, and always, of an
accelerometer: to feet, a tilt and a bias of gravity by it are one; s, for which a bias walks."""


def without_false_bias(
    design: BaseDesign, mean: Mean, P: ca.SX, doubted: ca.SX, certain: ca.SX
) -> tuple[Mean, ca.SX]:
    """Return the estimate with biases and tilt anew, where a bias holds errors of something else.

    Wrong samples leave such a bias, with a small variance. Biases start from zero, `P_β` as at
    first; all that is seen from the IMU may be turned with it by w, about horizontal axes: `θ + w`,
    and `π + p × w` as the place stays.

    Args:
        design: of the estimator.
        mean: the estimate.
        P: (n, n) covariance of its errors.
        doubted: whether samples contradict it.
        certain: whether tilt and biases are wrong, however small these are.
    """
    n, imu, up = design.layout.n, design.imu, -design.gravity / np.linalg.norm(design.gravity)
    usual = np.hypot(imu.gyro_bias, np.sqrt(LIFE) * imu.gyro_walk)
    usual_force = np.hypot(imu.accelerometer_bias, np.sqrt(LIFE) * imu.accelerometer_walk)
    gyro = ca.mmax(ca.fabs(mean.b_g)) / usual
    force = ca.mmax(ca.fabs(mean.b_a)) / usual_force
    false = ca.logic_and(doubted, ca.fmax(gyro, force) > EXCLUDED[0])
    false = ca.logic_or(certain, ca.logic_or(false, force > EXCLUDED[1]))
    kept, added, pi = ca.SX.ones(n), ca.SX(n, n), slice(n - 3, n)
    across, tilt = ca.skew(mean.p), UNLEVELLED**2 * ca.DM(np.eye(3) - np.outer(up, up))
    for rows, deviation in ((BETA_G, usual), (BETA_A, usual_force)):
        kept[rows] = 1 - false
        added[rows, rows] = deviation**2 * ca.SX.eye(3)
    added[NU, NU] = design.start.speed**2 * ca.SX.eye(3)
    added[THETA, THETA], added[pi, THETA] = tilt, across @ tilt
    added[THETA, pi], added[pi, pi] = added[pi, THETA].T, across @ tilt @ across.T
    b_g, b_a = (ca.if_else(false, 0, b) for b in (mean.b_g, mean.b_a))
    return replace(mean, b_g=b_g, b_a=b_a), P * (kept @ kept.T) + false * added


def levelled(
    design: BaseDesign, mean: Mean, P: ca.SX, sample: Sample, started: ca.SX, dt: ca.SX
) -> tuple[Mean, ca.SX]:
    """Return the estimate, at the first steady tick with roll and pitch of the accelerometer.

    With its noise w, `θ = [up]× R (β_a - w) / g` across the vertical: roll and pitch are as
    wrong as the bias is, and the covariance says so. What the force lacks of g is motion, and as
    much of that may be across the vertical. What else has errors in common with θ, by ticks without
    a sample, has no longer.
    """
    up = -design.gravity / np.linalg.norm(design.gravity)
    size = ca.norm_2(sample.force)
    g = float(np.linalg.norm(design.gravity))
    sensible = ca.logic_and(size > g / 2, size < 3 * g / 2)
    direction = mean.R @ sample.force / ca.fmax(size, g / 2)
    turn = turn_between(direction, ca.SX(ca.DM(up)))
    chosen = ca.logic_and(ca.logic_not(started), ca.logic_and(sensible, sample.steady))
    upright = column_of(product(turn, quat_of(mean.quat)))
    mean = replace(mean, quat=ca.if_else(chosen, upright, mean.quat))
    lever, heading = ca.skew(ca.DM(up)) / g, design.first_deviations[0]
    bias, white = design.imu.accelerometer_bias**2, design.imu.accelerometer_noise**2 / dt
    tilt, yaw = lever @ lever.T * (bias + white), np.outer(up, up)
    level = ca.SX(P)
    leans = design.start.tilt**2 + (size / g - 1) ** 2
    level[THETA, THETA] = tilt + leans * ca.DM(np.eye(3) - yaw) + ca.DM(heading**2 * yaw)
    level[THETA, BETA_A] = lever @ mean.R * bias
    level[BETA_A, THETA] = level[THETA, BETA_A].T
    level = _placed(design, mean.p, level)
    first = [*range(3), *range(9, 12), *range(design.layout.n - 3, design.layout.n)]
    P[first, first] = ca.if_else(chosen, level[first, first], P[first, first])
    return mean, P
