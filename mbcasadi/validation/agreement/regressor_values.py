"""The regressor of a `System` beside MuJoCo's equations: `Y θ + y_0 = M a + h - f_passive`."""

import numpy as np

from mbcasadi.dynamics import linear_parameters, regressor
from mbcasadi.system import System
from mbcasadi.validation.agreement import manifold, weights
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.references import Reference, Value
from mbcasadi.validation.agreement.samples import Sample

REGRESSOR = "regressor"

ALL, OF_JOINTS = ("*",), ("joint:*",)
"""Patterns of parameters."""

SUM_SHARE = 1.0
"""Smallest value that an error is relative to, over the natural size: the terms have that size, and
where they cancel their sum has the rounding errors of the terms."""


def acceleration(s: Sample) -> Array:
    """Return an acceleration (nv,) of the mechanism's own size."""
    return np.asarray(s.sizes.rate**2 * s.dv)


def _needed_force(s: Sample) -> Array:
    inertial: Array = manifold.inertia(s.model, s.data) @ acceleration(s)
    return np.asarray(inertial + s.data.qfrc_bias - s.data.qfrc_passive)


REFERENCE = Reference(REGRESSOR, "N, N m", _needed_force, weights.of_force, share=SUM_SHARE)
"""MuJoCo's side, of its own masses."""


def is_available(system: System) -> bool:
    """Return whether a system has a regressor; members that it lacks have their own entries."""
    members = ("mass_matrix", "bias_force", "passive_force")
    return system.tree is not None and not any(map(system.coverage.refusal, members))


def _meets_medium_as_boxes(system: System) -> bool:
    """Return whether bodies meet a medium as their inertia boxes, of which nothing is linear."""
    medium = None if system.tree is None else system.tree.fluid
    return medium is not None and bool(medium.boxes)


def regressor_value(system: System) -> Value:
    """Return `Y θ + y_0` of a system as a function of a sample."""
    chosen = ALL if not _meets_medium_as_boxes(system) else OF_JOINTS
    Y_of, theta = regressor(system, chosen), linear_parameters(system, chosen).values

    def value(s: Sample) -> Array:
        Y, rest = (x.full() for x in Y_of(s.q, s.v, acceleration(s)))
        return np.asarray(Y @ theta + rest.ravel())

    return value
