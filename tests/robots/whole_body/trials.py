"""Robots that follow plans in MuJoCo, and what became of their tasks.

Generated C: mass +10 %, controls one tick late, plans one plan late, stock actuators.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.estimation import FirstEstimate, Footing
from mbcasadi.plant.contact_share import contact_step
from mbcasadi.plant.contacts import find_frame
from mbcasadi.validation import (
    OuterLaw,
    Recording,
    ReportOptions,
    Runnable,
    ScenarioOptions,
    Sensing,
    compile_controller,
    outer_law,
)
from robots import cassie, cassie_sensed, soles, trots
from robots.ground import Array, Ground
from robots.whole_body.leg_distance import legs_apart
from robots.whole_body.sensed import REST, estimate_cells, footing_of, sensing_of

HORIZON, PERIOD = 20, 0.02  # samples, s
PUSH, LASTS, IMPULSE = 3.0, 0.1, 1.0  # s, s, N s/kg
FULL = 2.0  # s, from when on the command is full
FALLEN = 0.6  # of the height at the start
UPRIGHT = 0.2  # rad, after a jump
PLAIN = mpc.WholeBodyOptions()
HUMANOIDS = {name.lower(): name for name in soles.HUMANOIDS}
SPRUNG = {"cassie": "Cassie"}  # with springs in its legs, which the law holds
QUADRUPEDS = {
    "own": "own quadruped",
    "go2": "Go2",
    "a1": "A1",
    "anymal": "ANYmal C",
    "spot": "Spot",
}

Loop = tuple[Runnable, OuterLaw]
"""Inverse dynamics, and what plans for it."""


class Walker(NamedTuple):
    """A robot on a ground: its model, where it stands, its feet."""

    model: mujoco.MjSpec
    system: mb.System
    q0: Array
    feet: list[mb.Contact]
    mass: float
    footing: Footing | None = None  # where its state is estimated
    law: InverseDynamicsQP | None = None  # where it is not the default one
    encoders: tuple[str, ...] | None = None  # its joints with encoders; None for all
    first: FirstEstimate = FirstEstimate()
    rest: Array | None = None  # where runs begin, where it is not q0

    def sensing(self, period: float) -> Sensing | None:
        """Return how its state is estimated."""
        if self.footing is None:
            return None
        start = self.q0 if self.rest is None else self.rest
        return sensing_of(
            self.system, self.feet, start, self.footing, period, self.encoders, self.first
        )

    @property
    def rests(self) -> float:
        """Time for which it stands before its task, s: where its state is estimated."""
        return 0.0 if self.footing is None else REST

    def delayed(self, gait: mpc.Gait | None) -> mpc.Gait | None:
        """Return a gait that starts when the task does."""
        return gait and replace(gait, start=gait.start + self.rests)


@dataclass(frozen=True)
class Task:
    """What a robot has to do.

    Attributes:
        name: for the table.
        speed: m/s.
        duration: s.
        turn: rad/s, from 10 s to 18 s.
        push: N s/kg to its left.
        ahead: N s/kg forward.
    """

    name: str
    speed: float
    duration: float
    turn: float = 0.0
    push: float = 0.0
    ahead: float = 0.0

    def command(self, t: float) -> Array:
        """Return the command (vx, vy, turn) at t, s."""
        speed = self.speed * np.clip((t - 0.5) / (FULL - 0.5), 0, 1)
        return np.array([speed, 0.0, self.turn * (10 <= t < 18)])


def described(key: str) -> tuple[mujoco.MjSpec, Array, list[str]]:
    """Return the model of a robot on a level ground, its pose there, and the sites of its feet."""
    if key in HUMANOIDS:
        return soles.on_soles(HUMANOIDS[key])
    if key in SPRUNG:
        return cassie.on_points()
    if key == "own":
        spec = mujoco.MjSpec.from_file(str(mb.models.path("quadruped")))
        level = np.array(mb.read_mjcf(spec).tree.keyframes["stand"], dtype=float)
        return spec, level, ["FL", "FR", "RL", "RR"]
    return *trots.model_on_floor(QUADRUPEDS[key]), [f"foot{k}" for k in range(4)]


def walker(key: str, ground: Ground, sensed: bool = False) -> Walker:
    """Return a robot that stands on a ground; `sensed` where an estimator gives its state."""
    spec, level, names = described(key)
    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            geom.quat = ground.quaternion
        if ground.friction is not None:
            geom.friction[0] = ground.friction
    model = spec.compile()
    places = [find_frame(model, name, "site") for name in names]
    spec.option.timestep = contact_step(model, level, places)
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
    mass = sum(body.mass for body in system.tree.bodies)
    footing = footing_of(spec.compile(), system, q0, feet) if sensed else None
    robot = Walker(spec, system, q0, feet, mass, footing)
    if key not in SPRUNG:
        return robot
    return robot._replace(
        law=cassie.law_below_plan(system, feet), encoders=cassie_sensed.read_joints(system),
        first=cassie_sensed.LEANS,
    )  # fmt: skip


def planned(
    robot: Walker,
    gait: mpc.Gait | None,
    samples: int = HORIZON,
    options: mpc.WholeBodyOptions = PLAIN,
    sides: int = 4,
) -> mpc.WholeBodyMPC:
    """Return MPC of the whole body of a robot."""
    feet = [replace(foot, sides=sides) for foot in robot.feet]
    return mpc.whole_body_mpc(
        robot.system, samples, PERIOD, feet, gait=robot.delayed(gait), q0=robot.q0, law=robot.law,
        options=options,
    )  # fmt: skip


@contextmanager
def compiled(wholes: Sequence[mpc.WholeBodyMPC]) -> Iterator[tuple[Runnable, list[OuterLaw]]]:
    """Yield the law, and plans with the references of each gait: of one problem, all as C."""
    with ExitStack() as stack:
        law = stack.enter_context(compile_controller(replace(wholes[0].law, delay=1)))
        outers = list[OuterLaw]()
        for whole in wholes:
            plan = outers[0].law if outers else whole.plan
            still = np.zeros(whole.references.numel_in("command"))
            outers.append(stack.enter_context(outer_law(plan, whole, still)))
        yield law, outers


@contextmanager
def whole_body(
    robot: Walker,
    gait: mpc.Gait | None,
    samples: int = HORIZON,
    options: mpc.WholeBodyOptions = PLAIN,
    sides: int = 4,
) -> Iterator[Loop]:
    """Yield inverse dynamics that follows plans of the whole body, both as C."""
    with compiled([planned(robot, gait, samples, options, sides)]) as (law, (outer,)):
        yield law, outer


@contextmanager
def rigid_body(robot: Walker, gait: mpc.Gait) -> Iterator[Loop]:
    """Yield inverse dynamics that follows plans of a rigid body, both as C."""
    begins = robot.delayed(gait) or gait
    below, above, planners = trots.rigid_body(robot.system, robot.feet, robot.q0, begins)
    with (
        compile_controller(below) as law,
        outer_law(above, planners["touch-down"], np.zeros(3)) as outer,
    ):
        yield law, outer


PLANNERS = {  # the second ones where forces lie along a face of the cone: uphill, in a bound
    "whole body": (whole_body, partial(whole_body, sides=8)),
    "rigid body": (rigid_body, rigid_body),
}


def recorded(robot: Walker, task: Task, loop: Loop) -> tuple[Recording, float]:
    """Return the recording of a task, and the share of its plans that have a solution."""
    law, outer = loop
    force = np.zeros(robot.system.nv)
    force[:2] = robot.mass * np.array([task.ahead, task.push]) / LASTS
    begins = robot.rests
    outer.command = lambda t: task.command(max(t - begins, 0.0))
    sensors = robot.sensing(law.controller.period)
    start = robot.q0 if robot.rest is None else robot.rest
    report = mb.validate(
        law, robot.model, begins + task.duration, q0=start, perturb={"mass": 0.1}, delay=1,
        disturbance=lambda t: force * (PUSH <= t - begins < PUSH + LASTS),
        scenario=ScenarioOptions(outer=outer), sensors=sensors,
        report=ReportOptions(explain=False, timing=False),
    )  # fmt: skip
    return report.runs[0].recording, float(np.mean(np.ravel(outer.record["status"]) <= 1))


def run(robot: Walker, task: Task, loop: Loop) -> str:
    """Return what became of a task, as cells of the table."""
    recording, solved = recorded(robot, task, loop)
    words = leap(recording, robot) if task.name == "jump" else figures(recording, robot, task)
    return with_estimate(f"{words} | {solved:.1%}", recording, robot)


def with_estimate(words: str, recording: Recording, robot: Walker) -> str:
    """Return cells of the table, with the errors of the estimate where there is one."""
    if robot.footing is None:
        return words
    return f"{words} | {estimate_cells(recording, robot.model.compile())}"


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
    t, q, v = recording.t - robot.rests, recording.q, recording.v
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
    apart = legs_apart(recording.q, robot.model.compile(), robot.feet)
    return f"{speed:.3f} | {turn} | {lean:.0f}{apart}"
