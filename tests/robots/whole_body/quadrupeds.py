"""Rows of quadrupeds: trot, bound, pushes, slopes, jumps, blocks; a rigid body's MPC beside."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import numpy as np

from mbcasadi import mpc
from robots.ground import Ground
from robots.whole_body.trials import (
    PLANNERS,
    QUADRUPEDS,
    Loop,
    Task,
    Walker,
    run,
    walker,
    whole_body,
)

BLOCKS, SWING = (0.03, 0.06), 0.1  # m, and how high feet swing that may step on them
LANDS = mpc.TouchDown(speed=0.5, depth=0.1)
TROT, BOUND = (
    mpc.trot(0.4, duty=0.55, start=0.3),
    mpc.bound(0.4, duty=0.6, start=0.3),
)
FLIGHT, LONG = 0.4, 50  # s of a jump, and samples of a plan that sees it from crouch to landing
JUMP = mpc.pronk(4.0, duty=1 - FLIGHT / 4.0, start=1.2 + FLIGHT - 4.0)
GAITS = {
    "walk": mpc.walk(0.8, duty=0.8, start=0.4),
    "pace": mpc.pace(0.4, duty=0.6, start=0.4),
    "pronk": mpc.pronk(0.4, duty=0.7, start=0.4),
}
GROUNDS = {
    "level": Ground(),
    "friction 0.4": Ground(friction=0.4),
    "slope 15°": Ground(slope=-np.deg2rad(15.0)),
}

MakeLoop = Callable[[Walker], AbstractContextManager[Loop]]


def quadruped_loops(
    key: str, sensed: bool
) -> Iterator[tuple[str, str, Walker, MakeLoop, list[Task]]]:
    """Yield ground, planner, robot, controllers and tasks of the lines of a quadruped."""
    level = walker(key, Ground(), sensed)
    for rule, words in ((None, "by the gait"), (LANDS, "by measured touch-down")):
        options = mpc.WholeBodyOptions(touch_down=rule, swing_height=SWING)
        make = partial(whole_body, gait=TROT, options=options)
        tasks = [Task("trot at 0.5 m/s", 0.5, 9.0)]
        for block in BLOCKS:
            where, robot = (
                f"blocks of {100 * block:.0f} cm",
                walker(key, Ground(block=block), sensed),
            )
            yield where, f"whole body, {words}", robot, make, tasks
    jump = partial(whole_body, gait=JUMP, samples=LONG)
    yield "level", "whole body", level, jump, [Task("jump", 0.0, 4.0)]
    trots = [Task("trot and turn", 1.0, 30.0, turn=0.5)]
    trots += [Task(f"trot, pushed {push:+.0f} N s/kg", 1.0, 8.0, push=push) for push in (1.0, -1.0)]
    behind = partial(whole_body, gait=TROT, options=mpc.WholeBodyOptions(end="regulator"))
    yield "level", "whole body, regulator at the end", level, behind, trots
    sloped, smooth = (
        walker(key, GROUNDS[ground], sensed) for ground in ("slope 15°", "friction 0.4")
    )
    for planner, (make, along) in PLANNERS.items():
        yield "level", planner, level, partial(make, gait=TROT), trots
        yield "friction 0.4", planner, smooth, partial(make, gait=TROT), [Task("trot", 1.0, 10.0)]
        yield "slope 15°", planner, sloped, partial(along, gait=TROT), [Task("trot", 1.0, 10.0)]
        yield "level", planner, level, partial(along, gait=BOUND), [Task("bound", 1.0, 10.0)]
    for name, gait in GAITS.items():
        yield "level", "whole body", level, partial(whole_body, gait=gait), [Task(name, 0.5, 6.0)]


def quadruped_rows(key: str, only: str, sensed: bool = False) -> Iterator[str]:
    """Yield the lines of a quadruped in which a regular expression is found."""
    for ground, planner, robot, make, tasks in quadruped_loops(key, sensed):
        names = [f"| {QUADRUPEDS[key]} | {task.name} | {ground} | {planner} |" for task in tasks]
        chosen = [pair for pair in zip(tasks, names, strict=True) if re.search(only, pair[1])]
        if chosen:
            with make(robot) as loop:
                for task, name in chosen:
                    yield f"{name} {run(robot, task, loop)} |"
