"""State estimation: what a robot measures turned into q and v, as Functions that become C."""

from mbcasadi.estimation.base_estimator import base_estimator
from mbcasadi.estimation.contact_probability import (
    ContactBelief,
    FootLoad,
    contact_probability,
)
from mbcasadi.estimation.estimator import Estimator, Sensor
from mbcasadi.estimation.momentum_observer import momentum_observer
from mbcasadi.estimation.noise import Encoders, Footing, Imu, Start, quantisation
from mbcasadi.estimation.residual_forces import residual_forces
from mbcasadi.estimation.velocity_observer import velocity_observer

__all__ = [
    "ContactBelief",
    "Encoders",
    "Estimator",
    "FootLoad",
    "Footing",
    "Imu",
    "Sensor",
    "Start",
    "base_estimator",
    "contact_probability",
    "momentum_observer",
    "quantisation",
    "residual_forces",
    "velocity_observer",
]
