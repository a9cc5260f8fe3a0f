"""Scales of a mechanism: what its coordinates and its constraint rows are compared with.

"This row is too weak to count" needs a length that comes from the mechanism itself: with 1 m/rad,
a mechanism of one millimetre loses its loops. Here a row is compared with its own length over
closed poses, and rotations with translations by a length, or by the inertias, of the model. When
the units of a model change, its scales change with them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.system.closed_poses import closed_poses
from mbcasadi.system.mechanism import Mechanism
from mbcasadi.system.natural_sizes import model_length, natural_sizes
from mbcasadi.system.row_lengths import rows_of, typical_row_lengths

Array = NDArray[np.float64]


STATIC = {"bias_force": 1.0, "passive_force": -1.0}
"""Members whose sum, with these signs, is the force on a mechanism at rest."""


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of a mechanism, measured at closed poses.

    Attributes:
        states: (q, v) of the samples; v is a random velocity of the size of `coordinates` times
            `rate`.
        coordinates: (nv,) size of each coordinate: 1 rad for rotations, a length of the model for
            translations; by the inertias where the system was given by equations.
        rows: (nc,) root mean square of `|A_i diag(coordinates)|`: the length of each row.
        row_norms: (nc,) root mean square of `|A_i|`.
        rate: 1/s, of the motions that gravity or springs cause. A mechanism without them has no
            time of its own: 1.
    """

    states: tuple[tuple[Array, Array], ...]
    coordinates: Array
    rows: Array
    row_norms: Array
    rate: float


def measure_scales(system: Mechanism) -> Scales:
    """Return the scales of a system; deterministic."""
    rng = np.random.default_rng(0)
    sought = natural_sizes(system)
    poses = closed_poses(system, rng, sought)
    size = _scales_by_inertia(system, poses, sought) if system.tree is None else sought
    rate = _rate(system, poses, size)
    states = tuple((q, rate * size * rng.standard_normal(system.nv)) for q in poses)
    rows, norms = (typical_row_lengths(system, states, np.diag(x)) for x in (size, size**0))
    return Scales(states, size, rows, norms, rate)


def _rate(system: Mechanism, poses: list[Array], size: Array) -> float:
    """Return the rate of a mechanism's own motion, 1/s.

    `(g / length)^½` of a model with gravity; else `(|D f| / tr(D M D))^½` with the static force f
    and the sizes D, 1 where no force acts.
    """
    gravity = 0.0 if system.tree is None else float(np.linalg.norm(system.tree.gravity))
    if system.tree is not None and gravity > 0:
        return float(np.sqrt(gravity / model_length(system.tree)))
    known = [name for name in STATIC if system.coverage.refusal(name) is None]
    force, inertia, still = 0.0, 0.0, np.zeros(system.nv)
    for q in poses:
        forces = [STATIC[name] * system.member(name)(q, still).full().ravel() for name in known]
        force += float(np.linalg.norm(size * sum(forces, still)))
        inertia += float(np.sum(size**2 * np.diag(np.asarray(system.mass_matrix(q)))))
    rate = np.sqrt(force / inertia) if inertia > 0 else 0.0
    return float(rate) if 0 < rate < np.inf else 1.0


def _scales_by_inertia(system: Mechanism, poses: list[Array], least: Array) -> Array:
    """Return coordinates of equal kinetic energy, of the size of the poses' spread.

    That is at `least` the size at which the equations change: few poses close, and those may be
    near each other. A coordinate without inertia gets the scale with which its share in its rows
    equals that of the others.
    """
    inertia = np.mean([np.diag(np.asarray(system.mass_matrix(q))) for q in poses], axis=0)
    spread = np.maximum(np.std(poses, axis=0), least)
    massive = inertia > 0
    moving = massive & (spread > 0)
    size = np.zeros(system.nv)
    energy = float(np.median((np.sqrt(np.abs(inertia)) * spread)[moving])) if moving.any() else 1.0
    size[massive] = energy / np.sqrt(inertia[massive])
    if massive.all():
        return size
    A2 = np.mean([rows_of(system, q, np.zeros(system.nv)) ** 2 for q in poses], axis=0)
    others = A2 @ size**2
    for j in np.flatnonzero(~massive):
        rows = (A2[:, j] > 0) & (others > 0)
        size[j] = np.sqrt(np.median(others[rows] / A2[rows, j])) if rows.any() else 0.0
    size[size == 0] = np.median(size[size > 0]) if np.any(size > 0) else 1.0
    return size
