"""Table of robots that walk by MPC of the whole body; quadrupeds by MPC of a rigid body beside it.

Generated C in MuJoCo: mass +10 %, controls one tick late, plans one plan late, stock actuators.

cd tests && python -m robots.whole_body [--models FOLDER] [--only REGEX] [own | go2 | … | g1 | …]
"""

import argparse
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.validation import (
    OuterLaw,
    Recording,
    ReportOptions,
    ScenarioOptions,
    compile_controller,
    outer_law,
)
from robots import models, soles, trots
from robots.ground import Array, Ground

HORIZON, PERIOD = 20, 0.02  # samples, s
PUSH, LASTS, IMPULSE = 3.0, 0.1, 1.0  # s, s, N s/kg
FULL = 2.0  # s, from when on the command is full
BLOCK = 0.03  # m
FALLEN = 0.6  # of the height at the start
UPRIGHT = 0.2  # rad, after a jump
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
WALK = mpc.Gait(0.72, 0.44 / 0.72, (0.0,) * 4 + (0.5,) * 4, start=0.6)
HUMANOIDS = {name.lower(): name for name in soles.HUMANOIDS}
QUADRUPEDS = {
    "own": "own quadruped",
    "go2": "Go2",
    "a1": "A1",
    "anymal": "ANYmal C",
    "spot": "Spot",
}


class Walker(NamedTuple):
    """A robot on a ground: its model, where it stands, its feet."""

    model: mujoco.MjSpec
    system: mb.System
    q0: Array
    feet: list[mb.Contact]
    mass: float


Loop = Callable[[Walker], AbstractContextManager[tuple[InverseDynamicsQP, OuterLaw]]]


@dataclass(frozen=True)
class Task:
    """What a robot has to do.

    Attributes:
        name: for the table.
        speed: m/s.
        duration: s.
        turn: rad/s, from 10 s to 18 s.
        push: N s/kg to its left.
    """

    name: str
    speed: float
    duration: float
    turn: float = 0.0
    push: float = 0.0

    def command(self, t: float) -> Array:
        """Return the command (vx, vy, turn) at t, s."""
        speed = self.speed * np.clip((t - 0.5) / (FULL - 0.5), 0, 1)
        return np.array([speed, 0.0, self.turn * (10 <= t < 18)])


WALKS = Task("walk and turn", 0.5, 30.0, turn=0.3)


def walker(key: str, ground: Ground) -> Walker:
    """Return a robot that stands on a ground."""
    names = [f"foot{k}" for k in range(4)]
    if key in HUMANOIDS:
        spec, level, names = soles.on_soles(HUMANOIDS[key])
    elif key == "own":
        spec = mujoco.MjSpec.from_file(str(mb.models.path("quadruped")))
        names = ["FL", "FR", "RL", "RR"]
        level = np.array(mb.read_mjcf(spec).tree.keyframes["stand"], dtype=float)
    else:
        spec, level = trots.model_on_floor(QUADRUPEDS[key])
    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            geom.quat = ground.quaternion
        if ground.friction is not None:
            geom.friction[0] = ground.friction
    system, up = mb.read_mjcf(spec), tuple(ground.rotation[:, 2])
    plane = next(g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_PLANE)
    for x in (1.5, 3.5) if ground.block else ():
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.5, 1.5, ground.block / 2],
            pos=[x, 0, ground.block / 2], friction=plane.friction, condim=3,
            contype=plane.contype, conaffinity=plane.conaffinity,
        )  # fmt: skip
    turn, q0 = Rotation.from_matrix(ground.rotation), level.copy()
    q0[:3] = turn.apply(level[:3])
    q0[3:7] = (turn * Rotation.from_quat(level[3:7], scalar_first=True)).as_quat(scalar_first=True)
    friction = 0.6 if ground.friction is None else ground.friction
    feet = [mb.Contact(name, friction=friction, normal=up, sides=4) for name in names]
    return Walker(spec, system, q0, feet, sum(body.mass for body in system.tree.bodies))


