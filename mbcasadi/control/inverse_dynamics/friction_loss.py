"""Dry friction of joints, counted as a force that opposes the motion."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.servos.servo_stability import WRONG_INERTIA
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import number, require_name, require_positive
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup

SCALAR = ("hinge", "slide")

LEAST_SPEED = 0.02
"""rad/s or m/s, by default: the friction is dry from a few degrees or centimetres a second on."""


@dataclass(frozen=True)
class FrictionLoss:
    """Dry friction of joints, counted as a force that opposes the motion.

    The equations of a model have viscous friction only; `frictionloss` is a force of the plant.
    Counted for a joint with the loss F,

        f = -share F ω / (ω² + ω_s²)^½,

    with the measured velocity ω, or the one that a task's reference prescribes. The measured one is
    right while the joint moves; at rest it has no direction, and below ω_s the law sees a viscous
    friction F / ω_s. The desired one also breaks a joint loose. More than the true loss would drive
    the joint, so the share is at most one.

    MuJoCo's friction is soft: up to the loss it is a damper (`Joint.friction_slope`), weak on a
    light joint. A law whose friction is steeper drives the joint at low speed, whatever the period
    is: such joints have a larger ω_s of their own, in the controller's notes; where `speed` asks
    for less, a warning names them.

    Args:
        losses: N or N m by the joint's name; None for `frictionloss` of the model's joints.
        speed: ω_s, rad/s or m/s, from which on the friction is dry; 0.02 by default, and more where
            the plant's is softer.
        share: of the losses, above 0 and at most 1.
        task: a `PostureTask` whose reference has the velocity; "" for the measured one.

    Raises:
        ProblemError: numbers out of these ranges.
    """

    losses: Mapping[str, float] | None = None
    speed: float | None = None
    share: float = 1.0
    task: str = ""

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(speed=self.least_speed, share=self.share)
        if self.share > 1:
            raise ProblemError(f"share = {self.share} of the friction; expected at most 1")
        for name, loss in (self.losses or {}).items():
            if not 0 <= number(f"loss of '{name}'", loss) < np.inf:
                raise ProblemError(f"loss of '{name}' = {loss}; expected zero or more, N or N m")

    @property
    def least_speed(self) -> float:
        """ω_s where the plant's friction is stiff, rad/s or m/s."""
        return LEAST_SPEED if self.speed is None else self.speed


def losses_of(system: System, friction: FrictionLoss) -> dict[str, tuple[int, float]]:
    """Return dof and loss, N or N m, of each joint that has one.

    Raises:
        ProblemError: a system without joints, a joint that is no hinge or slide, no loss at all.
        UnknownNameError: no such joint.
    """
    if system.tree is None:
        raise ProblemError(
            f"'{system.name}' is given by equations and has no joints; expected a model that was "
            "read for friction_loss, or dry friction in the equations"
        )
    joints = {joint.name: joint for joint in system.tree.joints}
    given = friction.losses
    if given is None:
        given = {name: joint.friction_loss for name, joint in joints.items() if joint.friction_loss}
    found = {}
    for name, loss in given.items():
        require_name_of(system, "joint", name, list(joints))
        if joints[name].kind not in SCALAR:
            raise ProblemError(
                f"joint '{name}' is a {joints[name].kind} joint; expected a hinge or slide for a "
                "friction loss"
            )
        found[name] = joints[name].dof, float(loss)
    if not found:
        raise ProblemError(
            f"no joint of '{system.name}' has a frictionloss; expected losses by joint"
        )
    return found


def smoothing_speeds(setup: "Setup") -> dict[str, float]:
    """Return ω_s, rad/s or m/s, of each joint with friction.

    `share F / ω_s` is at most the slope of the plant's friction, whose inertia may be wrong by 30 %
    as for servos. A velocity that a task prescribes is no feedback: its ω_s is the least.
    """
    friction, tree = setup.friction_loss, setup.system.tree
    if friction is None or tree is None:
        return {}
    slopes = {joint.name: min(WRONG_INERTIA) * joint.friction_slope for joint in tree.joints}
    prescribed, least = _prescribed(setup, friction), friction.least_speed
    return {
        name: least if name in prescribed else max(least, friction.share * loss / slopes[name])
        for name, (_, loss) in losses_of(setup.system, friction).items()
    }


def softened_speeds(setup: "Setup") -> str:
    """Return the joints whose ω_s is not the least one, with it; "" for none."""
    friction = setup.friction_loss
    if friction is None:
        return ""
    speeds = {k: w for k, w in smoothing_speeds(setup).items() if w > friction.least_speed}
    return ", ".join(f"{name}: {speed:.3g}" for name, speed in speeds.items())


def doubt_of_friction(setup: "Setup") -> str:
    """Return a warning of joints that the plant's friction does not allow the given ω_s; or ""."""
    friction, softened = setup.friction_loss, softened_speeds(setup)
    if friction is None or friction.speed is None or not softened:
        return ""
    return (
        f"FrictionLoss(speed={friction.speed:g}) is steeper than MuJoCo's soft friction on some "
        f"joints, which would drive themselves; they have {softened} rad/s or m/s; expected such a "
        "speed or None, losses of other joints only, or a stiffer solimpfriction in the model"
    )


def require_losses(setup: "Setup") -> None:
    """Raise unless joints and task of the friction exist.

    Raises:
        ProblemError, UnknownNameError: as in `losses_of`; no such task with velocities of joints.
    """
    friction = setup.friction_loss
    if friction is None:
        return
    losses_of(setup.system, friction)
    if friction.task:
        tasks = [slot.name[:-2] for slot in setup.slots if slot.name.endswith(".v")]
        require_name("task with velocities of joints", friction.task, tasks)


def _prescribed(setup: "Setup", friction: FrictionLoss) -> tuple[str, ...]:
    """Return the joints whose velocity the friction takes from the task's reference."""
    name = f"{friction.task}.v"
    return next((slot.components for slot in setup.slots if slot.name == name), ())


def friction_force(setup: "Setup", v: ca.SX, ref: ca.SX) -> ca.SX:
    """Return the force (nv,) of dry friction.

    Args:
        setup: the options.
        v: (nv,) measured velocity.
        ref: (nref,) reference.
    """
    friction, force = setup.friction_loss, ca.SX(setup.system.nv, 1)
    if friction is None:
        return force
    desired: dict[str, ca.SX] = {}
    if friction.task:
        rates = ca.vertsplit(ref[setup.reference_slices[f"{friction.task}.v"], 0])
        desired = dict(zip(_prescribed(setup, friction), rates, strict=True))
    smoothing = smoothing_speeds(setup)
    for joint, (dof, loss) in losses_of(setup.system, friction).items():
        speed = desired.get(joint, v[dof])
        smooth = ca.sqrt(speed**2 + smoothing[joint] ** 2)
        force[dof] = -friction.share * loss * speed / smooth
    return force
