"""State estimation: what a robot measures turned into q and v, as Functions that become C."""

from mbcasadi.estimation.base_estimator import base_estimator
from mbcasadi.estimation.estimator import Estimator, Sensor
from mbcasadi.estimation.noise import Encoders, Footing, Imu, Start, quantisation

__all__ = [
    "Encoders",
    "Estimator",
    "Footing",
    "Imu",
    "Sensor",
    "Start",
    "base_estimator",
    "quantisation",
]
