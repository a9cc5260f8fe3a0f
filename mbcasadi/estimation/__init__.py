"""State estimation: what a robot measures turned into q and v, as Functions that become C."""

from mbcasadi.estimation.base_estimator import base_estimator
from mbcasadi.estimation.estimator import Estimator, Sensor
from mbcasadi.estimation.manifold_filter import manifold_filter
from mbcasadi.estimation.measured import Disturbance, FilterOptions, Measured, UnknownParameter
from mbcasadi.estimation.noise import Encoders, Footing, Imu, Start, quantisation

__all__ = [
    "Disturbance",
    "Encoders",
    "Estimator",
    "FilterOptions",
    "Footing",
    "Imu",
    "Measured",
    "Sensor",
    "Start",
    "UnknownParameter",
    "base_estimator",
    "manifold_filter",
    "quantisation",
]
