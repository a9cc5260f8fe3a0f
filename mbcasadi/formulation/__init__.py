"""Equations of constrained motion: matrices in, matrices out, one method in each file."""

from mbcasadi.formulation.lagrange import lagrange
from mbcasadi.formulation.motion import ConstrainedMotion
from mbcasadi.formulation.projection import constraint_inertia, projection

__all__ = ["ConstrainedMotion", "constraint_inertia", "lagrange", "projection"]
