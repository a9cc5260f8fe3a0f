"""State estimation: what a robot measures turned into q and v, as Functions that become C."""

from mbcasadi.estimation.allan import (
    AllanDeviation,
    InertialNoise,
    allan_deviation,
    inertial_noise,
)
from mbcasadi.estimation.base_estimator import base_estimator
from mbcasadi.estimation.contact_probability import (
    ContactBelief,
    FootLoad,
    contact_probability,
)
from mbcasadi.estimation.estimated_law import EstimatedLaw
from mbcasadi.estimation.estimates import Estimates, estimate_log
from mbcasadi.estimation.estimator import Estimator, EstimatorSensor
from mbcasadi.estimation.fit_noise import FittedNoise
from mbcasadi.estimation.fit_noise import fit_noise as fit_noise
from mbcasadi.estimation.fixes import Fix
from mbcasadi.estimation.linear_filter import KalmanFilter, kalman, lqg
from mbcasadi.estimation.logged_inputs import Channel, LoggedInputs
from mbcasadi.estimation.logged_inputs import logged_inputs as logged_inputs
from mbcasadi.estimation.logs import SensorLog, read_log
from mbcasadi.estimation.manifold_filter import manifold_filter
from mbcasadi.estimation.measured import FilterOptions, Measured, UnknownForce, UnknownParameter
from mbcasadi.estimation.momentum_observer import momentum_observer
from mbcasadi.estimation.noise import (
    Encoders,
    FirstEstimate,
    Footing,
    Imu,
    PassiveJoint,
    encoder_noise,
)
from mbcasadi.estimation.residual_forces import residual_forces
from mbcasadi.estimation.velocity_observer import velocity_observer
from mbcasadi.estimation.with_estimator import EstimatedTwoRates, with_estimator

__all__ = [
    "AllanDeviation",
    "Channel",
    "ContactBelief",
    "Encoders",
    "EstimatedLaw",
    "EstimatedTwoRates",
    "Estimates",
    "Estimator",
    "EstimatorSensor",
    "FilterOptions",
    "FirstEstimate",
    "FittedNoise",
    "Fix",
    "FootLoad",
    "Footing",
    "Imu",
    "InertialNoise",
    "KalmanFilter",
    "LoggedInputs",
    "Measured",
    "PassiveJoint",
    "SensorLog",
    "UnknownForce",
    "UnknownParameter",
    "allan_deviation",
    "base_estimator",
    "contact_probability",
    "encoder_noise",
    "estimate_log",
    "fit_noise",
    "inertial_noise",
    "kalman",
    "logged_inputs",
    "lqg",
    "manifold_filter",
    "momentum_observer",
    "read_log",
    "residual_forces",
    "velocity_observer",
    "with_estimator",
]
