"""What `init` lets a robot do: hold, stand, squat, track, reach, hover, trot, walk."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import Limb, RobotDescription, Tool
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.spec.workspace import AXES, Workplace, place_of, workplace

Array = NDArray[np.float64]
Activity = Literal["hold", "stand", "squat", "track", "reach", "hover", "trot", "walk"]
ACTIVITIES: tuple[Activity, ...] = get_args(Activity)

ARMED = ("arm", "bimanual")
LEGGED = ("quadruped", "biped", "humanoid")
SUITED: dict[Activity, tuple[str, ...]] = {
    "stand": LEGGED,
    "squat": LEGGED,
    "track": ARMED,
    "reach": ARMED,
    "hover": ("drone",),
    "trot": ("quadruped",),
    "walk": ("biped", "humanoid"),
}
"""Kinds of robots that can do a activity; all can hold where they start."""

DEFAULT: dict[str, Activity] = {
    "arm": "track",
    "bimanual": "track",
    "drone": "hover",
} | dict.fromkeys(LEGGED, "stand")

FREQUENCY = 0.5
"""Hz, of circles."""

EXACT, HOME = 2e-3, 1e-3
"""M; largest error on a circle, and at home again."""

FAR = 1.0
"""Way beyond the tool's place, in lengths of the arm: out of reach from wherever it is."""

LEG = 0.5
"""M, of a leg for which gaits and speeds are stated; others have those of equal Froude numbers."""


@dataclass(frozen=True)
class ToolMotion:
    """What a tool does.

    Attributes:
        name: of its task.
        tool: the frame.
        place: where it works.
        terms: axis → terms of the reference, as TOML.
    """

    name: str
    tool: Tool
    place: Workplace
    terms: dict[str, str]


def activity_of(robot: RobotDescription, wanted: str | None) -> Activity:
    """Return what a robot is to do: what is wanted, or what suits its kind.

    Raises:
        ProblemError: no such activity, or none for this kind of robot.
    """
    if wanted is None:
        return DEFAULT.get(robot.kind, "hold")
    able = [each for each in ACTIVITIES if robot.kind in SUITED.get(each, (robot.kind,))]
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


def tool_motions(
    robot: RobotDescription, plant: Plant, q: Array, activity: Activity
) -> tuple[tuple[ToolMotion, ...], Array]:
    """Return what the tools of all arms do, and the pose (nq,) in which they begin."""
    motions, arms = [], robot.limbs_of("arm")
    for arm in arms if activity in ("track", "reach") else ():
        place = workplace(plant, arm, q)
        q = place.q
        terms = _circle(place) if activity == "track" else _beyond(plant, arm, place)
        name = "tool" if len(arms) == 1 else f"{arm.side}_tool"
        motions.append(ToolMotion(name, arm.tool, place, terms))
    return tuple(motions), q


def _circle(place: Workplace) -> dict[str, str]:
    """Return a circle from the start: `r s(t) sin(w t)`, and `r s(t) (1 - cos(w t))`."""
    first, second = place.plane
    wave = f"amplitude = {place.radius:.4g}, frequency = {FREQUENCY}, ramp = 1.0"
    return {
        first: f"{{ {wave} }}",
        second: f"[{{ {wave}, phase = -90 }}, {{ by = {place.radius:.4g}, duration = 1.0 }}]",
    }


def _beyond(plant: Plant, arm: Limb, place: Workplace) -> dict[str, str]:
    """Return the way beyond reach, away from the arm's mount, and back."""
    plant.reset(place.q)
    tool = place_of(plant.model, plant.data, arm.tool)
    mount = np.array(plant.data.joint(arm.joints[0]).xanchor)
    rows = [AXES.index(axis) for axis in place.axes]
    away = (tool - mount)[rows]
    away = FAR * arm.length * away / max(float(np.linalg.norm(away)), 1e-9)
    return {
        AXES[row]: f"[{{ by = {by:.4g}, duration = 1.5, start = 0.5 }}, "
        f"{{ by = {-by:.4g}, duration = 1.5, start = 3.5 }}]"
        for row, by in zip(rows, away, strict=True)
        if abs(by) > 1e-6
    }
