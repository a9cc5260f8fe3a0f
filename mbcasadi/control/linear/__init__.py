"""Linear systems of mechanisms with constraints: models, equilibria, regulators, filters."""

from mbcasadi.control.linear.controllability import (
    Controllability,
    controllability,
    require_stabilisable,
)
from mbcasadi.control.linear.discrete import discretize
from mbcasadi.control.linear.equilibrium import Equilibrium, equilibrium
from mbcasadi.control.linear.estimation import KalmanFilter, encoders, kalman, lqg
from mbcasadi.control.linear.feedback import feedback
from mbcasadi.control.linear.horizon import (
    finite_horizon_gains,
    finite_horizon_lqr,
    trajectory_gains,
    trajectory_lqr,
)
from mbcasadi.control.linear.linearization import Linearization, linearize
from mbcasadi.control.linear.lqr import lqr, lqr_gain, natural_gain
from mbcasadi.control.linear.modes import Mode
from mbcasadi.control.linear.multiplier_form import (
    WithMultipliers,
    reduced,
    with_multipliers,
)
from mbcasadi.control.linear.observability import Observability, observability
from mbcasadi.control.linear.pole_placement import pole_placement, poles_gain
from mbcasadi.control.linear.riccati import Filter, Regulator
from mbcasadi.control.linear.trajectory import discretize_along, linearize_along

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
