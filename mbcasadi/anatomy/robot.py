"""What a description of a robot holds."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy.feet import RobotFoot
from mbcasadi.argument_kinds import checked
from mbcasadi.short_text import summarised
from mbcasadi.system.joint_roles import JointRoles

Array = NDArray[np.float64]
RobotKind = Literal[
    "arm",
    "bimanual",
    "hand",
    "gripper",
    "quadruped",
    "biped",
    "humanoid",
    "wheeled base",
    "drone",
    "other",
]
BaseKind = Literal["fixed", "floating", "planar"]
LimbRole = Literal["arm", "leg", "finger", "wheel", "head", "other"]
Side = Literal["left", "right", "middle"]
ToolKind = Literal["site", "body", "geom"]


@summarised
@dataclass(frozen=True)
class RobotTool:
    """A frame at the end of an arm or a finger.

    Attributes:
        frame, kind: its name, and "site", "body" or "geom".
        others: other frames at this end, as (name, kind), the outermost ones first.
    """

    frame: str
    kind: ToolKind
    others: tuple[tuple[str, str], ...] = ()


@summarised
@dataclass(frozen=True)
class RobotLimb:
    """What hangs on the base by joints.

    Attributes:
        name: of its outermost body, before fingers.
        role: "leg" where it stands on the ground, "wheel" where it rolls on it, "arm" with four
            joints or fingers, "head" with one or two joints on a spine, "finger", "other".
        side: "left", "right" or "middle" of the base, as the robot looks ahead.
        ahead: whether its mount is ahead of the base's centre of mass.
        mount: the body that carries it.
        joints: from the mount outwards, without those of fingers.
        length: the way along its joints to its farthest point, m, slides run out.
        foot: what it stands on, or None.
        tool: the frame at its end.
        fingers: that its outermost body carries.
    """

    name: str
    role: LimbRole
    side: Side
    ahead: bool
    mount: str
    joints: tuple[str, ...]
    length: float
    foot: RobotFoot | None
    tool: RobotTool
    fingers: tuple["RobotLimb", ...] = ()


@summarised
@dataclass(frozen=True)
class RobotDescription:
    """What a model says of a robot, by its structure, its shapes and its actuators.

    Attributes:
        name: of the model.
        kind: of the robot.
        base: "fixed", "floating", or "planar" where it slides along two axes and turns.
        base_body: the body that moves with the base, "" where it is fixed.
        limbs: in the order of the model.
        joints: driven, dependent and passive ones.
        ahead, left: (2,) horizontal directions of the robot in the world, in the pose described.
        objects: bodies that float and that no actuator moves, beside the robot.
        keyframe: the pose described, None for the authored one.
        notes: sentences on what is not sure, and on what else it could be.
    """

    name: str
    kind: RobotKind
    base: BaseKind
    base_body: str
    limbs: tuple[RobotLimb, ...]
    joints: JointRoles
    ahead: Array
    left: Array
    objects: tuple[str, ...] = ()
    keyframe: str | None = None
    notes: tuple[str, ...] = ()

    @checked
    def limbs_of(self, role: LimbRole) -> tuple[RobotLimb, ...]:
        """Return the limbs of a role."""
        return tuple(limb for limb in self.limbs if limb.role == role)

    @property
    def feet(self) -> tuple[RobotFoot, ...]:
        """The feet of all limbs."""
        return tuple(limb.foot for limb in self.limbs if limb.foot is not None)

    @property
    def text(self) -> str:
        """Some lines: the kind, each limb, and what is not sure."""
        base = self.base_body or "the world"
        lines = [f"{self.name}: {_article(self.kind)}, {self.base} base ({base})"]
        lines += [f"  {_line(limb)}" for limb in self.limbs]
        if self.objects:
            lines.append(f"  beside it: {', '.join(self.objects)}")
        if self.joints.passive:
            lines.append(f"  passive: {_some(self.joints.passive)}")
        if self.joints.dependent:
            lines.append(f"  dependent: {_some(self.joints.dependent)}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


SHOWN = 6
"""Names in a line."""


def _article(kind: str) -> str:
    return {"arm": "an arm", "other": "of no known kind", "bimanual": "two arms"}.get(
        kind, f"a {kind}"
    )


def _some(names: tuple[str, ...]) -> str:
    more = f", … ({len(names)})" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _line(limb: RobotLimb) -> str:
    what = f"{limb.side} {limb.role} {limb.name}: {len(limb.joints)} joints, {limb.length:.2g} m"
    if limb.foot is not None:
        what += f", {limb.foot.shape} foot ({_some(limb.foot.geoms)})"
    if limb.fingers:
        what += f", {len(limb.fingers)} fingers"
    if limb.role in ("arm", "finger"):
        what += f", tool {limb.tool.kind} {limb.tool.frame}"
    return what
