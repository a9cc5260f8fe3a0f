"""From the IMU's estimate to the robot's q and v, and their covariance.

With the IMU at p_BI, R_BI of the base and its velocity `J q̇` there by the joints alone,

    R_B = R R_BIᵀ,     ω_B = R_BI ω - J_ω q̇,     p_B = p - R_B p_BI,
    v_B = v - R_B (J_v q̇ + ω_B × p_BI)

v_B is linear in world axes, ω_B angular in the base's, as MuJoCo has them. A gyroscope gives the
mean rate of a tick; its change since the tick before counts as its error at the end, and fades: of
an IMU that shakes it passes zero while the error does not.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.estimation.covariance import congruence
from mbcasadi.estimation.invariant import BETA_G, NU, THETA, Layout, Mean
from mbcasadi.estimation.landmarks import Mounting
from mbcasadi.estimation.rotations import product
from mbcasadi.spatial.quaternion_columns import column_of, matrix_of, quat_of, quat_of_matrix
from mbcasadi.spatial.quaternions import conjugate

BASE = 12
"""Errors of the base: position, rotation (base axes), linear and angular velocity."""


class BaseState(NamedTuple):
    """The base.

    Attributes:
        pose: (7,) position and quaternion.
        velocity: (6,) linear, world axes, and angular, base axes.
        covariance: (12 + 2k, 12 + 2k) of both errors, in the coordinates of `System.difference`,
            then of positions and rates of passive joints.
    """

    pose: ca.SX
    velocity: ca.SX
    covariance: ca.SX


def base_state(
    layout: Layout,
    mean: Mean,
    P: ca.SX,
    at: Mounting,
    rate: ca.SX,
    joint_rates: ca.SX,
    noise: tuple[ca.SX, ca.SX],
) -> BaseState:
    """Return the base's pose, velocity and covariance.

    Args:
        layout: of the errors.
        mean: the estimate.
        P: (n, n) covariance of its errors.
        at: the IMU in the base.
        rate: (3,) of the IMU without its bias, its axes, rad/s.
        joint_rates: (m,).
        noise: variances (3,) of `rate`, and that of an entry of `joint_rates`.
    """
    quat = product(quat_of(mean.quat), conjugate(quat_of_matrix(at.rotation)))
    R, p_BI = matrix_of(quat), at.place
    turning = at.J @ joint_rates
    w = at.rotation @ rate - turning[3:]
    arm = turning[:3] + ca.cross(w, p_BI)
    p, v = mean.p - R @ p_BI, mean.v - R @ arm
    T = ca.SX(BASE + 2 * len(layout.passive), layout.n)
    T[0:3, THETA], T[0:3, layout.n - 3 :] = -ca.skew(p), ca.SX.eye(3)
    T[3:6, THETA] = R.T
    T[6:9, THETA], T[6:9, NU] = -ca.skew(v), ca.SX.eye(3)
    across = R @ ca.skew(p_BI)  # velocity by an error of ω_B
    T[6:9, BETA_G], T[9:12, BETA_G] = -across @ at.rotation, -at.rotation
    T[BASE:, [*layout.bent, *layout.bending]] = ca.SX.eye(2 * len(layout.passive))
    none = 2 * len(layout.passive)
    G = ca.vertcat(ca.SX(6, 3), across @ at.rotation, at.rotation, ca.SX(none, 3))
    D = ca.vertcat(ca.SX(6, at.J.shape[1]), -R @ at.J[:3, :] - across @ at.J[3:, :], -at.J[3:, :])
    D = ca.vertcat(D, ca.SX(none, at.J.shape[1]))
    covariance = congruence(T, P) + congruence(G, ca.diag(noise[0])) + noise[1] * (D @ D.T)
    return BaseState(ca.vertcat(p, column_of(quat)), ca.vertcat(v, w), covariance)
