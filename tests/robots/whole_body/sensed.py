"""Robots whose state follows from IMU and encoders: `robots.whole_body --sensors`.

An IMU of the class of an ICM-42688 with offsets that are not calibrated, encoders of 14 bits.
"""

from collections.abc import Sequence

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.estimation import Encoders, Footing, Imu, base_estimator, encoder_noise
from mbcasadi.validation import Recording, Sensing, SensorErrors
from mbcasadi.validation.metrics.estimate_metrics import estimate_metrics
from robots.ground import Array

BITS, RATE_NOISE = 14, 0.01  # of encoders; rad/s
ROLLING = {"go2": 0.8}  # of balls that MuJoCo lets sink in by 14 of 22 mm
SETTLE = 2.0  # s that figures leave out
ERRORS = {
    "gyro": SensorErrors(bias=5e-3, walk=1e-5),
    "accelerometer": SensorErrors(bias=0.05, walk=1e-4),
    "position": SensorErrors(noise=0.0, quantum=2 * np.pi / 2**BITS),
}


def sensing_of(
    system: mb.System, feet: Sequence[mb.Contact], q0: Array, rolling: float, period: float
) -> Sensing:
    """Return the estimator of a robot, with the errors of its sensors."""
    tree = system.tree
    base = next(body.name for body in tree.bodies if 0 in body.joints)
    sites = [f.name for f in tree.frames if f.kind == "site" and "imu" in f.name.lower()]
    imu = Imu(sites[0]) if sites else Imu(base, kind="body")
    encoders = Encoders(noise=encoder_noise(BITS), rate_noise=RATE_NOISE)
    footing = Footing(rolling=rolling)
    estimator = base_estimator(
        system, feet, imu=imu, encoders=encoders, footing=footing, q0=q0, period=period
    )
    return Sensing(estimator, ERRORS)


def estimate_cells(recording: Recording, model: mujoco.MjModel) -> str:
    """Return errors of the estimate as cells of a table."""
    values = {m.name: m.value for m in estimate_metrics(recording, model, SETTLE)}
    tilt = np.rad2deg(values["estimate.tilt"])
    drift = values.get("estimate.drift", np.nan)
    return (
        f"{values['estimate.velocity']:.3f} | {tilt:.2f} | {drift:.1%} | "
        f"{values['estimate.within']:.1%}"
    )
