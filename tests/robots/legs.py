"""Table of legged robots: generated C in MuJoCo, mass +10 %, one tick late.

cd tests && python -m robots.legs [--models FOLDER] [go2 | spot | soft | g1 | …]
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import NamedTuple

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.mpc import CaptureStep
from mbcasadi.validation import (
    CompiledLaw,
    ScenarioOptions,
    compile_controller,
    outer_law,
    reaction,
)
from robots import cassie, humanoid, models, quadrupeds, talos, trots, walking
from robots.ground import Ground
from robots.references import Array, Reference

PUSH = (2.0, 2.1)  # s
SETTLED = 0.5  # s, at the end of a run or of a second after the push
FALLEN = 0.8  # of the height at the start
TRUNK, COM = 3.0, 10.0  # mm
GROUNDS = {
    "level": Ground(),
    "slope 10°": Ground(slope=np.deg2rad(10.0)),
    "friction 0.3": Ground(friction=0.3),
}

CASSIE_PUSHES = {
    "level": None,
    "60 N forward": (0, 60.0),
    "60 N backward": (0, -60.0),
    "60 N sideways": (1, 60.0),
}


class Trial(NamedTuple):
    """One closed loop: the law, its plant and start, what it follows, what acts on it."""

    law: InverseDynamicsQP
    model: mujoco.MjSpec
    q0: Array
    reference: Reference
    mask: Reference | None = None
    push: tuple[int, float] | None = None
    duration: float = 6.0
    step: CaptureStep | None = None


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        robot, task, condition: what it does.
        steady: largest error in the last half second, mm; infinite after a fall.
        goal: mm.
        after: largest error from 2 s after the push on, mm; NaN without one.
        solved: share of ticks.
        beyond: largest excess of a joint over its range, rad.
    """

    robot: str
    task: str
    condition: str
    steady: float
    goal: float
    after: float
    solved: float
    beyond: float

    @property
    def reached(self) -> bool:
        """Return whether the goal is reached."""
        pushed = np.isnan(self.after) or self.after <= COM or self.goal < COM
        return bool(self.steady <= self.goal and pushed)

    def __str__(self) -> str:
        """Return the line in Markdown."""
        after = "" if np.isnan(self.after) else f"{self.after:.2f}"
        numbers = f"{self.steady:.2f} | {self.goal:g} | {after} | {self.solved:.1%}"
        verdict = "yes" if self.reached else "no"
        names = f"{self.robot} | {self.task} | {self.condition}"
        return f"| {names} | {numbers} | {1e3 * self.beyond:.2f} | {verdict} |"


def force(trial: Trial) -> Callable[[float], Array]:
    """Return the push on the base as a function of time."""
    axis, newton = trial.push or (0, 0.0)
    along = newton * np.eye(trial.law.system.nv)[axis]
    return lambda t: along * (PUSH[0] <= t < PUSH[1])


def run(names: tuple[str, str, str], trial: Trial, follows: str, goal: float, law=None) -> Row:
    """Return the row of a trial; `follows` is the slice of positions that is judged."""
    with nullcontext() if trial.step is None else reaction(*trial.step) as react:
        options = ScenarioOptions(mask=trial.mask, reaction=react)
        report = mb.validate(
            law or trial.law, trial.model, trial.duration, reference=trial.reference, q0=trial.q0,
            perturb={"mass": 0.1}, delay=1, disturbance=force(trial), scenario=options,
        )  # fmt: skip
    found = report.runs[0].recording
    wanted = np.array([trial.reference(t)[trial.law.reference_slices[follows]] for t in found.t])
    error = 1e3 * np.linalg.norm(places(trial.law, found.q, follows) - wanted, axis=1)
    fell = found.q[-1, 2] < FALLEN * trial.q0[2] or bool(found.events)
    error = np.where(fell, np.inf, error)
    after = error[found.t > PUSH[1] + 2.0].max() if trial.push else np.nan
    steady = error[found.t > found.t[-1] - SETTLED].max()
    solved = float(np.mean(found.status == 0))
    return Row(*names, steady, goal, after, solved, excess(trial.law, found.q))


