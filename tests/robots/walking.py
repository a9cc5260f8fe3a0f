"""G1 walks and turns: MPC of a rigid body above inverse dynamics, feet as surfaces."""

from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi.control import FrameTask, FrictionLoss, InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.mpc import (
    Gait,
    SwingParameters,
    TouchDown,
    single_rigid_body,
    single_rigid_body_mpc,
    walking_planner,
)
from mbcasadi.validation import Recording
from robots.humanoid import SIDES, SOLE, bent_pose, model_on_floor
from robots.references import Array

FAST, SLOW, HORIZON = 0.002, 0.03, 16  # s, s, samples
KNEES = 0.6  # rad
FULL = 3.0  # s, from when on the command is 0.5 m/s
PERIOD, DUTY = 0.7, 0.6  # s, of a stride; share on the ground
STATE = [100.0, 100, 50, 100, 100, 300, 1, 1, 1, 5, 5, 5]  # weights of rpy, p, ω, v
FORCE = 1e-5  # weight, 1/N²
TRUNK = 10.0  # weight of the trunk's task; at that of the feet, one, their swings lift the body
STIFF, DAMPED = [0, 0, 200, 200, 200, 100], [5, 5, 28, 28, 28, 20]  # of the pelvis, 1/s², 1/s


SWINGS = {
    "by the schedule": SwingParameters(height=0.05, feedback=0.1, reach=0.3),
    "touch-down": SwingParameters(
        height=0.05, feedback=0.1, reach=0.3, touch_down=TouchDown(speed=0.3)
    ),
}


@dataclass(frozen=True)
class Walk:
    """The laws of a walk and the pose that it starts from; the planners by name."""

    law: InverseDynamicsQP
    mpc: object
    planners: dict[str, object]
    model: mujoco.MjSpec
    q0: Array


def walk(begins: float = 0.0) -> Walk:
    """Return the robot that walks once it has stood for `begins`, s."""
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
    tasks = [FrameTask("pelvis", kind="body", name="trunk", kp=STIFF, kd=DAMPED, weight=TRUNK)]
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
        friction_loss=FrictionLoss(speed=0.1),
        contact_damping=20.0,
        period=FAST,
        delay=1,
    )
    gait = Gait(PERIOD, DUTY, (0.0,) * len(SOLE) + (0.5,) * len(SOLE), start=1.0 + begins)
    planners = {
        name: walking_planner(law, mpc, gait, q0, stepping=swing) for name, swing in SWINGS.items()
    }
    return Walk(law, mpc, planners, model, q0)


def command(t: float) -> Array:
    """Return the speed, up to 0.5 m/s within 1.5 s, and the turn in between."""
    return np.array([0.5 * np.clip((t - 1.5) / 1.5, 0, 1), 0.0, 0.3 * (10 <= t < 18)])


def figures(recording: Recording, begins: float = 0.0) -> str:
    """Return speed at the full command, turn, largest lean, and range of the height."""
    t, q, v = recording.t, recording.q, recording.v
    attitude = Rotation.from_quat(q[:, [4, 5, 6, 3]]).as_euler("ZYX")
    yaw = attitude[:, 0]
    ahead = np.cos(yaw) * v[:, 0] + np.sin(yaw) * v[:, 1]
    full = t - begins > FULL
    lean, height = 1e3 * np.abs(attitude[full, 1:]).max(), 1e3 * np.ptp(q[full, 2])
    turned = np.unwrap(yaw)[-1]
    return (
        f"{ahead[full].mean():.3f} m/s, turned {turned:.2f} rad, leans {lean:.0f} mrad, "
        f"height within {height:.0f} mm, solved {np.mean(recording.status == 0):.2%}"
    )
