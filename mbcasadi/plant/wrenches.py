"""External wrenches on the bodies of a plant, as MuJoCo counts them, and sensor readings.

What counts (`mj_rnePostConstraint`, MuJoCo's `cfrc_ext`): `xfrc_applied`, contacts between geoms,
and connect and weld constraints. What does not: `qfrc_applied`, joint and tendon couplings, limits
and friction, actuators, springs, gravity compensation, fluid forces, contacts of flexes.
"""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
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
    mujoco.mj_rnePostConstraint(model, data)
    moment, force = data.cfrc_ext[:, :3], data.cfrc_ext[:, 3:]
    arm = data.subtree_com[model.body_rootid] - data.xpos
    return np.asarray(np.hstack([force, moment + np.cross(arm, force)]).T)


def sensor_reading(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> Array:
    """Return the reading of a sensor at the last evaluation.

    Raises:
        UnknownNameError: no such sensor; the message lists the valid names.
    """
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SENSOR, name)
    if index < 0:
        names = [model.sensor(i).name for i in range(model.nsensor)]
        raise unknown_name("sensor", name, [each for each in names if each])
    first = int(model.sensor_adr[index])
    return np.array(data.sensordata[first : first + int(model.sensor_dim[index])])
