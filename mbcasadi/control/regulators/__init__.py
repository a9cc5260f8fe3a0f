"""Linear systems of mechanisms with constraints: models, equilibria, regulators, filters."""

from mbcasadi.control.regulators.controllability import (
    Controllability,
    controllability,
    require_stabilisable,
)
from mbcasadi.control.regulators.discrete import discretize
from mbcasadi.control.regulators.equilibrium import Equilibrium, equilibrium
from mbcasadi.control.regulators.estimation import KalmanFilter, encoders, kalman, lqg
from mbcasadi.control.regulators.feedback import feedback
from mbcasadi.control.regulators.horizon import (
    finite_horizon_gains,
    finite_horizon_lqr,
    trajectory_gains,
    trajectory_lqr,
)
from mbcasadi.control.regulators.linearization import Linearization, linearize
from mbcasadi.control.regulators.lqr import lqr, lqr_gain, natural_gain
from mbcasadi.control.regulators.lti_inverse_dynamics import lti_inverse_dynamics
from mbcasadi.control.regulators.modes import Mode
from mbcasadi.control.regulators.multiplier_form import WithMultipliers, reduced, with_multipliers
from mbcasadi.control.regulators.observability import Observability, observability
from mbcasadi.control.regulators.pole_placement import pole_placement, poles_gain
from mbcasadi.control.regulators.riccati import Filter, Regulator
from mbcasadi.control.regulators.time_varying import discretize_along, linearize_along

__all__ = [
    "Controllability",
    "Equilibrium",
    "Filter",
    "KalmanFilter",
    "Linearization",
    "Mode",
    "Observability",
    "Regulator",
    "WithMultipliers",
    "controllability",
    "discretize",
    "discretize_along",
    "encoders",
    "equilibrium",
    "feedback",
    "finite_horizon_gains",
    "finite_horizon_lqr",
    "kalman",
    "linearize",
    "linearize_along",
    "lqg",
    "lqr",
    "lqr_gain",
    "lti_inverse_dynamics",
    "natural_gain",
    "observability",
    "pole_placement",
    "poles_gain",
    "reduced",
    "require_stabilisable",
    "trajectory_gains",
    "trajectory_lqr",
    "with_multipliers",
]
