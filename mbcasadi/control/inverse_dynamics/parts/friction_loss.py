"""Dry friction of joints, counted as a force that opposes the motion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.parts.servo_stability import WRONG_INERTIA
from mbcasadi.control.tasks.posture_task import PostureTask
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import number, require_name, require_positive
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of

SCALAR = ("hinge", "slide")

LEAST_SPEED = 0.02
"""rad/s or m/s, by default: the friction is dry from a few degrees or centimetres a second on."""


@final
@dataclass(frozen=True)
class FrictionLoss(Part):
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

    def bind(self, design: Design) -> Bound:
        """Return the force of the friction.

        Raises:
            ProblemError, UnknownNameError: as in `losses_of`; no such task with velocities of
                joints.
        """
        losses, prescribed = losses_of(design.system, self), self._prescribed(design)
        smooth = smoothing_speeds(design.system, self, losses, prescribed)

        def forces(now: Instant) -> Instant:
            force = ca.SX(design.system.nv, 1)
            rates = ca.vertsplit(now.slice(f"{self.task}.v", 0)) if prescribed else []
            desired = dict(zip(prescribed, rates, strict=True))
            for joint, (dof, loss) in losses.items():
                speed = desired.get(joint, now.v[dof])
                force[dof] = -self.share * loss * speed / ca.sqrt(speed**2 + smooth[joint] ** 2)
            return now.pushed(force)

        raised = {name: speed for name, speed in smooth.items() if speed > self.least_speed}
        listed = ", ".join(f"{name}: {speed:.3g}" for name, speed in raised.items())
        doubt = (
            f"FrictionLoss(speed={self.least_speed:g}) is steeper than MuJoCo's soft friction on "
            f"some joints, which would drive themselves; they have {listed} rad/s or m/s; expected "
            "such a speed or None, losses of other joints only, or a stiffer solimpfriction in the "
            "model"
        )
        return Bound(
            "friction",
            forces=forces,
            notes={"speeds of friction losses": listed} if listed else {},
            doubts=[doubt] if listed and self.speed is not None else [],
        )

    @property
    def least_speed(self) -> float:
        """ω_s where the plant's friction is stiff, rad/s or m/s."""
        return LEAST_SPEED if self.speed is None else self.speed

    def _prescribed(self, design: Design) -> tuple[str, ...]:
        """Return the joints whose velocity the friction takes from the task's reference."""
        if not self.task:
            return ()
        postures = [task.name for task in design.tasks if isinstance(task, PostureTask)]
        require_name("task with velocities of joints", self.task, postures)
        return next(x.components for x in design.slots if x.name == f"{self.task}.v")


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


def smoothing_speeds(
    system: System,
    friction: FrictionLoss,
    losses: Mapping[str, tuple[int, float]],
    prescribed: Sequence[str],
) -> dict[str, float]:
    """Return ω_s, rad/s or m/s, of each joint with friction.

    `share F / ω_s` is at most the slope of the plant's friction, whose inertia may be wrong by 30 %
    as for servos. A velocity that a task prescribes is no feedback: its ω_s is the least.

    Args:
        system: read from a model.
        friction: its share and least ω_s.
        losses: of the joints, from `losses_of`.
        prescribed: joints with a velocity of a task.
    """
    assert system.tree is not None
    slopes = {joint.name: min(WRONG_INERTIA) * joint.friction_slope for joint in system.tree.joints}
    least = friction.least_speed
    return {
        name: least if name in prescribed else max(least, friction.share * loss / slopes[name])
        for name, (_, loss) in losses.items()
    }
