"""The samples of a tick that are used: the IMU's, or what stands for it, and the encoders'."""

from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.estimation.base_design import BaseDesign
from mbcasadi.qp.input_guard import MASK_ON

OUTAGE = 0.05
"""s for which the last valid sample of an IMU stands for those that are missing."""

STEADY = 0.3
"""Of g, by which the force of a first sample may differ from that of the one before."""


class Sample(NamedTuple):
    """The IMU's sample that is used: rate, force, and how it came about.

    Attributes:
        rate, force: (3,) rad/s, m/s².
        valid: whether it was measured.
        missing: s for which none has been.
        steady: whether it is valid and its force near the one before, at first that of rest at q0:
            the first force of legs that nothing holds yet shows no vertical.
    """

    rate: ca.SX
    force: ca.SX
    valid: ca.SX
    missing: ca.SX
    steady: ca.SX


def imu_sample(
    design: BaseDesign, y: ca.SX, valid: ca.SX, before: dict[str, ca.SX], dt: ca.SX
) -> Sample:
    """Return the IMU's sample, or what stands for it."""
    imu, own = design.imu, y[:6]
    ok = valid[0] > MASK_ON
    for k in range(6):
        limit = imu.gyro_range if k < 3 else imu.accelerometer_range
        ok = ca.logic_and(ok, ca.fabs(own[k]) <= limit)  # false for NaN
    missing = before["missing"]
    mean = design.layout.mean(before["x"])
    still = mean.R.T @ ca.DM(-design.gravity) + mean.b_a
    held = missing <= OUTAGE
    rate = ca.if_else(ok, own[:3], ca.if_else(held, before["gyro"], mean.b_g))
    force = ca.if_else(ok, own[3:], ca.if_else(held, before["force"], still))
    g, jump = float(np.linalg.norm(design.gravity)), ca.norm_2(force - before["force"])
    steady = ca.logic_and(ok, jump < STEADY * g)
    return Sample(rate, force, ok, ca.if_else(ok, 0, ca.fmin(missing + dt, 1e3)), steady)


def encoders_read(design: BaseDesign, y: ca.SX, valid: ca.SX) -> ca.SX:
    """Return which encoders (m,) have a valid sample; false for NaN."""
    m, encoders = design.joints, design.encoders
    read = ca.logic_and(
        valid[1 : 1 + m] > MASK_ON, ca.fabs(y[6 : 6 + m]) <= encoders.position_range
    )
    if not design.rated:
        return read
    return ca.logic_and(read, ca.fabs(y[6 + m : 6 + 2 * m]) <= encoders.rate_range)
