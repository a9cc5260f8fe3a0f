"""G1 squats, balances on one foot, moves its arms, and is pushed: law, references, floor."""

from dataclasses import dataclass
from functools import cache

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import (
    ComTask,
    DisturbanceObserver,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
)
from robots import models
from robots.ground import FLOOR, Array
from robots.references import Reference, displace, smooth, swings

PERIOD = 0.002  # s
SOLE = (
    (-0.05, 0.025, -0.035),
    (-0.05, -0.025, -0.035),
    (0.12, 0.03, -0.035),
    (0.12, -0.03, -0.035),
)
SIDES = ("left", "right")
KNEES = 0.4  # rad, of the pose that it stands in
DEEP, RATE = 0.12, 0.5  # m, Hz, of the squat
ARM = 0.6  # rad
UP = 0.05  # m
OVER, RAISED = 2.0, 3.0  # s, over one foot, and that the other foot is up


@dataclass(frozen=True)
class Standing:
    """A robot with its law, and the pose that it starts from."""

    law: InverseDynamicsQP
    model: mujoco.MjSpec
    q0: Array


def model_on_floor() -> mujoco.MjSpec:
    """Return the robot on a floor, with sites on the corners of its soles."""
    spec = mujoco.MjSpec.from_file(str(models.path("men__unitree_g1__g1")))
    spec.worldbody.add_geom(name=FLOOR, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], condim=3)
    for side in SIDES:
        for k, place in enumerate(SOLE):
            spec.body(f"{side}_ankle_roll_link").add_site(name=f"{side}_{k}", pos=place)
    return spec


def bent_pose(system: mb.System, knees: float = KNEES) -> Array:
    """Return the model's stance with bent knees and the soles on the floor."""
    q = np.array(system.tree.keyframes["stand"], dtype=float)
    place = {joint.name: joint.qpos for joint in system.tree.joints}
    for side in SIDES:
        for joint, share in (("hip_pitch", -0.5), ("knee", 1.0), ("ankle_pitch", -0.5)):
            q[place[f"{side}_{joint}_joint"]] = share * knees
    q[2] -= float(np.array(system.frame("left_0", "site").pose(q)[0]).ravel()[2])
    return q


@cache
def standing(surfaces: bool = True) -> Standing:
    """Return the robot on both soles."""
    model = model_on_floor()
    system = mb.read_mjcf(model)
    q0 = bent_pose(system)
    tasks = [
        ComTask(kp=60.0, weight=100.0),
        FrameTask("pelvis", kind="body", position="", kp=100.0, weight=10.0),
        FrameTask("torso_link", kind="body", position="", kp=100.0, weight=10.0),
        *(FrameTask(f"{side}_foot", kp=200.0, weight=10.0) for side in SIDES),
        PostureTask(kp=60.0, weight=0.05),
    ]
    corners = [
        mb.Contact(f"{side}_{k}", friction=0.6, sides=4) for side in SIDES for k in range(len(SOLE))
    ]
    law = InverseDynamicsQP(
        system,
        tasks,
        corners,
        internal_forces="wrench" if surfaces else "body",
        joint_limits=JointLimits(),
        observer=DisturbanceObserver(bandwidth=3.0),
        contact_damping=20.0,
        period=PERIOD,
        delay=1,
    )
    return Standing(law, model, q0)


def squats(standing: Standing) -> Reference:
    """Return the reference of a centre of mass that goes down and up, from 0.5 to 4.5 s."""
    return swings(standing.law, standing.q0, "com", np.array([0, 0, -DEEP / 2]), RATE, 4.5)


def moves_arms(standing: Standing) -> Reference:
    """Return the reference of arms that swing in opposite directions, from 0.5 to 4.5 s."""
    law, rate = standing.law, 2 * np.pi * RATE
    rest, names = law.reference_at(standing.q0), law.tasks[-1].components(law.system)
    signs = {
        "left_shoulder_pitch": -1,
        "right_shoulder_pitch": 1,
        "left_elbow": -1,
        "right_elbow": 1,
    }
    way = ARM * np.array([signs.get(name.removesuffix("_joint"), 0) for name in names])

    def at(t: float) -> Array:
        ref, phase = rest.copy(), rate * (t - 0.5)
        if 0.5 <= t < 4.5:
            wave = ((1 - np.cos(phase)) / 2, rate * np.sin(phase) / 2, rate**2 * np.cos(phase) / 2)
            for quantity, value in zip("qva", wave, strict=True):
                ref[law.reference_slices[f"posture.{quantity}"]] += value * way
        return ref

    return at


def balances(standing: Standing) -> tuple[Reference, Reference]:
    """Return reference and mask: over the left foot, then the right foot up for good."""
    law, rest = standing.law, standing.law.reference_at(standing.q0)
    sole = np.mean(
        [law.system.frame(f"left_{k}", "site").pose(standing.q0)[0] for k in range(4)], axis=0
    )
    over = np.array(sole).ravel() - rest[law.reference_slices["com.position"]]
    over[2] = 0.0

    def reference(t: float) -> Array:
        ref = rest.copy()
        displace(ref, law, "com", over, smooth(t, 0.0, OVER - 0.3))
        displace(ref, law, "right_foot", np.array([0, 0, UP]), smooth(t, OVER, RAISED))
        return ref

    def mask(t: float) -> Array:
        on = np.ones(len(law.mask_names))
        on[len(SOLE) : 2 * len(SOLE)] = t < OVER
        return on

    return reference, mask
