"""Talos stands on its soles: motors on its joints, fingers of grams that equalities couple.

The file has neither a free base nor motors nor collision geometry: all are added here.
"""

from functools import cache

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import (
    ComTask,
    DisturbanceObserver,
    FrameTask,
    FrictionLoss,
    InverseDynamicsQP,
    PostureTask,
)
from robots import models
from robots.ground import FLOOR, Array

PERIOD = 0.002  # s
SIDES = ("left", "right")
SOLE = tuple((x, y, -0.107) for x in (0.1, -0.1) for y in (0.06, -0.06))  # m
BALL = 0.005  # m, radius of a corner of the sole
TORQUE = 150.0  # N m
KNEES, ARMS = 0.6, 0.4  # rad
SPEED = 0.1  # rad/s, of the friction


def model_on_floor() -> mujoco.MjSpec:
    """Return the robot on a floor, with motors on all joints that lead the others."""
    spec = mujoco.MjSpec.from_file(str(models.path("erd__robots__talos_full_v2")))
    spec.worldbody.first_body().add_freejoint(name="root")
    led = {equality.name1 for equality in spec.equalities}
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_HINGE and joint.name not in led:
            spec.add_actuator(
                name=joint.name,
                target=joint.name,
                trntype=mujoco.mjtTrn.mjTRN_JOINT,
                ctrllimited=True,
                ctrlrange=[-TORQUE, TORQUE],
            )
    for side in SIDES:
        foot = spec.body(f"leg_{side}_6_link")
        for k, (x, y, z) in enumerate(SOLE):
            foot.add_site(name=f"{side}_{k}", pos=[x, y, z])
            foot.add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[BALL, 0, 0], pos=[x, y, z + BALL], mass=0
            )
    spec.worldbody.add_geom(name=FLOOR, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    return spec


def bent_pose(system: mb.System) -> Array:
    """Return a stance with bent knees, arms aside and the soles on the floor."""
    q = np.zeros(system.nq)
    q[3] = 1.0
    place = {joint.name: joint.qpos for joint in system.tree.joints}
    for side, sign in zip(SIDES, (1, -1), strict=True):
        for number, share in ((3, -0.5), (4, 1.0), (5, -0.5)):
            q[place[f"leg_{side}_{number}_joint"]] = share * KNEES
        q[place[f"arm_{side}_2_joint"]] = sign * ARMS
    q[2] -= float(np.array(system.frame("left_0", "site").pose(q)[0]).ravel()[2])
    return q


@cache
def standing() -> tuple[InverseDynamicsQP, mujoco.MjSpec, Array]:
    """Return the law, the robot on a floor, and its first pose."""
    model = model_on_floor()
    system = mb.read_mjcf(model)
    corners = [
        mb.Contact(f"{side}_{k}", friction=0.6, sides=4) for side in SIDES for k in range(len(SOLE))
    ]
    tasks = [
        ComTask(kp=60.0, weight=100.0),
        FrameTask("torso_2_link", kind="body", position="", kp=100.0, weight=10.0),
        *(FrameTask(f"leg_{side}_6_link", kind="body", kp=200.0, weight=10.0) for side in SIDES),
        PostureTask(kp=60.0, weight=0.05),
    ]
    law = InverseDynamicsQP(
        system,
        tasks,
        corners,
        internal_forces="wrench",
        friction_loss=FrictionLoss(speed=SPEED),
        observer=DisturbanceObserver(bandwidth=3.0),
        stabilisation=100.0,
        contact_damping=20.0,
        period=PERIOD,
        delay=1,
    )
    return law, model, bent_pose(system)