def places(law: InverseDynamicsQP, q: Array, follows: str) -> Array:
    """Return the base's positions (n, 3), or those of the centre of mass."""
    if not follows.startswith("com"):
        return q[:, :3]
    rest = np.zeros(law.system.nv)
    return np.array([np.array(law.system.center_of_mass(each, rest)[0]).ravel() for each in q])


def excess(law: InverseDynamicsQP, q: Array) -> float:
    """Return by how much a joint with a limit went beyond its range."""
    joints = law.limited_joints
    if joints is None:
        return 0.0
    angles = q[:, list(joints.places)]
    return float(max(0.0, (angles - joints.upper).max(), (joints.lower - angles).max()))


def quadruped_rows(name: str, quadruped: quadrupeds.Quadruped) -> Iterator[Row]:
    """Yield the rows of Go2 or Spot."""
    for condition, ground in GROUNDS.items():
        stand = quadrupeds.standing(quadruped, ground)
        with compile_controller(stand.law) as law:
            for task in ("stands", "moves", "lifts"):
                followed = getattr(quadrupeds, task)(stand)
                reference, mask = followed if task == "lifts" else (followed, None)
                trial = Trial(stand.law, stand.model, stand.q0, reference, mask)
                names = (name, task, condition)
                yield run(names, trial, "trunk.position", TRUNK, law)
                for newton in (100.0, -100.0) if condition == "level" and task != "lifts" else ():
                    pushed = trial._replace(push=(1, newton))
                    names = (name, task, f"{newton:+.0f} N sideways")
                    yield run(names, pushed, "trunk.position", TRUNK, law)
            if condition == "level":
                yield from pushed_on_three_feet(name, stand, law)


def pushed_on_three_feet(name: str, stand: quadrupeds.Stand, law: CompiledLaw) -> Iterator[Row]:
    """Yield the rows of a robot that holds a foot up and is pushed; it may put the foot down."""
    step, duration = quadrupeds.catches(stand), 7.0
    reference, mask = quadrupeds.lifts(stand, lowered=2 * duration)
    for axis, word in ((1, "sideways"), (0, "forward")):
        for newton in (100.0, -100.0, 150.0, -150.0):
            push = (axis, newton)
            trial = Trial(stand.law, stand.model, stand.q0, reference, mask, push, duration, step)
            names = (name, "on three feet", f"{newton:+.0f} N {word}")
            yield run(names, trial, "trunk.position", TRUNK, law)


def soft_rows() -> Iterator[Row]:
    """Yield the rows of quadrupeds whose feet are soft in MuJoCo."""
    for name, quadruped in quadrupeds.SOFT.items():
        stand = quadrupeds.standing(quadruped, GROUNDS["level"])
        trial = Trial(stand.law, stand.model, stand.q0, quadrupeds.stands(stand), duration=30.0)
        yield run((name, "stands, 30 s", "level"), trial, "trunk.position", TRUNK)


def talos_rows() -> Iterator[Row]:
    """Yield the row of Talos with the friction of all its joints in the law."""
    law, model, q0 = talos.standing()
    rest = law.reference_at(q0)
    trial = Trial(law, model, q0, lambda _: rest)
    yield run(("Talos", "stands", "friction of all joints"), trial, "com.position", COM)


