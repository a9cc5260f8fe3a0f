"""Rows of humanoids: walk and turn, pushes from all sides, one foot, squats."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from mbcasadi import mpc
from mbcasadi.contacts.groups import contact_groups_of
from mbcasadi.validation import Recording
from robots.ground import Array, Ground
from robots.static_balance import Balance, static_balance
from robots.whole_body.leg_distance import legs_apart
from robots.whole_body.sensed import REST
from robots.whole_body.trials import (
    FALLEN,
    HUMANOIDS,
    PLAIN,
    SPRUNG,
    Loop,
    Task,
    Walker,
    compiled,
    planned,
    recorded,
    run,
    walker,
    whole_body,
    with_estimate,
)

STRIDE, STANCE, START = 0.72, 0.44, 0.6  # s
WALKS = Task("walk and turn", 0.5, 30.0, turn=0.3)
STANDING = Task("stand", 0.0, REST)
SIDES = {
    "the left": {"push": -0.5},
    "the right": {"push": 0.5},
    "behind": {"ahead": 0.5},
    "the front": {"ahead": -0.5},
}
OVER, LIFT, STANDS = (0.5, 2.5), 3.0, 30.0  # s: the base goes over a foot, the other lifts, the end
RISEN = 9.0  # s, when it is well off the ground
FLIGHT, FOREVER = 40.0, 200.0  # s, of its swing, and from one to the next
SHIFT = mpc.WholeBodyOptions(shift=True)
NEAR = 2.0  # 1/rad², of a pose on one foot, beside the share of the torques
MIDDLE = 0.25  # share of a sole about its middle, over which this pose is
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
        stands: numbers of the feet that stay on the ground.
        over: (6,) shift of the base in `OVER`, m, and its turn, rad.
        deep: of a squat, m.
    """

    stands: Sequence[int] = (0, 1)
    over: tuple[float, ...] = (0.0,) * 6
    deep: float = 0.0

    def command(self, t: float) -> Array:
        """Return speeds and turn, which are zero, and the shift of the base at t, s."""
        s = np.clip((t - OVER[0]) / (OVER[1] - OVER[0]), 0, 1)
        wave = (1 - np.cos(2 * np.pi * RATE * max(t - BEGINS, 0))) / 2
        shift = s**3 * (10 - 15 * s + 6 * s**2) * np.array(self.over)
        return np.array([0.0, 0.0, 0.0, *shift - [0, 0, self.deep * wave, 0, 0, 0]])


def over_left_foot(robot: Walker) -> tuple[Still, mpc.Gait]:
    """Return a stand on the left foot, and the gait whose right foot swings for long.

    Before the foot lifts the base leans over the middle of the other one, as static balance with
    little torque has it.
    """
    feet = contact_groups_of(robot.system, robot.feet)
    places = [foot.frame.pose(robot.q0)[0].full().ravel() for foot in feet]
    left = int(np.argmax([place[1] for place in places]))
    duty = 1 - FLIGHT / FOREVER
    offsets = tuple(
        0.0 if i in feet[left].members else duty - LIFT / FOREVER for i in range(len(robot.feet))
    )
    rest = static_balance(robot, (left,), near=NEAR, inner=MIDDLE, shifted=True)
    over = (0.0,) * 6
    if rest is not None:
        turn = attitude(rest.q) * attitude(robot.q0).inv()
        over = (*rest.q[:3] - robot.q0[:3], *turn.as_rotvec())
    return Still("one foot", 0.0, STANDS, stands=(left,), over=over), mpc.Gait(
        FOREVER, duty, offsets
    )


def attitude(q: Array) -> Rotation:
    """Return the rotation of the base."""
    return Rotation.from_quat(q[3:7], scalar_first=True)


