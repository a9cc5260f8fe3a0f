"""State estimation: what a robot measures turned into q and v, as Functions that become C."""

from mbcasadi.estimation.base_estimator import base_estimator
from mbcasadi.estimation.contact_probability import (
    ContactBelief,
    FootLoad,
    contact_probability,
)
from mbcasadi.estimation.estimator import Estimator, Sensor
from mbcasadi.estimation.manifold_filter import manifold_filter
from mbcasadi.estimation.measured import Disturbance, FilterOptions, Measured, UnknownParameter
from mbcasadi.estimation.momentum_observer import momentum_observer
from mbcasadi.estimation.noise import Encoders, Footing, Imu, Start, quantisation
from mbcasadi.estimation.residual_forces import residual_forces
from mbcasadi.estimation.velocity_observer import velocity_observer

__all__ = [
    "ContactBelief",
    "Disturbance",
    "Encoders",
    "Estimator",
    "FilterOptions",
    "FootLoad",
    "Footing",
    "Imu",
    "Measured",
    "Sensor",
    "Start",
    "UnknownParameter",
    "base_estimator",
    "contact_probability",
    "manifold_filter",
    "momentum_observer",
    "quantisation",
    "residual_forces",
    "velocity_observer",
]
