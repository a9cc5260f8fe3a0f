"""G1 walks and turns: MPC of a rigid body above inverse dynamics, feet as surfaces."""

from dataclasses import dataclass

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.mpc import Gait, single_rigid_body, single_rigid_body_mpc, walking_planner
from mbcasadi.mpc.legged.footsteps import SwingParameters
from robots.humanoid import SIDES, SOLE, bent_pose, model_on_floor
from robots.references import Array

FAST, SLOW, HORIZON = 0.002, 0.03, 16  # s, s, samples
KNEES = 0.6  # rad
PERIOD, DUTY = 0.7, 0.6  # s, of a stride; share on the ground
STATE = [100.0, 100, 50, 100, 100, 300, 1, 1, 1, 5, 5, 5]  # weights of rpy, p, ω, v
FORCE = 1e-5  # weight, 1/N²
STIFF, DAMPED = [0, 0, 200, 200, 200, 100], [5, 5, 28, 28, 28, 20]  # of the pelvis, 1/s², 1/s


@dataclass(frozen=True)
class Walk:
    """The laws of a walk and the pose that it starts from."""

    law: InverseDynamicsQP
    mpc: object
    planner: object
    model: mujoco.MjSpec
    q0: Array


def walk() -> Walk:
    """Return the walking robot."""
    model = model_on_floor()
    system = mb.read_mjcf(model)
    q0 = bent_pose(system, KNEES)
    names = [f"{side}_{k}" for side in SIDES for k in range(len(SOLE))]
    corners = [mb.Contact(name, friction=0.6, sides=4) for name in names]
    body = single_rigid_body(system, corners, q0)
    mpc = single_rigid_body_mpc(body, HORIZON, STATE, FORCE, period=SLOW)
    upper = tuple(
        joint.name
        for joint in system.tree.joints
        if joint.kind == "hinge" and not any(k in joint.name for k in ("hip", "knee", "ankle"))
    )
    tasks = [FrameTask("pelvis", kind="body", name="trunk", kp=STIFF, kd=DAMPED, weight=1.0)]
    tasks += [FrameTask(name, orientation="", kp=400.0, weight=1.0) for name in names]
    tasks += [PostureTask(upper, kp=100.0, weight=0.1)]
    law = InverseDynamicsQP(
        system,
        tasks,
        corners,
        internal_forces="wrench",
        force_weight=1e-3,
        force_reference=True,
        joint_limits=JointLimits(),
        contact_damping=20.0,
        period=FAST,
        delay=1,
    )
    gait = Gait(PERIOD, DUTY, (0.0,) * len(SOLE) + (0.5,) * len(SOLE), start=1.0)
    swing = SwingParameters(height=0.05, feedback=0.1, reach=0.3)
    return Walk(law, mpc, walking_planner(law, mpc, gait, q0, stepping=swing), model, q0)


def command(t: float) -> Array:
    """Return the speed, up to 0.5 m/s within 1.5 s, and the turn in between."""
    return np.array([0.5 * np.clip((t - 1.5) / 1.5, 0, 1), 0.0, 0.3 * (10 <= t < 18)])
