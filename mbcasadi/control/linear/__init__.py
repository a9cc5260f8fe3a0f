"""Linear systems of mechanisms with constraints: models, equilibria, controllability."""

from mbcasadi.control.linear.controllability import (
    Controllability,
    controllability,
    require_stabilisable,
)
from mbcasadi.control.linear.discrete import discretize
from mbcasadi.control.linear.equilibrium import Equilibrium, equilibrium
from mbcasadi.control.linear.linearization import Linearization, linearize
from mbcasadi.control.linear.modes import Mode
from mbcasadi.control.linear.multiplier_form import (
    WithMultipliers,
    reduced,
    with_multipliers,
)
from mbcasadi.control.linear.trajectory import discretize_along, linearize_along

__all__ = [
    "Controllability",
    "Equilibrium",
    "Linearization",
    "Mode",
    "WithMultipliers",
    "controllability",
    "discretize",
    "discretize_along",
    "equilibrium",
    "linearize",
    "linearize_along",
    "reduced",
    "require_stabilisable",
    "with_multipliers",
]
