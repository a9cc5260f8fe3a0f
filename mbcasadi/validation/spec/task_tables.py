"""The tables of tasks in a controller's TOML file: the fields of the task, and its reference."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from mbcasadi.control import (
    ComTask,
    DirectionTask,
    DistanceTask,
    FrameTask,
    LookAtTask,
    MomentumTask,
    PostureTask,
    Task,
)
from mbcasadi.validation.spec.signals import Component
from mbcasadi.validation.spec.tables import StrictTable

Gain = float | tuple[float, ...]
Vector3 = tuple[float, float, float]
FrameKind = Literal["site", "body", "geom"]
Axes = Annotated[str, Field(pattern="^[xyz]{0,3}$")]
Axis = Literal["x", "y", "z"]
PoseAxis = Literal["x", "y", "z", "rx", "ry", "rz"]


class TaskTable(StrictTable):
    """What all tasks have; components of the reference that are not named keep their start."""

    kp: Gain = 100.0
    kd: Gain | None = None
    weight: Gain = 1.0


class Posture(TaskTable):
    """Joints track a reference."""

    type: Literal["posture"]
    joints: tuple[str, ...] | None = None
    name: str = "posture"
    reference: Annotated[dict[str, Component], Field(default_factory=dict)]


class FramePose(TaskTable):
    """A site, body or geom tracks a reference, in the world or seen from a base."""

    type: Literal["frame"]
    frame: str
    kind: FrameKind = "site"
    position: Axes = "xyz"
    orientation: Axes = "xyz"
    name: str = ""
    base: str = ""
    base_kind: FrameKind = "body"
    reference: Annotated[dict[PoseAxis, Component], Field(default_factory=dict)]


class CenterOfMass(TaskTable):
    """The centre of mass tracks a reference."""

    type: Literal["com"]
    axes: Axes = "xyz"
    name: str = "com"
    reference: Annotated[dict[Axis, Component], Field(default_factory=dict)]


class Momentum(StrictTable):
    """The momentum tracks a reference, from zero."""

    type: Literal["momentum"]
    linear: Axes = "xyz"
    angular: Axes = "xyz"
    kp: Gain = 10.0
    weight: Gain = 1.0
    name: str = "momentum"
    reference: Annotated[dict[PoseAxis, Component], Field(default_factory=dict)]


class AxisTable(TaskTable):
    """What tasks of one axis of a frame have."""

    frame: str
    axis: Vector3 = (0.0, 0.0, 1.0)
    kind: FrameKind = "site"
    name: str = ""
    reference: Annotated[dict[Axis, Component], Field(default_factory=dict)]


class Direction(AxisTable):
    """An axis of a frame follows a vector in the world."""

    type: Literal["direction"]


class LookAt(AxisTable):
    """An axis of a frame leads to a point in the world, 1 m ahead at the start."""

    type: Literal["look_at"]


class Distance(TaskTable):
    """Two frames keep a distance."""

    type: Literal["distance"]
    frame: str
    other: str
    kind: FrameKind = "site"
    other_kind: FrameKind = "site"
    name: str = ""
    reference: Annotated[dict[Literal["distance"], Component], Field(default_factory=dict)]


AnyTask = Annotated[
    Annotated[Posture, Tag("posture")]
    | Annotated[FramePose, Tag("frame")]
    | Annotated[CenterOfMass, Tag("com")]
    | Annotated[Momentum, Tag("momentum")]
    | Annotated[Direction, Tag("direction")]
    | Annotated[LookAt, Tag("look_at")]
    | Annotated[Distance, Tag("distance")],
    Discriminator("type"),
]

TASKS: dict[str, type[Task]] = {
    "posture": PostureTask,
    "frame": FrameTask,
    "com": ComTask,
    "momentum": MomentumTask,
    "direction": DirectionTask,
    "look_at": LookAtTask,
    "distance": DistanceTask,
}


def make_task(table: AnyTask) -> Task:
    """Return the task that a table describes."""
    return TASKS[table.type](**table.model_dump(exclude={"type", "reference"}))
