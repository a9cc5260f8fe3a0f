"""Where a base estimator starts: its first memory, and roll and pitch by the accelerometer."""

from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.estimation.base_samples import Sample
from mbcasadi.estimation.covariance import packed
from mbcasadi.estimation.invariant import BETA_A, BETA_G, NU, THETA, Mean
from mbcasadi.estimation.landmarks import FREE_Q
from mbcasadi.estimation.rotations import (
    column_of,
    matrix_of,
    product,
    quat_of,
    quat_of_matrix,
    turn_between,
)

Array = NDArray[np.float64]

UNLEVELLED = 0.3
"""rad, standard deviation of roll and pitch that no accelerometer has levelled."""


def memory_at(design: BaseDesign) -> ca.DM:
    """Return the memory (nz,) of an estimator that starts at rest at `q0`."""
    q = design.q0
    at, sights = design.kinematics(ca.SX(ca.DM(q[FREE_Q:])))
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
    )
    places = tuple(mean.R @ s.place for s in sights)
    seen = [design.seen(s, k, mean) for k, s in enumerate(sights)]
    mean = replace(mean, places=places, turns=tuple(s.quat for s in seen if s.quat is not None))
    count = len(sights)
    parts = {
        "x": mean.column,
        "P": packed(ca.SX(ca.DM(_first_covariance(design)))),
        "stood": ca.SX(count, 1),
        "mean": ca.SX(design.memory.sizes["mean"], 1),
        "joint": ca.SX(ca.DM(q[FREE_Q:])),
        "joint_rate": ca.SX(design.joints, 1),
        "gyro": ca.SX(3, 1),
        "force": mean.R.T @ ca.DM(-design.gravity),
        **{key: ca.SX(1, 1) for key in ("missing", "lost", "doubt", "started")},
    }
    return ca.evalf(design.memory.join({k: ca.densify(x) for k, x in parts.items()}))


def _first_covariance(design: BaseDesign) -> Array:
    """Return the covariance (n, n) of the first estimate, before it is levelled."""
    start, up = design.start, design.gravity / np.linalg.norm(design.gravity)
    n, yaw = design.layout.n, np.outer(up, up)
    P = np.eye(n)
    P[THETA, THETA] = UNLEVELLED**2 * (np.eye(3) - yaw) + start.heading**2 * yaw
    P[NU, NU] *= start.speed**2
    P[BETA_G, BETA_G] *= design.imu.gyro_bias**2
    P[BETA_A, BETA_A] *= design.imu.accelerometer_bias**2
    P[n - 3 :, n - 3 :] *= start.position**2
    return P


def levelled(
    design: BaseDesign, mean: Mean, P: ca.SX, sample: Sample, started: ca.SX, dt: ca.SX
) -> tuple[Mean, ca.SX]:
    """Return the estimate, at the first tick with roll and pitch of the accelerometer.

    With its noise w, `θ = [up]× R (β_a - w) / g` across the vertical: roll and pitch are as
    wrong as the bias is, and the covariance says so. What else has errors in common with θ, by
    ticks without a sample, has no longer.
    """
    up = -design.gravity / np.linalg.norm(design.gravity)
    size = ca.norm_2(sample.force)
    g = float(np.linalg.norm(design.gravity))
    sensible = ca.logic_and(size > g / 2, size < 3 * g / 2)
    direction = mean.R @ sample.force / ca.fmax(size, g / 2)
    turn = turn_between(direction, ca.SX(ca.DM(up)))
    chosen = ca.logic_and(ca.logic_not(started), ca.logic_and(sensible, sample.valid))
    level = column_of(product(turn, quat_of(mean.quat)))
    mean = replace(mean, quat=ca.if_else(chosen, level, mean.quat))
    lever, start = ca.skew(ca.DM(up)) / g, design.start
    bias, white = design.imu.accelerometer_bias**2, design.imu.accelerometer_noise**2 / dt
    tilt, yaw = lever @ lever.T * (bias + white), np.outer(up, up)
    tilt += start.tilt**2 * (np.eye(3) - yaw) + start.heading**2 * yaw
    cross = lever @ mean.R * bias
    n = P.shape[0]
    P[THETA, THETA.stop : n] = ca.if_else(chosen, 0, P[THETA, THETA.stop : n])
    P[THETA.stop : n, THETA] = P[THETA, THETA.stop : n].T
    P[THETA, THETA] = ca.if_else(chosen, tilt, P[THETA, THETA])
    P[THETA, BETA_A] = ca.if_else(chosen, cross, P[THETA, BETA_A])
    P[BETA_A, THETA] = P[THETA, BETA_A].T
    return mean, P