@contextmanager
def whole_body(
    robot: Walker,
    gait: mpc.Gait,
    samples: int = HORIZON,
    touch_down: mpc.TouchDown | None = None,
    sides: int = 4,
) -> Iterator[tuple[InverseDynamicsQP, OuterLaw]]:
    """Yield inverse dynamics that follows plans of the whole body, both as C."""
    options = mpc.WholeBodyOptions(touch_down=touch_down)
    feet = [replace(foot, sides=sides) for foot in robot.feet]
    whole = mpc.whole_body_mpc(
        robot.system, samples, PERIOD, feet, gait=gait, q0=robot.q0, options=options
    )
    with compile_controller(whole.law) as law, outer_law(whole.plan, whole, np.zeros(3)) as outer:
        yield law, outer


@contextmanager
def rigid_body(robot: Walker, gait: mpc.Gait) -> Iterator[tuple[InverseDynamicsQP, OuterLaw]]:
    """Yield inverse dynamics that follows plans of a rigid body, both as C."""
    below, above, planners = trots.rigid_body(robot.system, robot.feet, robot.q0, gait)
    with (
        compile_controller(below) as law,
        outer_law(above, planners["touch-down"], np.zeros(3)) as outer,
    ):
        yield law, outer


PLANNERS = {  # the second ones where forces lie along a face of the cone: uphill, in a bound
    "whole body": (whole_body, partial(whole_body, sides=8)),
    "rigid body": (rigid_body, rigid_body),
}


def run(robot: Walker, task: Task, loop: tuple[InverseDynamicsQP, OuterLaw]) -> str:
    """Return what became of a task, as cells of the table."""
    law, outer = loop
    side = np.eye(robot.system.nv)[1] * robot.mass * task.push / LASTS
    outer.command = task.command
    report = mb.validate(
        law, robot.model, task.duration, q0=robot.q0, perturb={"mass": 0.1}, delay=1,
        disturbance=lambda t: side * (PUSH <= t < PUSH + LASTS),
        scenario=ScenarioOptions(outer=outer), report=ReportOptions(explain=False),
    )  # fmt: skip
    recording, status = report.runs[0].recording, np.ravel(outer.record["status"])
    words = leap(recording, robot) if task.name == "jump" else figures(recording, robot, task)
    return f"{words} | {np.mean(status <= 1):.1%}"


def leap(recording: Recording, robot: Walker) -> str:
    """Return how high the lowest foot is at the top, and the lean at the end; or that it fell."""
    q, start = recording.q[-1], Rotation.from_quat(robot.q0[3:7], scalar_first=True)
    lean = np.linalg.norm((start.inv() * Rotation.from_quat(q[3:7], scalar_first=True)).as_rotvec())
    if recording.events or q[2] < 0.9 * robot.q0[2] or lean > UPRIGHT:
        return "fell | | "
    frames = [robot.system.frame(foot.frame, foot.kind) for foot in robot.feet]
    heights = [[float(f.pose(q)[0][2]) for f in frames] for q in recording.q[::10]]
    over = np.array(heights) - heights[0]
    return f"jumps {over.min(axis=1).max():.2f} m | | {1e3 * lean:.0f}"


def figures(recording: Recording, robot: Walker, task: Task) -> str:
    """Return speed and turn beside the command, the largest lean, and whether it fell."""
    t, q, v = recording.t, recording.q, recording.v
    up = Rotation.from_quat(robot.q0[3:7], scalar_first=True)
    attitude = (up.inv() * Rotation.from_quat(q[:, 3:7], scalar_first=True)).as_euler("ZYX")
    places, rates = up.inv().apply(q[:, :3]), up.inv().apply(v[:, :3])
    low = np.flatnonzero(places[:, 2] < FALLEN * places[0, 2])
    if low.size or recording.events:
        return f"fell after {t[low[0] if low.size else -1]:.1f} s | | "
    ahead = np.cos(attitude[:, 0]) * rates[:, 0] + np.sin(attitude[:, 0]) * rates[:, 1]
    full, turning = t > max(FULL + 1, t[-1] - 10), (t > 11) & (t < 18)
    speed, lean = ahead[full].mean(), 1e3 * np.abs(attitude[t > FULL, 1:]).max()
    yaw = np.unwrap(attitude[:, 0])
    turn = f"{np.ptp(yaw[turning]) / 7:.3f}" if task.turn else ""
    return f"{speed:.3f} | {turn} | {lean:.0f}"


