"""State estimation: what a robot measures turned into q and v, as Functions that become C."""

from mbcasadi.estimation.base_estimator import base_estimator
from mbcasadi.estimation.contact_probability import (
    ContactBelief,
    FootLoad,
    contact_probability,
)
from mbcasadi.estimation.estimated_law import EstimatedLaw
from mbcasadi.estimation.estimator import Estimator, EstimatorSensor
from mbcasadi.estimation.manifold_filter import manifold_filter
from mbcasadi.estimation.measured import FilterOptions, Measured, UnknownForce, UnknownParameter
from mbcasadi.estimation.momentum_observer import momentum_observer
from mbcasadi.estimation.noise import Encoders, FirstEstimate, Footing, Imu, encoder_noise
from mbcasadi.estimation.residual_forces import residual_forces
from mbcasadi.estimation.two_rates import EstimatedTwoRates
from mbcasadi.estimation.velocity_observer import velocity_observer
from mbcasadi.estimation.with_estimator import with_estimator

__all__ = [
    "ContactBelief",
    "Encoders",
    "EstimatedLaw",
    "EstimatedTwoRates",
    "Estimator",
    "EstimatorSensor",
    "FilterOptions",
    "FirstEstimate",
    "FootLoad",
    "Footing",
    "Imu",
    "Measured",
    "UnknownForce",
    "UnknownParameter",
    "base_estimator",
    "contact_probability",
    "encoder_noise",
    "manifold_filter",
    "momentum_observer",
    "residual_forces",
    "velocity_observer",
    "with_estimator",
]
