"""MuJoCo's pose, Jacobian, velocity and bias of sites and bodies."""

import copy

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.agreement.samples import Sample

Array = NDArray[np.float64]

# `mjOBJ_BODY` is the inertial frame in velocities; `mjOBJ_XBODY` is the body frame
FRAMES = {"site": mujoco.mjtObj.mjOBJ_SITE, "body": mujoco.mjtObj.mjOBJ_XBODY}
IN_WORLD_AXES = 0
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
    result = np.zeros(6)
    mujoco.mj_objectVelocity(s.model, s.data, FRAMES[kind], i, result, IN_WORLD_AXES)
    return _linear_first(result)


def bias(s: Sample, kind: str, i: int) -> Array:
    """Return (6,): J̇ v, the acceleration at zero joint acceleration, without gravity.

    `mj_jacDot` is no reference: it is wrong for bodies with a slide joint before a hinge.
    """
    weightless = copy.copy(s.model)
    weightless.opt.gravity = 0.0
    data = mujoco.MjData(weightless)
    data.qpos, data.qvel = s.q, s.v
    mujoco.mj_fwdPosition(weightless, data)
    mujoco.mj_fwdVelocity(weightless, data)
    mujoco.mj_rnePostConstraint(weightless, data)
    result = np.zeros(6)
    mujoco.mj_objectAcceleration(weightless, data, FRAMES[kind], i, result, IN_WORLD_AXES)
    return _linear_first(result)


def _linear_first(spatial: Array) -> Array:
    """Return a spatial vector of MuJoCo, angular above linear, in our order."""
    return np.concatenate([spatial[3:], spatial[:3]])
