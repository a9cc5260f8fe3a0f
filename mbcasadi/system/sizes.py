"""Sizes of residuals and controls: what makes numbers of different units comparable.

With `System.scales.coordinates` the forces of all coordinates are torques: a force times a length
of the model. A multiplier times the size of its row's residual is one too, and so is a control
times its own size. Sums of squares of such products, and tolerances in these sizes, are the same
in all units of the model. Where all rows or all controls have one unit, their sizes are equal.
"""

from functools import lru_cache

import numpy as np

from mbcasadi.description import Connect, Equality, JointCoupling, RigidTree, Weld
from mbcasadi.system.functions import evaluate
from mbcasadi.system.natural_sizes import Array, model_length
from mbcasadi.system.system import System

AUTHORED_SHARE = 0.1
"""Share of an actuator's usual effect that it must have in the initial pose to be measured there:
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
        assert system.tree is not None
        known = known_residual_sizes(system.tree, equality)
        if known is not None:
            sizes[first : first + equality.size] = known
        first += equality.size
    return sizes


def rate_sizes(system: System, v: Array) -> Array:
    """Return (nc,) sizes of the rows' rates at a velocity (nv,).

    They are those of `residual_sizes` times the rate of the motion, `System.scales.rate` at least.
    """
    rate = np.abs(v / system.scales.coordinates).max(initial=0.0)
    return residual_sizes(system) * max(float(rate), system.scales.rate)


def sized_rows(system: System, A: Array) -> Array:
    """Return rows (nc, nv) over the sizes of residuals, for rates over the sizes of coordinates."""
    return np.asarray(A * system.scales.coordinates / residual_sizes(system)[:, None])


def longest_row(system: System) -> float:
    """Return the usual length of the longest row of `sized_rows`; 1 without rows."""
    return float((system.scales.rows / residual_sizes(system)).max(initial=0.0)) or 1.0


def known_residual_sizes(tree: RigidTree, equality: Equality) -> Array | None:
    """Return the sizes (k,) of an equality's residuals, or None where their unit is not known."""
    length = model_length(tree)
    if isinstance(equality, Connect):
        return np.full(3, length)
    if isinstance(equality, Weld):
        turn = abs(equality.torquescale) / 2  # of `vec` of a quaternion, for 1 rad
        return np.repeat([length, turn if turn > 0 else 1.0], 3)
    if isinstance(equality, JointCoupling):
        kind = tree.joints[equality.joint1].kind
        return np.array([length if kind == "slide" else 1.0])
    return None


def resting_actuation(system: System, q: Array) -> Array:
    """Return B (nv, nu) at rest, where it depends on velocity."""
    return np.asarray(evaluate(system.actuation, {"q": q, "v": np.zeros(system.nv)}).full())


@lru_cache(maxsize=64)
def control_sizes(system: System) -> Array:
    """Return (nu,) the largest torque on a coordinate that a unit of each control gives.

    Its root mean square over poses; forces count with the length of their coordinate. A control
    that has no effect anywhere has the largest size of the others.
    """
    states, size = system.scales.states, system.scales.coordinates[:, None]
    torques = [
        np.abs(size * resting_actuation(system, q)).max(axis=0, initial=0.0) for q, _ in states
    ]
    sizes = np.sqrt(np.mean(np.square(torques), axis=0))
    if system.tree is not None:
        B = resting_actuation(system, np.asarray(system.tree.q0, dtype=float))
        authored = np.abs(size * B).max(axis=0, initial=0.0)
        sizes = np.where(authored > AUTHORED_SHARE * sizes, authored, sizes)
    return np.asarray(np.where(sizes > 0, sizes, sizes.max(initial=0.0) or 1.0))
