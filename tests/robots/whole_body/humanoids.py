"""Rows of humanoids: walk and turn, pushes from all sides, one foot, squats."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from mbcasadi import mpc
from mbcasadi.contacts.groups import contact_groups_of
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.validation import OuterLaw, Recording
from robots.ground import Array, Ground
from robots.whole_body.trials import (
    FALLEN,
    HUMANOIDS,
    PLAIN,
    Task,
    Walker,
    recorded,
    run,
    walker,
    whole_body,
)

STRIDE, STANCE, START = 0.72, 0.44, 0.6  # s
WALKS = Task("walk and turn", 0.5, 30.0, turn=0.3)
SIDES = {
    "the left": {"push": -0.5},
    "the right": {"push": 0.5},
    "behind": {"ahead": 0.5},
    "the front": {"ahead": -0.5},
}
OVER, LIFT = (6.0, 8.0), 8.5  # s, while the base goes over a foot, and when the other one lifts
FLIGHT, FOREVER = 14.0, 100.0  # s, of its swing, and from one to the next
SHIFT = mpc.WholeBodyOptions(shift=True)
DEEP, RATE, BEGINS = 0.1, 0.4, 0.5  # m, Hz, s, of a squat


def walk_of(robot: Walker) -> mpc.Gait:
    """Return the gait of a humanoid, one foot after the other; the corners of a foot are one."""
    first = contact_groups_of(robot.system, robot.feet)[0].members
    offsets = tuple(0.0 if i in first else 0.5 for i in range(len(robot.feet)))
    return mpc.Gait(STRIDE, STANCE / STRIDE, offsets, start=START)


@dataclass(frozen=True)
class Still(Task):
    """What a robot has to do that stays where it is.

    Attributes:
        over: (3,) shift of the base from `OVER` on, m.
        deep: of a squat, m.
    """

    over: tuple[float, ...] = (0.0, 0.0, 0.0)
    deep: float = 0.0

    def command(self, t: float) -> Array:
        """Return speeds and turn, which are zero, and the shift of the base at t, s."""
        s = np.clip((t - OVER[0]) / (OVER[1] - OVER[0]), 0, 1)
        wave = (1 - np.cos(2 * np.pi * RATE * max(t - BEGINS, 0))) / 2
        shift = s**3 * (10 - 15 * s + 6 * s**2) * np.array(self.over)
        return np.array([0.0, 0.0, 0.0, *shift - [0, 0, self.deep * wave]])


def over_left_foot(robot: Walker) -> tuple[Task, mpc.Gait]:
    """Return a stand on the left foot, and the gait whose right foot swings for long."""
    feet = contact_groups_of(robot.system, robot.feet)
    places = [foot.frame.pose(robot.q0)[0].full().ravel() for foot in feet]
    left = int(np.argmax([place[1] for place in places]))
    middle = np.mean(places, axis=0)
    duty = 1 - FLIGHT / FOREVER
    offsets = tuple(
        0.0 if i in feet[left].members else duty - LIFT / FOREVER for i in range(len(robot.feet))
    )
    task = Still("one foot", 0.0, LIFT + 10.5, over=(0.0, places[left][1] - middle[1], 0.0))
    return task, mpc.Gait(FOREVER, duty, offsets)


def stands(recording: Recording, robot: Walker, task: Still) -> str:
    """Return how far a robot lifts a foot or goes down, and its largest lean; or that it fell."""
    t, q = recording.t, recording.q
    low = np.flatnonzero(q[:, 2] < FALLEN * q[0, 2])
    if low.size or recording.events:
        return f"fell after {t[low[0] if low.size else -1]:.1f} s | | "
    lean = np.abs(Rotation.from_quat(q[:, 3:7], scalar_first=True).as_euler("ZYX")[:, 1:]).max()
    if task.deep:
        return f"{np.ptp(q[t > 1 / RATE, 2]):.3f} m up and down | | {1e3 * lean:.0f}"
    feet = [robot.system.frame(foot.frame, foot.kind) for foot in robot.feet]
    heights = np.array(
        [[float(foot.pose(x)[0][2]) for foot in feet] for x in q[t > LIFT + 2][::50]]
    )
    rise = heights.max(axis=1).min()
    return f"a foot {rise:.3f} m up or more | | {1e3 * lean:.0f}"


def humanoid_rows(key: str, only: str) -> Iterator[str]:
    """Yield the lines of a humanoid in which a regular expression is found."""
    robot = walker(key, Ground())
    walks = [WALKS]
    for side, push in SIDES.items():
        walks.append(Task(f"walk, pushed from {side} by 0.5 N s/kg", 0.5, 8.0, **push))
    squat = Still("squat", 0.0, BEGINS + 3 / RATE, deep=DEEP)
    still, gait = over_left_foot(robot)
    for tasks, of_tasks, options in (
        (walks, walk_of(robot), PLAIN),
        ([still, squat], gait, SHIFT),
    ):
        names = {f"| {HUMANOIDS[key]} | {task.name} | level | whole body |": task for task in tasks}
        chosen = {name: task for name, task in names.items() if re.search(only, name)}
        if not chosen:
            continue
        with whole_body(robot, of_tasks, options=options) as loop:
            for name, task in chosen.items():
                yield f"{name} {cells(robot, task, loop)} |"


def cells(robot: Walker, task: Task, loop: tuple[InverseDynamicsQP, OuterLaw]) -> str:
    """Return what became of a task, as cells of the table."""
    if not isinstance(task, Still):
        return run(robot, task, loop)
    recording, solved = recorded(robot, task, loop)
    return f"{stands(recording, robot, task)} | {solved:.1%}"
