"""A cost for a robot of any size and weight: its setpoint, its swinging feet, its torques.

Errors count in sizes of the robot: lengths by the height ℓ of its base over its feet, times by
√(ℓ / g), forces by what its actuators can give.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.contacts.friction_cone import require_contacts, require_ground
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.from_system import gravity_of, robot_weight, trunk_joint
from mbcasadi.mpc.legged.ground_axes import common_normal
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_bounds import actuator_forces
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.mpc.whole_body.swing_feet import SwingFeet
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import column, weight
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import Ranges

BASE = (5.0, 5.0, 30.0, 200.0, 200.0, 100.0)
"""Weights of the base's place, times 1/ℓ², and of its rotation, 1/rad²."""

BASE_RATES = (26.0, 26.0, 26.0, 72.0, 72.0, 72.0)
"""Weights of its velocity, times 1/(g ℓ), and of its angular velocity, times ℓ/g."""

JOINTS, JOINT_RATES = 0.5, 0.1
"""Weights of joints, 1/rad², and of their rates, times ℓ/g."""

FORCES = 0.5
"""Weight of each actuator force, times 1/p_max²."""

END = 1.8
"""Time whose cost a state counts at the end of the horizon, times √(ℓ / g)."""

FORCE_REFERENCE = "actuator_force"
"""Slice of p: forces of the actuators beside which theirs are weighted."""

FEET = (60.0, 60.0, 300.0)
"""Weights of a swinging foot's place along the ground and over it, times 1/ℓ²."""


@final
@summarised
@readable_fields
@dataclass(frozen=True)
class ActuatorForceCost(StagePart):
    """`½ Σ w_i (p_ref - p)_i²` per second of the actuator forces p, whatever their controls are.

    `actuator_force` in p has the references, zero by default; `whole_body_mpc` fills it with the
    forces that carry the robot at rest on the feet that stand.

    Attributes:
        weight: (nu,) 1/N² or 1/(N m)², or one number.
    """

    weight: ArrayLike

    def __post_init__(self) -> None:
        require_fields(self)

    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slice of the references, (nu,), N or N m."""
        return (Slot(FORCE_REFERENCE, system.actuator_names, ("",) * system.nu),)

    def terms(self, stage: Stage) -> StageTerms:
        """Return the residual.

        Raises:
            ProblemError, ShapeError: a negative weight, or a wrong number of them.
        """
        weights = np.diag(weight("weight", self.weight, stage.system.nu))
        names = [f"{FORCE_REFERENCE}.weight.{name}" for name in stage.system.actuator_names]
        root = ca.sqrt(stage.tuning.numbers("weights", names, weights))
        error = stage.ref[FORCE_REFERENCE] - actuator_forces(stage)
        return StageTerms(running=[root * error])


@checked
def default_cost(
    system: System, contacts: Sequence[Contact], q0: ArrayLike
) -> tuple[StagePart, ...]:
    """Return costs of setpoint, swinging feet and actuator forces for a robot with a free base.

    Args:
        system: with one free joint.
        contacts: its feet.
        q0: (nq,) pose in which it stands on them.

    Raises:
        ProblemError: not one free joint, no contacts, a base that is not over its feet.
        ShapeError: a wrong shape of q0.
    """
    joint, pose = trunk_joint(system), column("q0", q0, system.nq)
    length, g = standing_height(system, contacts, q0), float(np.linalg.norm(gravity_of(system)))
    shares = carried_shares(system, contacts, pose)
    Q = np.concatenate([JOINTS + BASE[3] * shares, JOINT_RATES + BASE_RATES[3] * shares])
    Q[system.nv :] *= length / g
    units = np.repeat([1 / length**2, 1.0], 3)
    Q[joint.dof : joint.dof + 6] = np.array(BASE) * units
    rate_units = np.repeat([1 / (g * length), length / g], 3)
    Q[system.nv + joint.dof : system.nv + joint.dof + 6] = np.array(BASE_RATES) * rate_units
    force = largest_forces(system, pose, robot_weight(system) * length)
    return (
        Cost(Q=Q, Q_end=END * np.sqrt(length / g) * Q),
        SwingFeet(tuple(contacts), np.array(FEET) / length**2),
        ActuatorForceCost(FORCES / force**2),
    )


def carried_shares(system: System, contacts: Sequence[Contact], q0: Array) -> Array:
    """Return (nv,) the inertia that each joint carries, by that of the robot about its base.

    A torso on joints above the base, or a heavy arm, counts as the base does. It is zero for joints
    of the legs, which go where the feet do, and at most one.
    """
    dof, M = trunk_joint(system).dof, np.array(system.mass_matrix(q0))
    shares: Array = np.diag(M) / np.diag(M)[dof + 3 : dof + 6].mean()
    for contact in contacts:
        moves = system.frame(contact.frame, contact.kind).jacobian(q0).full()
        shares[np.abs(moves).max(axis=0) > 0] = 0.0
    return np.minimum(shares, 1.0)


def largest_forces(system: System, q0: Array, otherwise: float) -> Array:
    """Return the largest force of each actuator (nu,) by its ranges; another number without any.

    Args:
        system: the robot.
        q0: (nq,) pose.
        otherwise: N or N m.
    """
    limits, tree = system.limits, system.tree
    assert tree is not None
    q, still = ca.SX.sym("q", system.nq), ca.SX.zeros(system.nv)
    model = actuator_model(system, Ranges(limits.ctrl, limits.force), 1.0, q, still, None)
    at = ca.Function("at", [q], [model.gain, model.bias, model.moment])
    gain, bias, moment = (np.abs(part.full()) for part in at(q0))
    largest = np.abs(limits.force).max(axis=1)
    motors = ~bias.any(axis=1) & np.isfinite(limits.ctrl).all(axis=1)
    by_control = np.where(motors, gain.ravel() * np.abs(limits.ctrl).max(axis=1), np.inf)
    largest = np.fmin(largest, by_control)
    dofs = {joint.name: joint.dof for joint in tree.joints}
    for name, bounds in zip(limits.joint_names, limits.joint_force, strict=True):
        arms = moment[dofs[name]]
        on_joint = np.abs(bounds).max() / np.where(arms > 0, arms, np.nan)
        largest = np.fmin(largest, on_joint)
    return np.where(np.isfinite(largest) & (largest > 0), largest, otherwise)


def standing_height(system: System, contacts: Sequence[Contact], q0: ArrayLike) -> float:
    """Return the height of the free base over its feet at a pose, m.

    Raises:
        ProblemError: no contacts, or a base that is not over them.
    """
    require_contacts(contacts)
    require_ground(contacts)
    if not contacts:
        raise ProblemError("no contacts; expected the feet of the robot among the parts")
    pose, place = column("q0", q0, system.nq), trunk_joint(system).qpos
    normal = common_normal(contacts)
    frames = [system.frame(contact.frame, contact.kind) for contact in contacts]
    feet = [normal @ np.array(ca.DM(frame.pose(pose)[0])).ravel() for frame in frames]
    height = float(normal @ pose[place : place + 3] - np.mean(feet))
    if not height > 0:
        raise ProblemError(
            f"at q0 the base is {height:.3g} m over its feet; expected a pose in which it stands"
        )
    return height
