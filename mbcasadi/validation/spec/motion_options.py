"""What a user may say of the motion that `init` writes."""

from dataclasses import dataclass, fields

import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import number, require_positive
from mbcasadi.short_text import summarised

WALKERS = ("trot", "walk")
CIRCLES = ("track", "carry")
TASKS = {
    "speed": (*WALKERS, "drive"),
    "turn": WALKERS,
    "radius": CIRCLES,
    "frequency": CIRCLES,
}
"""Tasks that take an option."""


@summarised
@dataclass(frozen=True)
class MotionOptions:
    """Speeds and sizes of a motion; None for what suits the robot.

    Attributes:
        speed: ahead, m/s, of trot and walk, negative for back; of drive the largest on its path.
        turn: rad/s to the left, of trot and walk.
        radius: of the circle of track and carry, m.
        frequency: of the circle of track and carry, Hz.
    """

    speed: float | None = None
    turn: float | None = None
    radius: float | None = None
    frequency: float | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        for name, value in self.given.items():
            if name in ("radius", "frequency"):
                require_positive(**{name: value})
            elif not np.isfinite(number(name, value)):
                raise ProblemError(f"{name} = {value}; expected a finite number")

    @property
    def given(self) -> dict[str, float]:
        """What is not None, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def require_taken(motion: MotionOptions, task: str) -> None:
    """Raise `ProblemError` unless a task takes what is given of its motion."""
    for name, value in motion.given.items():
        if task not in TASKS[name]:
            *rest, last = TASKS[name]
            raise ProblemError(
                f"{name} = {value:g} with task {task!r}; expected task "
                f"{', '.join(rest)} or {last}, or none"
            )


SUITED_MOTION = MotionOptions()
"""What suits the robot."""
