"""Every control law on mechanisms of ours: what the benchmark times and the tests look at.

A law joins by one line in `CASES`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import NDArray

from bench import linear_law_cases
from mbcasadi import models
from mbcasadi.control import FrameTask, PostureTask, laws
from mbcasadi.control.laws import Law
from mbcasadi.control.regulators import lti_inverse_dynamics
from mbcasadi.system import System, read_mjcf

Array = NDArray[np.float64]

SPREAD, SPEED = 0.2, 1.0  # of joints about the authored pose, rad or m, and of v, rad/s or m/s
PULL = 0.3  # of references about the authored values
FORCE_LOOP = laws.ForceGains(0.5, 100.0)
SURFACE_LOOP = replace(FORCE_LOOP, rows=("surface.2",))
REGULATORS = (
    "feedback",
    "lqr",
    "pole_placement",
    "finite_horizon_lqr",
    "trajectory_lqr",
    "lqg",
)
TOOLS = {"five_bar": "xz", "planar_3rrr": "xy"}  # the plane of each tool


@dataclass(frozen=True)
class Case:
    """A law on one mechanism.

    Attributes:
        law: name of its public builder.
        model: of `mujoco_models`; with "_driven" every joint has a motor.
        build: from the system to the law.
        exact: whether its C does the same operations as its Function, without a solver.
    """

    law: str
    model: str
    build: Callable[[System], Law]
    exact: bool = True

    @property
    def name(self) -> str:
        """Law and mechanism."""
        return f"{self.law} on {self.model}"


@cache
def system_of(model: str) -> System:
    """Return the system of a model, or of the same with a motor at every joint."""
    name = model.removesuffix("_driven")
    spec = mujoco.MjSpec.from_file(str(models.path(name)))
    if name != model:
        for actuator in list(spec.actuators):
            spec.delete(actuator)
        for joint in spec.joints:
            motor = spec.add_actuator(name=joint.name, target=joint.name)
            motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
            motor.ctrlrange = (-200.0, 200.0)
            motor.ctrllimited = True
    return read_mjcf(spec)


def tool(model: str, kp: float = 100.0) -> FrameTask:
    """Return the task of a tool's place."""
    return FrameTask("tool", position=TOOLS[model], orientation="", kp=kp)


def follow_first_joint(system: System) -> Law:
    """Return servo control of the first joint."""
    q, v, y = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv), ca.SX.sym("y")
    return laws.servo_control(system, laws.servo_rows(system, q, v, phi=q[0] - y, y=y))


def _computed_torque(model: str, system: System) -> Law:
    return laws.computed_torque(system, tool(model, kp=100.0))


def _pd(model: str, system: System) -> Law:
    return laws.gravity_compensated_pd(system, tool(model), stiffness=300.0, damping=30.0)


def _impedance(model: str, system: System) -> Law:
    return laws.impedance_control(system, tool(model), stiffness=300.0, damping=30.0)


def _limited(model: str, system: System) -> Law:
    return laws.within_limits(laws.computed_torque(system, tool(model, kp=100.0)))


def _qr(model: str, system: System) -> Law:
    return laws.qr_inverse_dynamics(system, tool(model, kp=100.0))


def _lti(system: System) -> Law:
    return lti_inverse_dynamics(linear_law_cases.at_rest(system))


CASES: tuple[Case, ...] = (
    Case(
        "computed_torque",
        "four_bar",
        lambda system: laws.computed_torque(system, PostureTask(("crank",))),
    ),
    *(Case("computed_torque", name, partial(_computed_torque, name)) for name in TOOLS),
    *(Case("gravity_compensated_pd", name, partial(_pd, name)) for name in TOOLS),
    *(Case("impedance_control", name, partial(_impedance, name)) for name in TOOLS),
    *(
        Case("quasi_velocity_tracking", name, laws.quasi_velocity_tracking)
        for name in ("five_bar", "prr_arm", "planar_3rrr")
    ),
    Case(
        "quasi_velocity_force",
        "prr_arm",
        lambda system: laws.quasi_velocity_force(system, gains=SURFACE_LOOP, kp=3.0, kd=5.0),
    ),
    *(Case("within_limits", name, partial(_limited, name), exact=False) for name in TOOLS),
    Case("projected_inverse_dynamics", "slider_crank_driven", laws.projected_inverse_dynamics),
    Case("passive_joint_control", "five_bar", laws.passive_joint_control),
    Case("passive_joint_control", "planar_3rrr", laws.passive_joint_control),
    Case(
        "constraint_force_control",
        "slider_crank_driven",
        lambda system: laws.constraint_force_control(system, FORCE_LOOP),
    ),
    Case(
        "hybrid_motion_force_control",
        "prr_arm",
        lambda system: laws.hybrid_motion_force_control(system, gains=SURFACE_LOOP),
    ),
    Case(
        "dependent_regulation",
        "five_bar",
        lambda system: laws.dependent_regulation(system, kp=50.0, kd=5.0),
    ),
    Case(
        "dependent_tracking",
        "five_bar",
        lambda system: laws.dependent_tracking(system, kp=10.0, kd=5.0),
    ),
    Case(
        "adaptive_tracking",
        "five_bar",
        lambda system: laws.adaptive_tracking(system, ["body:left_distal:*"], kp=10.0, kd=5.0),
    ),
    Case("servo_control", "five_bar", follow_first_joint),
    *(Case("qr_inverse_dynamics", name, partial(_qr, name)) for name in TOOLS),
    Case("lti_inverse_dynamics", "five_bar", _lti),
    Case("feedback_from_ss", "pendulum_on_four_bar", linear_law_cases.feedback_from_ss),
    *(
        Case(name, model, getattr(linear_law_cases, name))
        for name in REGULATORS
        for model in linear_law_cases.TORQUE
    ),
)


def inputs(law: Law, count: int, seed: int = 0) -> dict[str, Array]:
    """Return (rows, count) of each input but z: closed states, and references near the pose."""
    rng = np.random.default_rng(seed)
    system = law.system
    q = np.asarray(laws.sampled_poses(system, count, spread=SPREAD, seed=seed)).T
    v = SPEED * rng.standard_normal((system.nv, q.shape[1]))
    for k in range(q.shape[1]):
        A = np.array(system.constraint_jacobian(q[:, k]))
        v[:, k] -= np.linalg.pinv(A, 1e-9) @ (A @ v[:, k])
    values = {"q": q, "v": v}
    for name in law.function.name_in()[2:-1]:
        size = (law.function.numel_in(name), q.shape[1])
        values[name] = np.ones(size) if name == "mask" else PULL * rng.standard_normal(size)
    return values
