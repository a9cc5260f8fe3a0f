"""Linear systems of mechanisms with constraints: models, equilibria, controllability."""

from mbcasadi.control.linear.controllability import (
    Controllability,
    controllability,
    require_stabilisable,
)
from mbcasadi.control.linear.discrete import discretize
from mbcasadi.control.linear.linearization import Linearization, linearize
from mbcasadi.control.linear.modes import Mode

__all__ = [
    "Controllability",
    "Linearization",
    "Mode",
    "controllability",
    "discretize",
    "linearize",
    "require_stabilisable",
]
