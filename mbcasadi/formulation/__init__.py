"""Equations of constrained motion: matrices in, matrices out, one method in each file."""

from mbcasadi.formulation.lagrange import lagrange as lagrange
from mbcasadi.formulation.limbwise import limbwise as limbwise
from mbcasadi.formulation.metric import (
    in_metric,
    length_metric,
    limit_metric,
    metric_projector,
)
from mbcasadi.formulation.motion import ConstrainedMotion, Equations
from mbcasadi.formulation.null_space import null_space
from mbcasadi.formulation.projection import constraint_inertia
from mbcasadi.formulation.projection import projection as projection
from mbcasadi.formulation.quasi_velocity import quasi_velocity
from mbcasadi.formulation.udwadia_kalaba import udwadia_kalaba
from mbcasadi.formulation.virtual_mass import virtual_mass

__all__ = [
    "ConstrainedMotion",
    "Equations",
    "constraint_inertia",
    "in_metric",
    "length_metric",
    "limit_metric",
    "metric_projector",
    "null_space",
    "quasi_velocity",
    "udwadia_kalaba",
    "virtual_mass",
]

NOT_STARRED = ("lagrange", "limbwise", "projection")
"""Public names that `import *` leaves out: they are words that people have variables of."""
