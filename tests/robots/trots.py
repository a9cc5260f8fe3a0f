"""Light quadrupeds trot in place and are pushed by 1 N s/kg: MPC of a rigid body, touch-down."""

from dataclasses import dataclass, replace

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.mpc import (
    Gait,
    SwingParameters,
    TouchDown,
    single_rigid_body,
    single_rigid_body_mpc,
    trot,
    walking_planner,
)
from mbcasadi.validation import Recording
from robots import models
from robots.ground import FLOOR, Array

FAST, SLOW, HORIZON = 0.002, 0.03, 10  # s, s, samples
STATE = [50, 50, 50, 100, 100, 300, 0.2, 0.2, 0.5, 2, 2, 2]  # weights of rpy, p, ω, v
NOMINAL = 12.0  # kg, of the robot whose forces have the weights below
MPC_FORCE, LAW_FORCE = 1e-5, 1e-3  # 1/N²
STIFF, DAMPED = [0, 0, 200, 200, 200, 20], [5, 5, 28, 28, 28, 10]  # of the trunk, 1/s², 1/s
GAIT = trot(0.48, duty=0.55, start=0.3)
PUSH, LASTS, IMPULSE = 1.5, 0.1, 1.0  # s, s, N s/kg
SWINGS = {
    "by the schedule": SwingParameters(),
    "touch-down": SwingParameters(touch_down=TouchDown()),
}
ROBOTS = {
    "A1": "men__unitree_a1__a1",
    "Go1": "men__unitree_go1__go1",
    "Go2": "men__unitree_go2__go2",
    "ANYmal C": "men__anybotics_anymal_c__anymal_c",
}
SPOT = {
    "Spot": "men__boston_dynamics_spot__spot",
    "Spot with arm": "men__boston_dynamics_spot__spot_arm",
}
POSE_OF = {"ANYmal C": "men__anybotics_anymal_c__anymal_c_mjx"}
"""A model of the same joints whose keyframe is the pose of a robot that has none."""


@dataclass(frozen=True)
class Trot:
    """The laws of a trot and the pose that it starts from; the planners by name.

    Attributes:
        begins: s, for which it stands before.
    """

    law: InverseDynamicsQP
    mpc: object
    planners: dict[str, object]
    model: mujoco.MjSpec
    q0: Array
    mass: float
    begins: float = 0.0

    def push(self, t: float) -> Array:
        """Return the push sideways on the base."""
        force = IMPULSE / LASTS * self.mass * (PUSH <= t - self.begins < PUSH + LASTS)
        return force * np.eye(self.law.system.nv)[1]


def model_on_floor(name: str) -> tuple[mujoco.MjSpec, Array]:
    """Return a robot on a floor with sites in the balls of its feet, and its pose."""
    spec = mujoco.MjSpec.from_file(str(models.path((ROBOTS | SPOT)[name])))
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(
        name=FLOOR, type=plane, size=[0, 0, 1], condim=3, contype=1, conaffinity=1
    )
    model = spec.compile()
    data = mujoco.MjData(model)
    posed = model if model.nkey else mujoco.MjModel.from_xml_path(str(models.path(POSE_OF[name])))
    data.qpos[:] = posed.key_qpos[0]
    mujoco.mj_kinematics(model, data)
    touches = (model.geom_contype | model.geom_conaffinity).astype(bool)
    balls = np.flatnonzero((model.geom_type == mujoco.mjtGeom.mjGEOM_SPHERE) & touches)
    lowest = data.geom_xpos[balls, 2] - model.geom_size[balls, 0]
    for k, i in enumerate(np.sort(balls[np.argsort(lowest)[:4]])):
        body = spec.body(model.body(model.geom_bodyid[i]).name)
        body.add_site(name=f"foot{k}", pos=model.geom_pos[i])
    q0 = data.qpos.copy()
    q0[2] -= lowest.min()
    return spec, q0


def rigid_body(
    system: mb.System, feet: list[mb.Contact], q0: Array, gait: Gait
) -> tuple[InverseDynamicsQP, object, dict[str, object]]:
    """Return inverse dynamics, the MPC of a rigid body above it, and what connects them by name."""
    mass = sum(body.mass for body in system.tree.bodies)
    lighter = (NOMINAL / mass) ** 2
    body = single_rigid_body(system, feet, q0)
    mpc = single_rigid_body_mpc(body, HORIZON, STATE, MPC_FORCE * lighter, period=SLOW)
    base = next(k for k, joint in enumerate(system.tree.joints) if joint.kind == "free")
    trunk = next(body.name for body in system.tree.bodies if base in body.joints)
    tasks = [FrameTask(trunk, kind="body", name="trunk", kp=STIFF, kd=DAMPED)]
    tasks += [FrameTask(foot.frame, orientation="", kp=400.0) for foot in feet]
    law = InverseDynamicsQP(
        system,
        tasks,
        feet,
        force_weight=LAW_FORCE * lighter,
        force_reference=True,
        contact_damping=20.0,
        period=FAST,
        delay=1,
    )
    planners = {
        key: walking_planner(law, mpc, gait, q0, stepping=swing) for key, swing in SWINGS.items()
    }
    return law, mpc, planners


def trots(name: str, begins: float = 0.0) -> Trot:
    """Return a robot that trots once it has stood for `begins`, s."""
    model, q0 = model_on_floor(name)
    system = mb.read_mjcf(model)
    feet = [mb.Contact(f"foot{k}", friction=0.6, sides=4) for k in range(4)]
    mass = sum(body.mass for body in system.tree.bodies)
    gait = replace(GAIT, start=GAIT.start + begins)
    return Trot(*rigid_body(system, feet, q0, gait), model, q0, mass, begins)


def lean(recording: Recording) -> float:
    """Return the largest roll or pitch, mrad."""
    turns = Rotation.from_quat(recording.q[:, [4, 5, 6, 3]]).as_euler("ZYX")
    return 1e3 * float(np.abs(turns[:, 1:]).max())
