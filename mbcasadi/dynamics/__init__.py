"""Joins a `System` and a formulation into named Functions, with implicit derivatives."""

from mbcasadi.dynamics.choice import FORMULATIONS
from mbcasadi.dynamics.forward import (
    constraint_force,
    forward_dynamics,
    forward_dynamics_derivatives,
)
from mbcasadi.dynamics.inverse import constrained_inverse_dynamics, inverse_dynamics

__all__ = [
    "FORMULATIONS",
    "constrained_inverse_dynamics",
    "constraint_force",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "inverse_dynamics",
]
