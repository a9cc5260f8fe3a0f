"""Legged robots whose gait an MPC of a rigid body plans, above inverse dynamics."""

from collections.abc import Iterator

import numpy as np

import mbcasadi as mb
from mbcasadi.validation import (
    OuterLaw,
    Recording,
    Runnable,
    ScenarioOptions,
    Sensing,
    compile_controller,
    outer_law,
)
from robots import trots, walking
from robots.legs.trial import FALLEN
from robots.trots import Trot
from robots.walking import Walk
from robots.whole_body.sensed import REST, estimate_cells, sensing_below


def recorded(
    robot: Trot | Walk, law: Runnable, outer: OuterLaw, duration: float, sensors: Sensing | None
) -> Recording:
    """Return the recording of a robot that walks, and may be pushed."""
    report = mb.validate(
        law, robot.model, duration, q0=robot.q0, perturb={"mass": 0.1}, delay=1,
        disturbance=robot.push if isinstance(robot, Trot) else None,
        scenario=ScenarioOptions(outer=outer), sensors=sensors,
    )  # fmt: skip
    return report.runs[0].recording


def estimate(recording: Recording, robot: Trot | Walk, sensors: Sensing | None) -> str:
    """Return the errors of the estimate behind a line, where there is one."""
    return f" | {estimate_cells(recording, robot.model.compile())}" if sensors else ""


def walk(sensed: bool, duration: float = 30.0) -> Iterator[str]:
    """Yield what became of G1's walk at 0.5 m/s with a turn, for each planner."""
    begins = REST if sensed else 0.0
    robot = walking.walk(begins)
    sensors = sensing_below(robot.law, robot.model, robot.q0) if sensed else None
    with compile_controller(robot.law) as law:
        for name, planner in robot.planners.items():
            with outer_law(robot.mpc, planner, lambda t: walking.command(t - begins)) as outer:
                found = recorded(robot, law, outer, begins + duration, sensors)
            low = np.flatnonzero(found.q[:, 2] < FALLEN * robot.q0[2])
            upright = found.t[low[0] if low.size else -1] - begins
            yield (
                f"G1 walks, {name}: upright for {upright:.1f} s of {duration:g} s, "
                f"{walking.figures(found, begins)}{estimate(found, robot, sensors)}"
            )


def trot(sensed: bool, duration: float = 3.0) -> Iterator[str]:
    """Yield how light quadrupeds that trot bear a push sideways, for each planner."""
    begins = REST if sensed else 0.0
    for name in trots.ROBOTS:
        robot = trots.trots(name, begins)
        sensors = sensing_below(robot.law, robot.model, robot.q0) if sensed else None
        with compile_controller(robot.law) as law:
            for key, planner in robot.planners.items():
                with outer_law(robot.mpc, planner, [0.0, 0.0, 0.0]) as outer:
                    found = recorded(robot, law, outer, begins + duration, sensors)
                stands = found.q[-1, 2] > FALLEN * robot.q0[2]
                yield (
                    f"{name} trots, {key}: leans {trots.lean(found):.0f} mrad, solved "
                    f"{np.mean(found.status == 0):.2%}, {'stays up' if stands else 'falls'}"
                    f"{estimate(found, robot, sensors)}"
                )
