"""External wrenches on the bodies of a plant, as MuJoCo counts them, and sensor readings.

What counts (`mj_rnePostConstraint`, MuJoCo's `cfrc_ext`): `xfrc_applied`, contacts between geoms,
connect and weld constraints, and all forces of spatial tendons (from 3.14 on): springs, dampers,
armature, actuators, equalities, limits, friction. What does not: `qfrc_applied`, other couplings,
limits and friction, other actuators and springs, gravity compensation, fluid forces, contacts of
flexes.
"""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.plant.tendon_limits import limit_wrenches
from mbcasadi.unknown_names import unknown_name

Array = NDArray[np.float64]


@checked
def external_wrenches(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return (6, nbody): force, N, above moment about the body's origin, N m, world axes.

    `cfrc_ext` has the moment above the force, about the centre of mass of the tree that the body
    belongs to: here the force comes first, and the moment is `τ + (c - p) × F`.

    Args:
        model: the compiled model.
        data: after `mj_forward`, whose forces count.
    """
    require_same_model(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    moment, force = data.cfrc_ext[:, :3], data.cfrc_ext[:, 3:]
    arm = data.subtree_com[model.body_rootid] - data.xpos
    return np.asarray(np.hstack([force, moment + np.cross(arm, force)]).T)


@checked
def applied_wrenches(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return what acts on bodies and is in no equation: the input of `predicted_readings`.

    `xfrc_applied`, contacts between geoms, limits and friction of spatial tendons. (6, nbody):
    force, N, above moment about the body's origin, N m, world axes.

    Args:
        model: the compiled model.
        data: after `mj_forward`, whose forces count.
    """
    require_same_model(model, data)
    total = np.zeros((model.nbody, 6))
    force, torque = data.xfrc_applied[:, :3], data.xfrc_applied[:, 3:]
    total[:, :3] = force
    total[:, 3:] = torque + np.cross(data.xipos - data.xpos, force)
    total[0] = 0.0  # what acts on the world moves nothing
    local = np.zeros(6)
    for i in range(data.ncon):
        contact = data.contact[i]
        if contact.efc_address < 0 or min(contact.geom) < 0:
            continue
        mujoco.mj_contactForce(model, data, i, local)
        axes = contact.frame.reshape(3, 3)
        force, torque = axes.T @ local[:3], axes.T @ local[3:]
        for geom, sign in zip(contact.geom, (-1.0, 1.0), strict=True):
            body = int(model.geom_bodyid[geom])
            if body:
                moment = torque + np.cross(contact.pos - data.xpos[body], force)
                total[body] += sign * np.concatenate([force, moment])
    return np.asarray(total.T + limit_wrenches(model, data))


def require_same_model(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Raise `ProblemError` where the data are of a model of another size."""
    sizes = (len(data.xpos), len(data.qpos), len(data.qvel))
    expected = (model.nbody, model.nq, model.nv)
    if sizes != expected:
        raise ProblemError(
            f"the data have (nbody, nq, nv) = {sizes}, the model has {expected}; expected data "
            "of this model"
        )


def sensor_index(model: mujoco.MjModel, name: str) -> int:
    """Return the number of a sensor; nameless ones are `sensor<id>`.

    Raises:
        UnknownNameError: no such sensor; the message lists the valid names.
    """
    names = [model.sensor(i).name or f"sensor{i}" for i in range(model.nsensor)]
    if name not in names:
        raise unknown_name("sensor", name, names)
    return names.index(name)


def sensor_reading(model: mujoco.MjModel, readings: Array, name: str) -> Array:
    """Return the entries of a sensor among all readings.

    Raises:
        UnknownNameError: as `sensor_index`.
    """
    index = sensor_index(model, name)
    first = int(model.sensor_adr[index])
    return np.array(readings[first : first + int(model.sensor_dim[index])])
