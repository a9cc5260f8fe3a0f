"""Linear systems of mechanisms with constraints: models, equilibria, controllability."""

from mbcasadi.control.linear.discrete import discretize
from mbcasadi.control.linear.linearization import Linearization, linearize

__all__ = ["Linearization", "discretize", "linearize"]
