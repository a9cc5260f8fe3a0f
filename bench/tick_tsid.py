r"""TSID with eiquadprog on the same control problem, states and tree: a C++ program.

TSID 1.7.1 needs Pinocchio 3.4, other peers use a later one. So it is taken from an environment of
its own, whose folder `cmeel.prefix` the environment variable `MBCASADI_TSID_PREFIX` names:

    python -m venv tsid
    tsid/bin/pip install tsid==1.7.1 pin==3.4.0 \
        "cmeel-urdfdom<5" "cmeel-tinyxml2<11" "cmeel-eigen<5"
    export MBCASADI_TSID_PREFIX=$(echo $PWD/tsid/lib/python3*/site-packages/cmeel.prefix)

Its libraries are those of the wheels, which run on any processor of their kind, and the program is
compiled alike: with `-march=native` Eigen's alignment would be another one than theirs.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench import tick_cases
from bench.kernel_peers import (
    NATIVE,
    PINOCCHIO_DEFINES,
    TimedModel,
    compile_program,
    pinocchio_input,
)
from bench.tick_cases import TickCase
from mbcasadi.codegen.timing import SWEEP_BYTES
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.description import Frame
from mbcasadi.errors import SolverError

Array = NDArray[np.float64]

PREFIX = "MBCASADI_TSID_PREFIX"
FLAGS = ("-O3", "-DNDEBUG")
FLAGS_TEXT = f"{' '.join(FLAGS)}, with the libraries of the wheels as they are"
LIBRARIES = ("-ltsid", "-leiquadprog", "-lpinocchio_default")
INSTALL = 'install tsid==1.7.1 pin==3.4.0 "cmeel-urdfdom<5" "cmeel-tinyxml2<11" "cmeel-eigen<5"'
ABSENT = f"absent: {INSTALL} in an environment of its own, set {PREFIX} to its cmeel.prefix"

FORCE_WEIGHT = 1e-5  # of the contact forces, as in TSID's examples
SCALE = 1e4  # of equal costs: eiquadprog adds 1e-8 to the Hessian; above 1e5 it loses digits


@dataclass(frozen=True)
class Program:
    """The compiled program, or the reason why there is none."""

    name: str
    path: Path | None
    reason: str = ""

    @property
    def label(self) -> str:
        """Its name, and why it is absent."""
        return self.name if self.path else f"{self.name} ({self.reason})"


@dataclass(frozen=True)
class Record:
    """What one program does: (ticks,) s and status; (·, nv - 6) of the joints."""

    seconds: Array
    status: Array
    torques: Array
    accelerations: Array


def build(folder: Path) -> Program:
    """Compile the program; takes about half a minute."""
    prefix = Path(os.environ.get(PREFIX, ""))
    if PREFIX not in os.environ or not (prefix / "include" / "tsid").is_dir():
        return Program("TSID", None, ABSENT)
    name = f"TSID {_version(prefix)} + eiquadprog"
    headers = [prefix / "include", prefix / "include" / "eigen3", Path("/usr/include/eigen3")]
    program = folder / "tick_tsid"
    command = [os.environ.get("CXX", "c++"), "-std=c++17", *FLAGS, *PINOCCHIO_DEFINES]
    command += [f"-I{path}" for path in (NATIVE, *headers) if path.is_dir()]
    command += [str(NATIVE / "tick_tsid.cpp"), f"-L{prefix / 'lib'}", *LIBRARIES]
    command += [f"-Wl,-rpath,{prefix / 'lib'}", "-Wl,--allow-shlib-undefined", "-o", str(program)]
    reason = compile_program(command)
    return Program(name, None, reason) if reason else Program(name, program)


def _version(prefix: Path) -> str:
    """Return the version of the wheel whose files are in the prefix."""
    names = [path.name for path in prefix.parent.glob("tsid-*.dist-info")]
    return names[0].split("-")[1].removesuffix(".dist") if names else ""


@dataclass(frozen=True)
class Stance:
    """A robot's control problem, as TSID reads it.

    Attributes:
        case: the robot.
        controller: ours, whose limits, weights and tree are taken.
        q, v: (ticks, nq) and (ticks, nv) the states; the first pose is held.
    """

    case: TickCase
    controller: InverseDynamicsQP
    q: Array
    v: Array

    @property
    def of_joints(self) -> Array:
        """(nv - 6, nu): the joints' torques of the actuators' forces."""
        return np.array(self.controller.system.actuation(self.q[0]), dtype=float)[6:]

    def run(self, program: Path, *, equal: bool = False, evict: bool = False) -> Record:
        """Run the program over the states.

        Args:
            program: what `build` compiled.
            equal: with our cost of torques in place of TSID's cost of contact forces.
            evict: sweep the caches before each tick.

        Raises:
            SolverError: the program failed.
        """
        folder = program.parent
        tree_file, _ = pinocchio_input(self._model(), folder)
        problem, states, results = (folder / f"tsid.{end}" for end in ("txt", "states", "results"))
        problem.write_text("\n".join(_text(numbers) for numbers in self._numbers(equal=equal)))
        states.write_bytes(np.hstack([self.q, self.v]).tobytes())
        command = [str(program), tree_file, str(problem), str(states), str(results)]
        command += [str(len(self.q)), "1", str(SWEEP_BYTES if evict else 0)]
        process = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if process.returncode != 0:
            message = process.stderr[-300:]
            raise SolverError(f"{program.name} ended with {process.returncode}: {message}")
        na = self.controller.system.nv - 6
        values = np.fromfile(results).reshape(len(self.q), 2 + 2 * na)
        return Record(values[:, 0], values[:, 1], values[:, 2 : 2 + na], values[:, 2 + na :])

    def _model(self) -> TimedModel:
        tree, path = self.controller.system.tree, self.case.path
        assert tree is not None
        assert path is not None
        bodies = {frame.name: frame.body for frame in tree.frames if frame.kind == "body"}
        places = [(self.case.base, (0.0, 0.0, 0.0))]
        places += [(foot.body, foot.middle) for foot in self.case.feet]
        frames = tuple(
            Frame(body, "body", bodies[body], np.array(at), np.array([1.0, 0, 0, 0]))
            for body, at in places
        )
        return TimedModel(path, tree, frames)

    def _numbers(self, *, equal: bool) -> list[Array]:
        """Return the lines of the problem's file."""
        scale = SCALE if equal else 1.0
        weights = scale * np.array([tick_cases.BASE_WEIGHT, tick_cases.POSTURE_WEIGHT])
        cone = [tick_cases.FRICTION / np.sqrt(2.0), self.case.least_force]
        limits = self.of_joints @ self.controller.system.limits.ctrl
        torque_weights = self.of_joints @ self.controller.force_weights.actuators
        lines = [
            np.concatenate(
                [weights, [tick_cases.KP, tick_cases.KD], [0.0 if equal else FORCE_WEIGHT], cone]
            ),
            *limits.T,
            scale * torque_weights if equal else np.zeros(len(limits)),
            np.array([len(self.case.feet)]),
        ]
        for foot in self.case.feet:
            lines.append(np.concatenate([[len(foot.corners)], foot.corners.ravel()]))
        return [*lines, self.q[0]]


def _text(numbers: Array) -> str:
    return " ".join(f"{x:.17g}" for x in numbers)


def differences(stance: Stance, program: Path) -> dict[str, float]:
    """Return how far TSID's solutions are from ours, the largest over all ticks.

    Returns:
        "torque, N m": with our cost of torques; "motion": joint accelerations with either cost,
        relative to the largest one; "unsolved": number of ticks.
    """
    controller = stance.controller
    reference = controller.reference_at(stance.q[0])
    ours = [controller.solve(q, v, reference) for q, v in zip(stance.q, stance.v, strict=True)]
    torques = np.array([stance.of_joints @ tick.u for tick in ours])
    accelerations = np.array([tick.a[6:] for tick in ours])
    equal, usual = stance.run(program, equal=True), stance.run(program)
    motion = max(_gap(record.accelerations, accelerations) for record in (equal, usual))
    unsolved = sum(np.count_nonzero(record.status) for record in (equal, usual))
    return {
        "torque, N m": _gap(equal.torques, torques),
        "motion": motion / float(np.max(np.abs(accelerations))),
        "unsolved": float(unsolved + sum(tick.status != 0 for tick in ours)),
    }


def _gap(a: Array, b: Array) -> float:
    return float(np.max(np.abs(a - b)))
