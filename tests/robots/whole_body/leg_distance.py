"""How near the two legs of a robot come to each other, whether or not its model lets them touch."""

from collections.abc import Sequence

import mujoco
import numpy as np

import mbcasadi as mb
from robots.ground import Array

EVERY = 5  # ticks
COLLISIONS = 3  # group of geoms that are there for contacts


def legs_apart(q: Array, model: mujoco.MjModel, feet: Sequence[mb.Contact]) -> str:
    """Return the smallest distance of the legs of a biped in words; nothing of other robots."""
    bodies = list(dict.fromkeys(int(model.site(foot.frame).bodyid[0]) for foot in feet))
    if len(bodies) != 2:
        return ""
    return f", legs {1e3 * leg_distance(q[::EVERY], model, bodies):.0f} mm apart"


def leg_distance(q: Array, model: mujoco.MjModel, feet: Sequence[int]) -> float:
    """Return the smallest distance of geoms of two legs at some poses, m; negative if they overlap.

    Args:
        q: (poses, nq).
        model: the robot.
        feet: the last bodies of the legs.
    """
    chains = [_chain(model, body) for body in feet]
    one, other = (
        [g for g in range(model.ngeom) if model.geom_bodyid[g] in own and _touches(model, g)]
        for own in (chains[0] - chains[1], chains[1] - chains[0])
    )
    data, ends, least = mujoco.MjData(model), np.zeros(6), np.inf
    for pose in q:
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        for a in one:
            for b in other:
                far = min(least, 1.0)
                least = min(least, mujoco.mj_geomDistance(model, data, a, b, far, ends))
    return float(least)


def _chain(model: mujoco.MjModel, body: int) -> set[int]:
    """Return a body and those that carry it."""
    found = set[int]()
    while body:
        found.add(body)
        body = int(model.body_parentid[body])
    return found


def _touches(model: mujoco.MjModel, geom: int) -> bool:
    """Return whether a geom is there for contacts."""
    bits = model.geom_contype[geom] | model.geom_conaffinity[geom]
    return bool(bits) or bool(model.geom_group[geom] >= COLLISIONS)
