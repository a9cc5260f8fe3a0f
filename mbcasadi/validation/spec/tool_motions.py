"""What the tools of arms do: a circle, also with a load, or the way beyond reach and home.

An arm or a pair of them moves all its tools; a robot that stands moves one hand.
"""

from dataclasses import dataclass

import numpy as np

from mbcasadi.anatomy import RobotDescription, RobotLimb, RobotTool
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.spec.activities import ARMED, WITH_TOOLS, Activity, Array
from mbcasadi.validation.spec.motion_options import MotionOptions
from mbcasadi.validation.spec.workspace import AXES, Workplace, place_of, workplace

EXACT: dict[Activity, float] = {"track": 2e-3, "reach": 1e-3, "carry": 5e-3}
"""M; largest error on a circle, at home again, and on a circle with an unknown load."""

LOAD = 0.1
"""Mass of a load that the controller does not know, in that of the arm's links."""

LEAST_MASS = 1e-9
"""Kg, of a body whose mass is a parameter."""

LENGTH_DIGITS = 3
"""Of lengths, m, of arms that are as long as each other."""

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
    robot: RobotDescription, plant: Plant, q: Array, activity: Activity, motion: MotionOptions
) -> tuple[tuple[ToolMotion, ...], Array]:
    """Return what the tools of arms at work do, and the pose (nq,) in which they begin.

    Raises:
        ProblemError: as `workplace`; or actuators that are too weak for the circle.
    """
    motions, arms = [], arms_at_work(robot)
    for arm in arms if activity in WITH_TOOLS else ():
        place = workplace(plant, arm, q, motion)
        if activity != "reach" and place.load > 1:
            raise ProblemError(_too_weak(robot, activity, arm, place))
        q = place.q
        terms = _beyond(plant, arm, place) if activity == "reach" else _circle(place)
        name = "tool" if len(arms) == 1 else f"{arm.side}_tool"
        motions.append(ToolMotion(name, arm.tool, place, terms))
    return tuple(motions), q


def arms_at_work(robot: RobotDescription) -> tuple[RobotLimb, ...]:
    """Return all arms on a fixed base; of a robot that stands the one with the most joints."""
    arms = robot.limbs_of("arm")
    if robot.kind in ARMED or not arms:
        return arms
    return (max(arms, key=lambda arm: (len(arm.joints), round(arm.length, LENGTH_DIGITS))),)


def loads_of(robot: RobotDescription, plant: Plant) -> dict[str, float]:
    """Return relative errors of the masses of bodies that carry a load, by parameter.

    Raises:
        ProblemError: a body without a name, whose mass is no parameter.
    """
    model, arms = plant.model, arms_at_work(robot)
    named = {model.body(k).name for k in range(model.nbody)}
    if nameless := {arm.name for arm in arms} - named:
        raise ProblemError(
            f"task 'carry' of '{robot.name}': the last body of an arm, {', '.join(nameless)}, has "
            "no name; give it one in the model"
        )
    errors = {}
    for arm in arms:
        links = float(model.body_subtreemass[model.joint(arm.joints[0]).bodyid[0]])
        own = max(float(model.body(arm.name).mass[0]), LEAST_MASS)
        errors[f"body:{arm.name}:mass"] = LOAD * links / own
    return errors


def _too_weak(robot: RobotDescription, activity: Activity, arm: RobotLimb, place: Workplace) -> str:
    """Return what actuators lack for a circle."""
    return (
        f"task {activity!r} of '{robot.name}': a circle of {place.radius:.3g} m at "
        f"{place.frequency:g} Hz takes {place.load:.3g} times what an actuator of '{arm.name}' "
        "gives; try a smaller radius or frequency, or task hold"
    )


def _circle(place: Workplace) -> dict[str, str]:
    """Return a circle from the start: `r s(t) sin(w t)`, and `r s(t) (1 - cos(w t))`."""
    first, second = tuple(place.plane)
    wave = f"amplitude = {place.radius:.4g}, frequency = {place.frequency:g}, ramp = 1.0"
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
