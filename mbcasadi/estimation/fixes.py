"""Measurements of where a robot is and where it heads: what neither IMU nor feet see."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_positive, unique
from mbcasadi.short_text import summarised

FixKind = Literal["height", "yaw", "magnetometer", "position", "pose"]

PARTS = {
    "height": (("height", ("",), "m"),),
    "yaw": (("yaw", ("",), "rad"),),
    "magnetometer": (("magnetometer", (".x", ".y", ".z"), ""),),
    "position": (("frame_position", (".x", ".y", ".z"), "m"),),
    "pose": (
        ("frame_position", (".x", ".y", ".z"), "m"),
        ("frame_rotation", (".qw", ".qx", ".qy", ".qz"), ""),
    ),
}
"""What each kind reads: kind of a plant's sensor, endings of the names, unit."""

SEEN = {"yaw": (1, 0, 0), "magnetometer": (1, 0, 0), "height": (0, 1, 0), "position": (0, 1, 1)}
SEEN |= {"pose": (1, 1, 1)}
"""Whether each kind sees the heading, the height, the horizontal position."""

HEADING, POSITION = 1.0, 100.0
"""Deviations of a first estimate that is not given, and that a fix will set: rad, m."""

CERTAIN = 1e-3
"""Deviation, rad and m, of the heading and the position of a first estimate that no fix sees."""


@summarised
@dataclass(frozen=True)
class Fix:
    """A measurement of where a frame of the robot is in the world, or how it is turned.

    Attributes:
        kind: "height", z of the frame, m: an altimeter, a barometer; "yaw", angle of the frame's x
            axis about the vertical, from x of the world to y, rad: a compass; "magnetometer",
            `field` in the frame's axes; "position" of the frame, m: GNSS; "pose", position and
            quaternion w x y z: motion capture.
        frame: name of a site or body of the robot, its lever arm and its rotation with it.
        noise: standard deviation of each entry, m, rad, or the unit of `field`.
        frame_kind: "site" or "body".
        turn_noise: of the rotation of a pose, rad.
        field: (3,) what a magnetometer sees, world axes, in any unit.
        longest_delay: s, by which a sample may be late; 0 for samples of the tick that gets them.
        false_alarm: share of good samples that are rejected.

    Raises:
        ProblemError: a noise that is not positive, a field without a horizontal part, a negative
            delay, a false alarm that is no share.
    """

    kind: FixKind
    frame: str
    noise: float
    frame_kind: Literal["site", "body"] = "site"
    turn_noise: float = 1e-2
    field: tuple[float, float, float] = (0.0, -0.5, 0.0)
    longest_delay: float = 0.0
    false_alarm: float = 1e-6

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(noise=self.noise, turn_noise=self.turn_noise)
        if not 0 < self.false_alarm < 1:
            raise ProblemError(f"false_alarm = {self.false_alarm}; expected a share in (0, 1)")
        require_delay(self.longest_delay)
        if not 0 < np.hypot(*self.field[:2]) < np.inf:
            raise ProblemError(
                f"field = {self.field}; expected a horizontal part: it tells the yaw"
            )

    @property
    def size(self) -> int:
        """Entries of a sample."""
        return sum(len(endings) for _, endings, _ in PARTS[self.kind])

    @property
    def rows(self) -> int:
        """Independent entries of a sample."""
        return 6 if self.kind == "pose" else self.size

    @property
    def seen(self) -> tuple[int, int, int]:
        """Whether it sees the heading, the height, the horizontal position."""
        return SEEN[self.kind]


def require_delay(longest_delay: float) -> None:
    """Raise `ProblemError` unless it is a time of at least zero."""
    if not 0 <= longest_delay < np.inf:
        raise ProblemError(f"longest_delay = {longest_delay}; expected a time, s, at least 0")


def fix_names(fixes: Sequence[Fix]) -> tuple[str, ...]:
    """Return a name for each fix."""
    return unique([f"{fix.frame}.{fix.kind}" for fix in fixes])


def unseen_by(fixes: Sequence[Fix]) -> tuple[str, ...]:
    """Return what of a robot that walks neither its IMU, nor feet, nor these fixes observe."""
    heading, height, place = (any(fix.seen[k] for fix in fixes) for k in range(3))
    words = []
    if not place:
        words.append("horizontal position of the base" if height else "position of the base")
    if not heading:
        frames = {fix.frame for fix in fixes if fix.seen[2]}
        still = " while it stands still" if len(frames) == 1 else ""
        words += ["rotation of the base about the vertical" + still] if len(frames) < 2 else []
    return tuple(words)
