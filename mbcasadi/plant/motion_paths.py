"""Paths of the places that tell most of a motion: bases and ends of the limbs."""

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BASE_COLOR, END_COLOR = (0.12, 0.39, 0.72), (0.90, 0.45, 0.05)
"""Red, green and blue of paths, 0 to 1."""


def motion_paths(model: mujoco.MjModel, q: Array) -> tuple[Array, Array]:
    """Return paths (n, nb, 3) of free bodies and (n, ne, 3) of ends, m, over a motion.

    Ends are the lowest geoms of bodies without children.

    Args:
        model: of the robot.
        q: (n, nq) configurations.
    """
    free = mujoco.mjtJoint.mjJNT_FREE
    bases = [int(model.jnt_bodyid[j]) for j in range(model.njnt) if model.jnt_type[j] == free]
    parents = set(model.body_parentid.tolist())
    ends = [b for b in range(1, model.nbody) if b not in parents and model.body_weldid[b]]
    data, of_bases, of_ends = mujoco.MjData(model), [], []
    for pose in q:
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        of_bases.append(np.array(data.xpos[bases]))
        of_ends.append([_lowest(model, data, body) for body in ends])
    return np.array(of_bases).reshape(len(q), -1, 3), np.array(of_ends).reshape(len(q), -1, 3)


def _lowest(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> Array:
    """Return the centre of the lowest geom of a body; that of the body where it has none."""
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    if not count:
        return np.array(data.xpos[body])
    places = data.geom_xpos[first : first + count]
    return np.array(places[np.argmin(places[:, 2])])
