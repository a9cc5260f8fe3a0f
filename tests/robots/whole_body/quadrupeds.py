"""Rows of quadrupeds: trot, bound, pushes, slopes, jumps, blocks; a rigid body's MPC beside."""

from collections.abc import Iterator

import numpy as np

from mbcasadi import mpc
from robots.ground import Ground
from robots.whole_body.trials import PLANNERS, QUADRUPEDS, Task, run, walker, whole_body

BLOCK = 0.03  # m
TROT, BOUND = (
    mpc.trot(0.4, duty=0.55, start=0.3),
    mpc.bound(0.4, duty=0.6, start=0.3),
)
FLIGHT, LONG = 0.5, 50  # s of a jump, and samples of a plan that sees it from crouch to landing
JUMP = mpc.pronk(4.0, duty=1 - FLIGHT / 4.0, start=1.2 + FLIGHT - 4.0)
GROUNDS = {
    "level": Ground(),
    "friction 0.4": Ground(friction=0.4),
    "slope 15°": Ground(slope=-np.deg2rad(15.0)),
}


def block_rows(key: str) -> Iterator[str]:
    """Yield the lines of a quadruped on blocks that it does not know, by schedule and by touch."""
    robot, task = walker(key, Ground(block=BLOCK)), Task("trot at 0.5 m/s", 0.5, 9.0)
    for rule, words in ((None, "by the gait"), (mpc.TouchDown(), "by measured touch-down")):
        with whole_body(robot, TROT, options=mpc.WholeBodyOptions(touch_down=rule)) as loop:
            where = f"blocks of {100 * BLOCK:.0f} cm"
            names = f"| {QUADRUPEDS[key]} | {task.name} | {where} | whole body, {words} |"
            yield f"{names} {run(robot, task, loop)} |"


def quadruped_rows(key: str) -> Iterator[str]:
    """Yield the lines of a quadruped."""
    yield from block_rows(key)
    for condition, ground in GROUNDS.items():
        robot = walker(key, ground)
        gaits = {"trot": TROT, "bound": BOUND} if condition == "level" else {"trot": TROT}
        for name, gait in gaits.items():
            tasks = [Task(name, 1.0, 10.0)]
            if condition == "level" and name == "trot":
                tasks = [Task("trot and turn", 1.0, 30.0, turn=0.5)]
                tasks += [
                    Task(f"trot, pushed {push:+.0f} N s/kg", 1.0, 8.0, push=push)
                    for push in (1.0, -1.0)
                ]
            if condition == "level" and name == "trot":
                with whole_body(robot, JUMP, LONG) as loop:
                    row = run(robot, Task("jump", 0.0, 4.0), loop)
                    yield f"| {QUADRUPEDS[key]} | jump, land, stand | level | whole body | {row} |"
            for planner, make in PLANNERS.items():
                with make(robot, gait) as loop:
                    for task in tasks:
                        names = f"| {QUADRUPEDS[key]} | {task.name} | {condition} | {planner} |"
                        yield f"{names} {run(robot, task, loop)} |"
