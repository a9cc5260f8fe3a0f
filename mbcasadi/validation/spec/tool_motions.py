"""What the tools of arms do: a circle, also with a load, or the way beyond reach and home."""

from dataclasses import dataclass

import numpy as np

from mbcasadi.anatomy import RobotDescription, RobotLimb, RobotTool
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.spec.activities import Activity, Array
from mbcasadi.validation.spec.workspace import AXES, FREQUENCY, Workplace, place_of, workplace

WITH_TOOLS: tuple[Activity, ...] = ("track", "reach", "carry")
"""Activities of arms."""

EXACT: dict[Activity, float] = {"track": 2e-3, "reach": 1e-3, "carry": 5e-3}
"""M; largest error on a circle, at home again, and on a circle with an unknown load."""

LOAD = 0.1
"""Mass of a load that the controller does not know, in that of the arm's links."""

FAR = 1.0
"""Way beyond the tool's place, in lengths of the arm: out of reach from wherever it is."""


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
    tool: RobotTool
    place: Workplace
    terms: dict[str, str]


def tool_motions(
    robot: RobotDescription, plant: Plant, q: Array, activity: Activity
) -> tuple[tuple[ToolMotion, ...], Array]:
    """Return what the tools of all arms do, and the pose (nq,) in which they begin."""
    motions, arms = [], robot.limbs_of("arm")
    for arm in arms if activity in WITH_TOOLS else ():
        place = workplace(plant, arm, q)
        q = place.q
        terms = _beyond(plant, arm, place) if activity == "reach" else _circle(place)
        name = "tool" if len(arms) == 1 else f"{arm.side}_tool"
        motions.append(ToolMotion(name, arm.tool, place, terms))
    return tuple(motions), q


def loads_of(robot: RobotDescription, plant: Plant) -> dict[str, float]:
    """Return relative errors of the masses of bodies that carry a load, by parameter.

    Raises:
        ProblemError: a body without a name, whose mass is no parameter.
    """
    model, arms = plant.model, robot.limbs_of("arm")
    named = {model.body(k).name for k in range(model.nbody)}
    if nameless := {arm.name for arm in arms} - named:
        raise ProblemError(
            f"task 'carry' of '{robot.name}': the last body of an arm, {', '.join(nameless)}, has "
            "no name; give it one in the model"
        )
    links = float(model.body_mass[model.body_weldid > 0].sum()) / len(arms)
    masses = {arm.name: float(model.body(arm.name).mass[0]) for arm in arms}
    return {f"body:{name}:mass": LOAD * links / max(m, 1e-9) for name, m in masses.items()}


def _circle(place: Workplace) -> dict[str, str]:
    """Return a circle from the start: `r s(t) sin(w t)`, and `r s(t) (1 - cos(w t))`."""
    first, second = tuple(place.plane)
    wave = f"amplitude = {place.radius:.4g}, frequency = {FREQUENCY}, ramp = 1.0"
    return {
        first: f"{{ {wave} }}",
        second: f"[{{ {wave}, phase = -90 }}, {{ by = {place.radius:.4g}, duration = 1.0 }}]",
    }


def _beyond(plant: Plant, arm: RobotLimb, place: Workplace) -> dict[str, str]:
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
