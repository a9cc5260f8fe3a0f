"""How a base leans over a foot so that the joints of its legs keep off their stops.

With feet where they stand and the centre of mass over one of them, an upright base may bring the
roll of a hip to its stop, where it cannot keep the robot from falling. The pose that is sought
moves the joints by little,

    min |feet|² + |com - way|² + |lean|² + |beyond ranges|² + |joints|²,

by weights of which each is far above the next.
"""

from collections.abc import Sequence

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from mbcasadi.anatomy.level_feet import small_turn
from mbcasadi.system import System
from mbcasadi.system.ranges import position_ranges

Array = NDArray[np.float64]

STANDS, RANGES, UPRIGHT, LEANS, JOINTS = 100.0, 30.0, 100.0, 0.3, 0.3
"""Weights of feet and centre of mass, 1/m; of ranges, of a base that is to be upright, of one that
may lean and of the motion of joints, 1/rad."""

OFF = 0.05
"""Of its range, that a joint keeps from its stops."""

LEAST = 0.01
"""Rad, of a lean that is worth it."""

NEARER = 1e-6
"""Rad, that a joint is nearer to its stop than at the start, where it counts."""

STEPS = 50
"""Evaluations of the pose at most."""


def lean_over(system: System, q: Array, base: str, feet: Sequence[str], way: Array) -> Array:
    """Return the (2,) turn of a base about the world's x and y, rad; zero where it stays upright.

    Args:
        system: with a floating base.
        q: (nq,) pose in which all feet stand.
        base: its body.
        feet: bodies that stay where they are.
        way: (2,) of the centre of mass, m.
    """
    upright, nearer, _ = pose_over(system, q, (base, feet, way), UPRIGHT)
    if nearer < NEARER or not upright:
        return np.zeros(2)
    there, _, lean = pose_over(system, q, (base, feet, way), LEANS)
    return lean if there and np.abs(lean).max() > LEAST else np.zeros(2)


def pose_over(
    system: System, q: Array, wanted: tuple[str, Sequence[str], Array], level: float
) -> tuple[bool, float, Array]:
    """Return whether a pose was found, by how much joints are nearer to stops, and its (2,) lean.

    A joint is near a stop within `OFF` of its range. Ranges count where the base may lean.
    """
    base, feet, way = wanted
    low, high = position_ranges(system)
    off = OFF * np.where(np.isfinite(high - low), high - low, 0.0)
    frames = {name: system.frame(name, "body") for name in (base, *feet)}
    rest, still = np.zeros(system.nv), np.zeros(system.nv)

    def poses(at: Array) -> dict[str, tuple[Array, Array]]:
        found = {name: frame.pose(at)[:2] for name, frame in frames.items()}
        return {name: (np.array(p).ravel(), np.array(R)) for name, (p, R) in found.items()}

    def mass(at: Array) -> Array:
        return np.array(system.center_of_mass(at, still)[0], dtype=float).ravel()

    begin, over = poses(q), mass(q) + np.array([*way, 0.0])

    def moved(move: Array) -> Array:
        return np.array(system.integrate(q, move), dtype=float).ravel()

    def stand(at: Array) -> Array:
        here = poses(at)
        errors = [here[name][0] - begin[name][0] for name in feet]
        errors += [small_turn(begin[name][1], here[name][1]) for name in feet]
        return np.concatenate([*errors, mass(at) - over])

    def near_stops(at: Array) -> Array:
        return np.maximum(0.0, np.maximum(low + off - at, at - high + off))

    def lean(at: Array) -> Array:
        return small_turn(begin[base][1], poses(at)[base][1])

    def residual(move: Array) -> Array:
        at = moved(move)
        ranges = RANGES * (level < UPRIGHT) * near_stops(at)
        return np.concatenate([STANDS * stand(at), level * lean(at), ranges, JOINTS * move[6:]])

    found = moved(scipy.optimize.least_squares(residual, rest, max_nfev=STEPS).x)
    there = bool(np.abs(stand(found)).max() < LEAST)
    nearer = near_stops(found) - near_stops(q)
    return there, float(nearer.max()), lean(found)[:2]
