"""MuJoCo's pose, Jacobian, velocity and bias of sites and bodies."""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.judge import Sample, slope

Array = NDArray[np.float64]

OBJECTS = {"site": mujoco.mjtObj.mjOBJ_SITE, "body": mujoco.mjtObj.mjOBJ_BODY}


def spread_ids(model: mujoco.MjModel, kind: str, count: int) -> list[int]:
    """Return at most `count` ids of named sites or bodies, spread from the last to the first."""
    size = model.nsite if kind == "site" else model.nbody
    named = [i for i in range(size) if mujoco.mj_id2name(model, OBJECTS[kind], i)]
    chosen = np.unique(np.linspace(len(named) - 1, 0, min(count, len(named))).round().astype(int))
    return [named[k] for k in chosen]


def pose(s: Sample, kind: str, i: int) -> Array:
    """Return (3, 4): rotation beside origin."""
    of_site = kind == "site"
    R = s.data.site_xmat[i] if of_site else s.data.xmat[i]
    p = s.data.site_xpos[i] if of_site else s.data.xpos[i]
    return np.column_stack([R.reshape(3, 3), p])


def jacobian(s: Sample, kind: str, i: int) -> Array:
    """Return (6, nv): linear above angular."""
    J = np.zeros((6, s.model.nv))
    function = mujoco.mj_jacSite if kind == "site" else mujoco.mj_jacBody
    function(s.model, s.data, J[:3], J[3:], i)
    return J


def velocity(s: Sample, kind: str, i: int) -> Array:
    """Return (6,): linear above angular, world axes."""
    angular_first = np.zeros(6)
    in_world_axes = 0
    # `mjOBJ_BODY` is the inertial frame there; `mjOBJ_XBODY` is the body frame
    object_type = mujoco.mjtObj.mjOBJ_SITE if kind == "site" else mujoco.mjtObj.mjOBJ_XBODY
    mujoco.mj_objectVelocity(s.model, s.data, object_type, i, angular_first, in_world_axes)
    return np.concatenate([angular_first[3:], angular_first[:3]])


def bias(s: Sample, kind: str, i: int) -> Array:
    """Return (6,): J̇ v by differences of J v along the motion.

    `mj_jacDot` is no reference: it is off for bodies with a slide joint before a hinge.
    """
    moved = s._replace(data=mujoco.MjData(s.model))

    def velocity_at(q: Array) -> Array:
        moved.data.qpos = q
        mujoco.mj_fwdPosition(s.model, moved.data)
        return np.asarray(jacobian(moved, kind, i) @ s.v)

    return slope(s, s.v, velocity_at)
