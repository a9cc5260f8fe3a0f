"""Cassie stands and squats: rods close loops in its legs, whose springs are rigid in the law.

Its feet are capsules: both ends of each touch the floor.
"""

from functools import cache

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import (
    DisturbanceObserver,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
    RigidSprings,
)
from robots import models
from robots.ground import FLOOR
from robots.references import Array, Reference, swings

PERIOD = 0.002  # s
FEET = ("left-foot", "right-foot")
SPRINGS = ("left-shin", "left-heel-spring", "right-shin", "right-heel-spring")
DEEP, RATE = 0.1, 0.4  # m, Hz, of the squat


def model_on_floor() -> mujoco.MjSpec:
    """Return Cassie on a floor."""
    model = mujoco.MjSpec.from_file(str(models.path("men__agility_cassie__cassie")))
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    model.worldbody.add_geom(name=FLOOR, type=plane, size=[0, 0, 1], condim=3, conaffinity=15)
    return model


@cache
def standing(
    springs: RigidSprings | None = RigidSprings(SPRINGS),  # noqa: B008  # frozen
) -> tuple[InverseDynamicsQP, mujoco.MjSpec, Array]:
    """Return the law, the robot on a floor, and its first pose."""
    model = model_on_floor()
    system = mb.read_mjcf(model)
    found = mb.contacts_of(system, bodies=FEET, ground=FLOOR)
    q0 = np.array(system.tree.keyframes["home"], dtype=float)
    q0[2] -= min(float(contact.gap(q0)[0]) for contact in found)
    tasks = [
        FrameTask("cassie-pelvis", kind="body", name="pelvis", kp=100.0, weight=100.0),
        PostureTask(kp=50.0, weight=1e-3),
    ]
    law = InverseDynamicsQP(
        system,
        tasks,
        [contact.as_contact(sides=4) for contact in found],
        joint_limits=JointLimits(tuple(system.actuator_names)),
        observer=DisturbanceObserver(bandwidth=3.0),
        rigid_springs=springs,
        contact_damping=20.0,
        period=PERIOD,
        delay=1,
    )
    return law, model, q0


def squats(law: InverseDynamicsQP, q0: Array) -> Reference:
    """Return the reference of a pelvis that goes down and up twice, from 0.5 to 5.5 s."""
    return swings(law, q0, "pelvis", np.array([0, 0, -DEEP / 2]), RATE, 0.5 + 2 / RATE)
