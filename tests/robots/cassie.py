"""Cassie stands and squats: rods close loops in its legs, whose springs are rigid in the law.

Its feet are capsules: both ends of each touch the floor.
"""

from collections.abc import Sequence
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
from mbcasadi.mpc.legged.from_system import robot_weight
from mbcasadi.mpc.whole_body.defaults import FOLLOWED_FORCE
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


def on_points() -> tuple[mujoco.MjSpec, Array, list[str]]:
    """Return Cassie on a floor, its first pose, and sites below both ends of each foot."""
    _, spec, q0 = standing()
    plant = spec.compile()
    data, names = mujoco.MjData(plant), list[str]()
    data.qpos = q0
    mujoco.mj_kinematics(plant, data)
    for foot in FEET:
        body = plant.body(foot).id
        R, place = data.xmat[body].reshape(3, 3), data.xpos[body]
        geom = next(g for g in np.flatnonzero(plant.geom_bodyid == body) if plant.geom_contype[g])
        radius, half, _ = plant.geom_size[geom]
        for k, side in enumerate((-half, half)):
            end = data.geom_xpos[geom] + side * data.geom_xmat[geom].reshape(3, 3)[:, 2]
            spec.body(foot).add_site(name=f"{foot}{k}", pos=R.T @ (end - [0, 0, radius] - place))
            names.append(f"{foot}{k}")
    return spec, q0, names


def law_below_plan(system: mb.System, feet: Sequence[mb.Contact]) -> InverseDynamicsQP:
    """Return the law that follows plans of the whole body: the default one, with springs held.

    Its posture is that of the joints with motors, whose kd is above the damping of the springs, and
    that of the pelvis, behind them, below it.
    """
    return InverseDynamicsQP(
        system,
        [
            PostureTask(tuple(system.actuator_names), kp=300.0),
            FrameTask("cassie-pelvis", kind="body", kp=100.0, weight=10.0),
        ],
        feet,
        force_weight=FOLLOWED_FORCE / robot_weight(system) ** 2,
        force_reference=True,
        contact_damping=20.0,
        observer=DisturbanceObserver(bandwidth=1.0),
        rigid_springs=RigidSprings(SPRINGS, damping=26.0),
        period=PERIOD,
    )


def squats(law: InverseDynamicsQP, q0: Array) -> Reference:
    """Return the reference of a pelvis that goes down and up twice, from 0.5 to 5.5 s."""
    return swings(law, q0, "pelvis", np.array([0, 0, -DEEP / 2]), RATE, 0.5 + 2 / RATE)