def humanoid_rows() -> Iterator[Row]:
    """Yield the rows of G1 on its soles."""
    stand = humanoid.standing()
    with compile_controller(stand.law) as law:
        for task in ("squats", "moves_arms"):
            for axis, condition in ((None, "level"), (0, "60 N forward"), (1, "60 N sideways")):
                push = None if axis is None else (axis, 60.0)
                reference = getattr(humanoid, task)(stand)
                trial = Trial(stand.law, stand.model, stand.q0, reference, push=push)
                names = ("G1", task.replace("_", " "), condition)
                yield run(names, trial, "com.position", COM, law)
        reference, mask = humanoid.balances(stand)
        trial = Trial(stand.law, stand.model, stand.q0, reference, mask, duration=23.0)
        yield run(("G1", "one foot, 20 s", "level"), trial, "com.position", COM, law)


def cassie_rows() -> Iterator[Row]:
    """Yield the rows of Cassie."""
    stand, model, q0 = cassie.standing()
    rest = stand.reference_at(q0)
    with compile_controller(stand) as law:
        for task, reference in (("stands", lambda _: rest), ("squats", cassie.squats(stand, q0))):
            for condition, push in CASSIE_PUSHES.items():
                trial = Trial(stand, model, q0, reference, push=push, duration=7.0)
                names = ("Cassie", task, condition)
                yield run(names, trial, "pelvis.position", TRUNK, law)


def walk(duration: float = 30.0) -> Iterator[str]:
    """Yield what became of G1's walk at 0.5 m/s with a turn, for each planner."""
    robot = walking.walk()
    with compile_controller(robot.law) as law:
        for name, planner in robot.planners.items():
            with outer_law(robot.mpc, planner, walking.command) as outer:
                options = ScenarioOptions(outer=outer)
                recording = (
                    mb.validate(
                        law, robot.model, duration, q0=robot.q0, perturb={"mass": 0.1}, delay=1,
                        scenario=options,
                    )
                    .runs[0]
                    .recording
                )  # fmt: skip
            low = np.flatnonzero(recording.q[:, 2] < FALLEN * robot.q0[2])
            upright = recording.t[low[0] if low.size else -1]
            figures = walking.figures(recording)
            yield f"G1 walks, {name}: upright for {upright:.1f} s of {duration:g} s, {figures}"


def trot(duration: float = 3.0) -> Iterator[str]:
    """Yield how light quadrupeds that trot bear a push sideways, for each planner."""
    for name in trots.ROBOTS:
        robot = trots.trots(name)
        with compile_controller(robot.law) as law:
            for key, planner in robot.planners.items():
                with outer_law(robot.mpc, planner, [0.0, 0.0, 0.0]) as outer:
                    report = mb.validate(
                        law, robot.model, duration, q0=robot.q0, perturb={"mass": 0.1}, delay=1,
                        disturbance=robot.push, scenario=ScenarioOptions(outer=outer),
                    )  # fmt: skip
                found = report.runs[0].recording
                stands = found.q[-1, 2] > FALLEN * robot.q0[2]
                yield (
                    f"{name} trots, {key}: leans {trots.lean(found):.0f} mrad, solved "
                    f"{np.mean(found.status == 0):.2%}, {'stays up' if stands else 'falls'}"
                )


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "go2": lambda: quadruped_rows("Go2", quadrupeds.GO2),
    "spot": lambda: quadruped_rows("Spot", quadrupeds.SPOT),
    "soft": soft_rows,
    "g1": humanoid_rows,
    "talos": talos_rows,
    "cassie": cassie_rows,
}


LINES: dict[str, Callable[[], Iterator[str]]] = {"trot": trot, "walk": walk}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="robots.legs", description=__doc__)
    parser.add_argument("rows", nargs="*", choices=["all", *PARTS, *LINES], default="all")
    models.add_argument(parser)
    chosen = parser.parse_args().rows
    print(
        "| robot | task | condition | steady, mm | goal | after push, mm | solved | over, mrad | |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, rows in PARTS.items():
        if "all" in chosen or name in chosen:
            for row in rows():
                print(row, flush=True)
    for name, lines in LINES.items():
        if "all" in chosen or name in chosen:
            for line in lines():
                print(line, flush=True)


if __name__ == "__main__":
    main()
