"""Cassie stands: rods close loops in its legs, which have springs; its feet are capsules."""

from functools import cache

import mujoco
import numpy as np
from support.corpora import robot

import mbcasadi as mb
from mbcasadi.control import (
    DisturbanceObserver,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
)
from robots.ground import FLOOR
from robots.references import Array

PERIOD = 0.002  # s
FEET = ("left-foot", "right-foot")
SPRINGS = ("left-shin", "left-heel-spring", "right-shin", "right-heel-spring")


def model_on_floor(rigid: bool) -> mujoco.MjSpec:
    """Return Cassie on a floor; its springs held at their place in the home pose where rigid."""
    model = mujoco.MjSpec.from_file(str(robot("men__agility_cassie__cassie")))
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    model.worldbody.add_geom(name=FLOOR, type=plane, size=[0, 0, 1], condim=3, conaffinity=15)
    if rigid:
        compiled = model.compile()
        home = compiled.key("home").qpos
        for name in SPRINGS:
            held = model.add_equality(name=f"{name} held", type=mujoco.mjtEq.mjEQ_JOINT)
            held.name1 = name
            place = compiled.joint(name).qposadr[0]
            held.data[:5] = [home[place] - compiled.qpos0[place], 0, 0, 0, 0]
    return model


@cache
def standing(
    rigid: bool = True, kp: float = 50.0
) -> tuple[InverseDynamicsQP, mujoco.MjSpec, Array]:
    """Return the law, whose springs are rigid, the robot on a floor, and its first pose."""
    system = mb.read_mjcf(model_on_floor(rigid))
    found = mb.contacts_of(system, bodies=FEET, ground=FLOOR)
    q0 = np.array(system.tree.keyframes["home"], dtype=float)
    q0[2] -= min(float(contact.gap(q0)[0]) for contact in found)
    tasks = [
        FrameTask("cassie-pelvis", kind="body", name="pelvis", kp=kp, weight=100.0),
        PostureTask(kp=50.0, weight=1e-3),
    ]
    law = InverseDynamicsQP(
        system,
        tasks,
        [contact.as_contact(sides=4) for contact in found],
        joint_limits=JointLimits(tuple(system.actuator_names)),
        observer=DisturbanceObserver(bandwidth=3.0),
        contact_damping=20.0,
        period=PERIOD,
        delay=1,
    )
    return law, model_on_floor(rigid=False), q0
