"""Sizes of residuals and controls: what makes numbers of different units comparable.

With `System.scales.coordinates` the forces of all coordinates are torques: a force times a length
of the model. A multiplier times the size of its row's residual is one too, and so is a control
times its own size. Sums of squares of such products, and tolerances in these sizes, are the same
in all units of the model. Where all rows or all controls have one unit, their sizes are equal.
"""

from functools import lru_cache

import numpy as np

from mbcasadi.description import Connect, Equality, JointCoupling, Weld
from mbcasadi.system.scales import Array, model_length
from mbcasadi.system.system import System

AUTHORED_SHARE = 0.1
"""Share of an actuator's usual effect that it must have in the authored pose to be measured there:
mirrored actuators of a symmetric pose then have one size."""


@lru_cache(maxsize=64)
def residual_sizes(system: System) -> Array:
    """Return (nc,) sizes of the rows' residuals.

    A length of the model, or 1 rad, where the unit of a row is known; the row's own usual length
    for couplings of tendons and for rows that were given by equations.
    """
    sizes = system.scales.rows.copy()
    first = 0
    for equality in system.equalities:
        known = _known_size(system, equality)
        if known is not None:
            sizes[first : first + equality.size] = known
        first += equality.size
    return sizes


def _known_size(system: System, equality: Equality) -> Array | None:
    """Return the sizes (k,) of an equality's residuals, or None where their unit is not known."""
    assert system.tree is not None
    length = model_length(system.tree)
    if isinstance(equality, Connect):
        return np.full(3, length)
    if isinstance(equality, Weld):
        turn = abs(equality.torquescale) / 2  # of `vec` of a quaternion, for 1 rad
        return np.repeat([length, turn if turn > 0 else 1.0], 3)
    if isinstance(equality, JointCoupling):
        kind = system.tree.joints[equality.joint1].kind
        return np.array([length if kind == "slide" else 1.0])
    return None


@lru_cache(maxsize=64)
def control_sizes(system: System) -> Array:
    """Return (nu,) `|diag(coordinates) B_i|`, the torque that a unit of each control gives.

    A control that has no effect anywhere has the largest size of the others.
    """
    states, size = system.scales.states, system.scales.coordinates[:, None]
    squares = [np.sum((size * system.actuation(q).full()) ** 2, axis=0) for q, _ in states]
    sizes = np.sqrt(np.mean(squares, axis=0))
    if system.tree is not None:
        B = system.actuation(np.asarray(system.tree.q0, dtype=float)).full()
        authored = np.linalg.norm(size * B, axis=0)
        sizes = np.where(authored > AUTHORED_SHARE * sizes, authored, sizes)
    return np.asarray(np.where(sizes > 0, sizes, sizes.max(initial=0.0) or 1.0))