def humanoid_rows(key: str) -> Iterator[str]:
    """Yield the lines of a humanoid."""
    robot, name = walker(key, GROUNDS["level"]), HUMANOIDS[key]
    with whole_body(robot, WALK) as loop:
        yield f"| {name} | walk and turn | level | whole body | {run(robot, WALKS, loop)} |"
        for push in (0.5, -0.5):
            task = Task(f"walk, pushed {push:+.1f} N s/kg", 0.5, 8.0, push=push)
            yield f"| {name} | {task.name} | level | whole body | {run(robot, task, loop)} |"


def quadruped_loops(key: str) -> Iterator[tuple[str, str, Walker, Loop, list[Task]]]:
    """Yield ground, planner, robot, controllers and tasks of the lines of a quadruped."""
    level, blocks = (walker(key, ground) for ground in (Ground(), Ground(block=BLOCK)))
    for rule, words in ((None, "by the gait"), (mpc.TouchDown(), "by measured touch-down")):
        make = partial(whole_body, gait=TROT, touch_down=rule)
        where, tasks = f"blocks of {100 * BLOCK:.0f} cm", [Task("trot at 0.5 m/s", 0.5, 9.0)]
        yield where, f"whole body, {words}", blocks, make, tasks
    jump = partial(whole_body, gait=JUMP, samples=LONG)
    yield "level", "whole body", level, jump, [Task("jump", 0.0, 4.0)]
    trots = [Task("trot and turn", 1.0, 30.0, turn=0.5)]
    trots += [Task(f"trot, pushed {push:+.0f} N s/kg", 1.0, 8.0, push=push) for push in (1.0, -1.0)]
    sloped, smooth = (walker(key, GROUNDS[ground]) for ground in ("slope 15°", "friction 0.4"))
    for planner, (make, along) in PLANNERS.items():
        yield "level", planner, level, partial(make, gait=TROT), trots
        yield "friction 0.4", planner, smooth, partial(make, gait=TROT), [Task("trot", 1.0, 10.0)]
        yield "slope 15°", planner, sloped, partial(along, gait=TROT), [Task("trot", 1.0, 10.0)]
        yield "level", planner, level, partial(along, gait=BOUND), [Task("bound", 1.0, 10.0)]
    for name, gait in GAITS.items():
        yield "level", "whole body", level, partial(whole_body, gait=gait), [Task(name, 0.5, 6.0)]


def quadruped_rows(key: str, only: str) -> Iterator[str]:
    """Yield the lines of a quadruped in which a regular expression is found."""
    for ground, planner, robot, make, tasks in quadruped_loops(key):
        names = [f"| {QUADRUPEDS[key]} | {task.name} | {ground} | {planner} |" for task in tasks]
        chosen = [pair for pair in zip(tasks, names, strict=True) if re.search(only, pair[1])]
        if chosen:
            with make(robot) as loop:
                for task, name in chosen:
                    yield f"{name} {run(robot, task, loop)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="robots.whole_body", description=__doc__)
    parser.add_argument(
        "robots", nargs="*", choices=[*QUADRUPEDS, *HUMANOIDS], default=[], help="all by default"
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="in lines of quadrupeds")
    models.add_argument(parser)
    options = parser.parse_args()
    chosen = options.robots or [*QUADRUPEDS, *HUMANOIDS]
    print("| robot | task | ground | planner | m/s | rad/s | leans, mrad | plans solved |")
    print("|---|---|---|---|---|---|---|---|")
    for key in chosen:
        for row in humanoid_rows(key) if key in HUMANOIDS else quadruped_rows(key, options.only):
            print(row, flush=True)


if __name__ == "__main__":
    main()