def stands(recording: Recording, robot: Walker, task: Still) -> str:
    """Return how far a robot lifts a foot or goes down, and its largest lean; or that it fell."""
    t, q = recording.t - robot.rests, recording.q
    low = np.flatnonzero(q[:, 2] < FALLEN * q[0, 2])
    if low.size or recording.events:
        return f"fell after {t[low[0] if low.size else -1]:.1f} s | | "
    lean = np.abs(Rotation.from_quat(q[:, 3:7], scalar_first=True).as_euler("ZYX")[:, 1:]).max()
    ends = f"{1e3 * lean:.0f}{legs_apart(q, robot.model.compile(), robot.feet)}"
    if task.deep:
        return f"{np.ptp(q[t > 1 / RATE, 2]):.3f} m up and down | | {ends}"
    feet = [robot.system.frame(foot.frame, foot.kind) for foot in robot.feet]
    heights = np.array([[float(foot.pose(x)[0][2]) for foot in feet] for x in q[t > RISEN][::50]])
    rise = heights.max(axis=1).min()
    return f"a foot {rise:.3f} m up or more | | {ends}"


def excluded(balance: Balance | None) -> str:
    """Return why actuators or ranges exclude a rest, or nothing."""
    if balance is None:
        return "no rest found"
    if balance.missing > 1e-3:
        return f"excluded: centre of mass {1e3 * balance.missing:.0f} mm beside the foot at best"
    if balance.share > 1:
        return f"excluded: takes {balance.share:.2f} of the torque of {', '.join(balance.at_most)}"
    return ""


def humanoid_rows(key: str, only: str, sensed: bool = False) -> Iterator[str]:
    """Yield the lines of a humanoid in which a regular expression is found."""
    robot = walker(key, Ground(), sensed)
    walks = [WALKS]
    for side, push in SIDES.items():
        walks.append(Task(f"walk, pushed from {side} by 0.5 N s/kg", 0.5, 8.0, **push))
    still, lifts = over_left_foot(robot)
    squat = Still("squat", 0.0, STANDS, deep=DEEP)
    chosen = list[tuple[str, Task, mpc.Gait | None, mpc.WholeBodyOptions]]()
    for tasks, gait, options in (
        (walks, walk_of(robot), PLAIN),
        ([still], lifts, SHIFT),
        ([squat], None, SHIFT),
    ):
        for task in tasks:
            name = f"| {HUMANOIDS[key]} | {task.name} | level | whole body |"
            why = excluded(balance_of(robot, task)) if re.search(only, name) else ""
            if why:
                yield f"{name} {why} | | | |"
            elif re.search(only, name):
                chosen.append((name, task, gait, options))
    pairs = list(dict.fromkeys((gait, options) for _, _, gait, options in chosen))
    if not chosen:
        return
    with compiled([planned(robot, gait, options=options) for gait, options in pairs]) as loop:
        law, outers = loop
        for name, task, gait, options in chosen:
            yield f"{name} {cells(robot, task, (law, outers[pairs.index((gait, options))]))} |"


def sprung_rows(key: str, only: str, sensed: bool = False) -> Iterator[str]:
    """Yield the line of a robot with springs if a regular expression is found in it.

    By sensors it begins at rest on its springs: on the way an accelerometer shows no vertical.
    """
    name = f"| {SPRUNG[key]} | {WALKS.name} | level | whole body |"
    if re.search(only, name):
        robot = walker(key, Ground(), sensed)
        with whole_body(robot, walk_of(robot)) as loop:
            if sensed:
                stands, _ = recorded(robot._replace(footing=None), STANDING, loop)
                robot = robot._replace(rest=stands.q[-1])
            yield f"{name} {run(robot, WALKS, loop)} |"


def balance_of(robot: Walker, task: Task) -> Balance | None:
    """Return the rest that a task takes at its lowest or on its foot; of walks that of standing."""
    stands, deep = (task.stands, task.deep) if isinstance(task, Still) else ((0, 1), 0.0)
    return static_balance(robot, stands, lower=deep)


def cells(robot: Walker, task: Task, loop: Loop) -> str:
    """Return what became of a task, as cells of the table."""
    if not isinstance(task, Still):
        return run(robot, task, loop)
    recording, solved = recorded(robot, task, loop)
    return with_estimate(f"{stands(recording, robot, task)} | {solved:.1%}", recording, robot)
