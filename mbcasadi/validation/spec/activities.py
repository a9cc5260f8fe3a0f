"""What `init` lets a robot do, from holding its pose to walking, driving and grasping."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.errors import ProblemError
from mbcasadi.validation.spec.motion_options import MotionOptions

Array = NDArray[np.float64]
Activity = Literal[
    "hold",
    "stand",
    "squat",
    "lift",
    "track",
    "reach",
    "carry",
    "grasp",
    "hover",
    "trot",
    "walk",
    "drive",
]
ACTIVITIES: tuple[Activity, ...] = get_args(Activity)

ARMED = ("arm", "bimanual")
HANDS = ("hand", "gripper")
LEGGED = ("quadruped", "biped", "humanoid")
SUITED: dict[Activity, tuple[str, ...]] = {
    "stand": LEGGED,
    "squat": LEGGED,
    "lift": LEGGED,
    "track": (*ARMED, *LEGGED),
    "reach": ARMED,
    "carry": (*ARMED, *LEGGED),
    "grasp": HANDS,
    "hover": ("drone",),
    "trot": ("quadruped",),
    "walk": ("biped", "humanoid"),
    "drive": ("wheeled base",),
}
"""Kinds of robots that can do an activity; all can hold where they start."""

WALKS: tuple[Activity, ...] = ("trot", "walk")
WITH_TOOLS: tuple[Activity, ...] = ("track", "reach", "carry")
"""Activities of arms; of a hand where the robot stands."""
ON_FEET: tuple[Activity, ...] = ("squat", "lift", *WALKS, *WITH_TOOLS)
"""Activities for which a robot with legs needs a floating base on feet."""

DEFAULT: dict[str, Activity] = {
    "arm": "track",
    "bimanual": "track",
    "biped": "stand",
    "drone": "hover",
    "humanoid": "stand",
    "quadruped": "stand",
    "wheeled base": "drive",
}

DEPTH = 0.1
"""Of a squat, in shares of a leg's length."""

LEG = 0.5
"""M, of a leg for which gaits and speeds are stated; others have those of equal Froude numbers."""

PLAN, TICKS = 0.02, 10
"""S, of a plan; ticks in one."""

TROT, STEPS = (0.4, 0.55, 0.75, 0.5), (0.55, 0.61, 0.83, 0.23)
"""S, of a stride; shares of it that a foot stands, and before the first one; and speed, m/s."""

TURN = 0.5
"""Rad/s."""


def activity_of(robot: RobotDescription, wanted: str | None, *, mpc: bool = False) -> Activity:
    """Return what a robot is to do: what is wanted, or what suits its kind.

    Args:
        robot: of the model.
        wanted: name of an activity, or None.
        mpc: only what a plan of the whole body does.

    Raises:
        ProblemError: no such activity, or none for this kind of robot.
    """
    able = [each for each in ACTIVITIES if robot.kind in SUITED.get(each, (robot.kind,))]
    if not robot.limbs_of("arm"):
        able = [each for each in able if each not in WITH_TOOLS]
    if mpc:
        able = [each for each in able if each in WALKS]
        if not able:
            raise ProblemError(
                f"whole-body MPC of '{robot.name}', which is {_named(robot)}; expected a robot "
                "with legs"
            )
    if wanted is None:
        return able[0] if mpc else DEFAULT.get(robot.kind, "hold")
    for activity in ACTIVITIES:
        if activity == wanted:
            if activity in able:
                return activity
            raise ProblemError(
                f"task {wanted!r} of '{robot.name}', which is {_named(robot)}; expected one of "
                f"{', '.join(able)}"
            )
    raise ProblemError(f"task {wanted!r}; expected one of {', '.join(ACTIVITIES)}")


def _named(robot: RobotDescription) -> str:
    return robot.text.splitlines()[0].split(": ", 1)[1].split(",")[0]


class FootContact(NamedTuple):
    """A contact of a plan: the middle of a round foot, or a corner of a flat one."""

    frame: str
    kind: Literal["geom", "contact"]
    friction: float
    geom: str


@dataclass(frozen=True)
class Walk:
    """A gait and a command.

    Attributes:
        feet: contacts of the plan.
        period: of a plan, s.
        timestep: of the plant, s, shorter than the model's own where plans would be too long.
        stride, duty, begins: of the gait, s; share of the stride that a foot stands.
        offsets: of each foot's contact.
        command: terms of speed along x and y of the base, and of the turn, as TOML.
    """

    feet: tuple[FootContact, ...]
    period: float
    timestep: float | None
    stride: float
    duty: float
    begins: float
    offsets: tuple[float, ...]
    command: tuple[str, str, str]


def walk_of(
    robot: RobotDescription,
    feet: Sequence[FootContact],
    base: Array,
    timestep: float,
    longest_tick: float,
    motion: MotionOptions,
) -> Walk:
    """Return how a robot walks: a trot of four legs, or one of two legs after the other.

    Times and speeds are those of equal Froude numbers. Legs that are diagonal to each other trot
    together.

    Args:
        robot: with legs.
        feet: contacts of the plan.
        base: (3, 3) rotation of the base at the start.
        timestep: of the model, s.
        longest_tick: of the law below the plan, s.
        motion: speed and turn, where they are given.

    Raises:
        ProblemError: a speed at which feet on the ground move by more than the length of a leg.
    """
    legs = robot.limbs_of("leg")
    length = float(np.mean([leg.length for leg in legs]))
    longer = length / LEG
    trots, slower = len(legs) == 4, float(np.sqrt(longer))
    stride, stands, begins, speed = TROT if trots else STEPS
    finer = max(1, round(TICKS * timestep / (PLAN * slower)))
    tick = timestep / finer
    period = TICKS * tick * max(1, round(min(PLAN * slower / TICKS, longest_tick) / tick))
    count = 2 * round(stride * slower / (2 * period))
    first = {
        geom: (leg.side == "left") == (leg.ahead or not trots)
        for leg in legs
        if leg.foot is not None
        for geom in leg.foot.geoms
    }
    speed = speed * slower if motion.speed is None else motion.speed
    fastest = length / (stands * stride * slower)
    if abs(speed) > fastest:
        raise ProblemError(
            f"speed = {speed:g} m/s of '{robot.name}': a foot on the ground would move by more "
            f"than its leg is long; expected at most {fastest:.2g} m/s"
        )
    ahead = base.T @ np.array([*robot.ahead, 0.0]) * speed
    turn = TURN / slower * (1.0 if trots else 0.5) if motion.turn is None else motion.turn
    along = np.round(ahead[:2], 6) + 0.0  # no -0
    terms = [f"{{ by = {each:.3g}, duration = 1.5, start = 0.5 }}" for each in along]
    turns = (
        f"[{{ by = {turn:.3g}, duration = 0.5, start = 4.0 }}, "
        f"{{ by = {-turn:.3g}, duration = 0.5, start = 8.0 }}]"
    )
    return Walk(
        feet=tuple(feet),
        period=period,
        timestep=tick if finer > 1 else None,
        stride=count * period,
        duty=round(stands * count) / count,
        begins=round(begins * count) * period,
        offsets=tuple(0.0 if first[foot.geom] else 0.5 for foot in feet),
        command=(terms[0], terms[1], turns),
    )
