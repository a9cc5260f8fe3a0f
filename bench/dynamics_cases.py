"""Mechanisms whose constrained forward dynamics is timed: robots that stand, and closed loops."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np

from bench.robots import CASSIE, G1, GO2, robot_path
from mbcasadi import models
from mbcasadi.description import Frame, RigidTree

Points = tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Standing:
    """A model whose bodies are held to the world at points, beside its own loops.

    Attributes:
        name: what is printed.
        file: name of one of our models, or the file in the folder of `robots.FOLDER`.
        held: body → points in its axes, m.
        own: the file is one of our models.
    """

    name: str
    file: str
    held: Mapping[str, Points] = field(default_factory=dict)
    own: bool = False

    @property
    def path(self) -> Path | None:
        """The model's file, or None where it is absent."""
        if self.own:
            return models.path(self.file)
        return robot_path(self.file)

    def spec(self) -> mujoco.MjSpec:
        """Return the model with its bodies held, without contacts."""
        spec = mujoco.MjSpec.from_file(str(self.path))
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        for body, points in self.held.items():
            for point in points:
                equality = spec.add_equality()
                equality.type = mujoco.mjtEq.mjEQ_CONNECT
                equality.objtype = mujoco.mjtObj.mjOBJ_BODY
                equality.name1, equality.name2 = body, "world"
                equality.data[:3] = point
        return spec

    @property
    def of_peer(self) -> str:
        """For each held body how the peer holds it: 3 at a point, 6 as a whole."""
        return "".join("3" if len(points) == 1 else "6" for points in self.held.values())

    def frames(self, tree: RigidTree) -> tuple[Frame, ...]:
        """Return a frame at the mean of the points of each held body."""
        bodies = {frame.name: frame.body for frame in tree.frames if frame.kind == "body"}
        return tuple(
            Frame(body, "body", bodies[body], np.mean(points, axis=0), np.array([1.0, 0, 0, 0]))
            for body, points in self.held.items()
        )


def _corners(front: float, back: float, half_width: float, height: float) -> Points:
    return tuple((x, y, height) for x in (back, front) for y in (-half_width, half_width))


CASES = (
    Standing(
        "quadruped on four feet",
        "quadruped",
        {f"{leg}_foot": ((0.0, 0.0, 0.0),) for leg in ("FL", "FR", "RL", "RR")},
        own=True,
    ),
    Standing(
        "humanoid on two soles, 8 points",
        "humanoid",
        {f"{side}_foot": _corners(0.15, -0.06, 0.04, -0.0663) for side in ("left", "right")},
        own=True,
    ),
    Standing(
        "Go2 on four feet",
        GO2,
        {f"{leg}_calf": ((-0.002, 0.0, -0.213),) for leg in ("FL", "FR", "RL", "RR")},
    ),
    Standing(
        "G1 on two soles, 8 points",
        G1,
        {
            f"{side}_ankle_roll_link": _corners(0.12, -0.05, 0.03, -0.03)
            for side in ("left", "right")
        },
    ),
    Standing("Cassie, its loops", CASSIE),
)
