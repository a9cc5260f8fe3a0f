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

__all__ = [
    "Controllability",
    "Equilibrium",
    "Linearization",
    "Mode",
    "controllability",
    "discretize",
    "equilibrium",
    "linearize",
    "require_stabilisable",
]
