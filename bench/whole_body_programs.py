r"""Peers on the recorded ticks of a trot: C++ programs.

Crocoddyl's FDDP has no limits, ProxDDP of aligator has those of ours. Crocoddyl 3.0.1 needs
Pinocchio 3.4, aligator 0.19 Pinocchio 4. So each is taken from an environment of its own, whose
folder `cmeel.prefix` an environment variable names:

    python -m venv crocoddyl
    crocoddyl/bin/pip install crocoddyl==3.0.1 pin==3.4.0 \
        "cmeel-urdfdom<5" "cmeel-tinyxml2<11" "cmeel-eigen<5"
    export MBCASADI_CROCODDYL_PREFIX=$(echo $PWD/crocoddyl/lib/python3*/site-packages/cmeel.prefix)
    python -m venv aligator
    aligator/bin/pip install libaligator==0.19.1 "cmeel-eigen<5"
    export MBCASADI_ALIGATOR_PREFIX=$(echo $PWD/aligator/lib/python3*/site-packages/cmeel.prefix)

Their libraries are those of the wheels, which run on any processor of their kind, and programs are
compiled alike: with `-march=native` Eigen's alignment would be another one than theirs. The step,
the rows and the cost for aligator are classes of the program's own, on its dynamics
(`native/aligator_trot.h`).
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.kernel_peers import (
    NATIVE,
    PINOCCHIO_DEFINES,
    TimedModel,
    compile_program,
    pinocchio_input,
)
from bench.programs import pinned
from bench.tick_tsid import Program
from bench.whole_body_cases import FRICTION, HEIGHT, PERIOD, SIDES, Record, Trot
from bench.whole_body_residual import Plan
from mbcasadi.description import Frame
from mbcasadi.errors import SolverError

Array = NDArray[np.float64]

FLAGS = ("-std=c++17", "-O3", "-w", "-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION")
NO_LIMIT = 1e9  # N m
FLAGS_TEXT = "-O3, with the libraries of the wheels as they are"


@dataclass(frozen=True)
class Peer:
    """A solver in C++.

    Attributes:
        name: what is printed.
        package: whose version it has.
        source: of the program.
        variable: environment variable with its prefix.
        install: what to install.
        libraries: to link with.
        limited: whether it has limits of torques and forces.
        defines: what its build sets.
        iterations: from a guess at most.
    """

    name: str
    package: str
    source: str
    variable: str
    install: str
    libraries: tuple[str, ...]
    limited: bool
    defines: tuple[str, ...] = ()
    iterations: int = 15

    def build(self, folder: Path) -> Program:
        """Compile the program; takes one to four minutes."""
        prefix = Path(os.environ.get(self.variable, ""))
        if self.variable not in os.environ or not (prefix / "include").is_dir():
            reason = f"absent: install {self.install} in an environment of its own, set "
            return Program(self.name, None, f"{reason}{self.variable} to its cmeel.prefix")
        versions = [path.name for path in prefix.parent.glob(f"{self.package}-*.dist-info")]
        version = versions[0].split("-")[1].removesuffix(".dist") if versions else ""
        name, program = f"{self.name} {version}".strip(), folder / self.source
        include = prefix / "include"
        headers = [NATIVE, include, include / "pinocchio/deprecated", include / "eigen3"]
        headers += [*include.glob("mimalloc-*"), Path("/usr/include/eigen3")]
        command = [os.environ.get("CXX", "c++"), *FLAGS, *PINOCCHIO_DEFINES, *self.defines]
        command += [f"-I{path}" for path in headers]
        command += [str(NATIVE / f"{self.source}.cpp"), f"-L{prefix / 'lib'}", *self.libraries]
        command += [f"-Wl,--disable-new-dtags,-rpath,{prefix / 'lib'}"]
        command += ["-Wl,--allow-shlib-undefined", "-o", str(program)]
        reason = compile_program(command)
        return Program(name, None, reason) if reason else Program(name, program)


CROCODDYL = Peer(
    "Crocoddyl",
    "crocoddyl",
    "whole_body_crocoddyl",
    "MBCASADI_CROCODDYL_PREFIX",
    'crocoddyl==3.0.1 pin==3.4.0 "cmeel-urdfdom<5" "cmeel-tinyxml2<11" "cmeel-eigen<5"',
    ("-lcrocoddyl", "-lpinocchio_default"),
    limited=False,
)
ALIGATOR = Peer(
    "aligator",
    "libaligator",
    "whole_body_aligator",
    "MBCASADI_ALIGATOR_PREFIX",
    'libaligator==0.19.1 "cmeel-eigen<5"',
    ("-laligator", "-lpinocchio_default", "-lfmt"),
    limited=True,
    defines=(
        "-DALIGATOR_ENABLE_TEMPLATE_INSTANTIATION",
        "-DALIGATOR_WITH_PINOCCHIO",
        "-DALIGATOR_PINOCCHIO_V4",
        "-DPINOCCHIO_WITH_COLLISION",
    ),
    iterations=40,
)


@dataclass(frozen=True)
class Answers:
    """What a program does at each tick and after each iteration from its guess.

    Attributes:
        seconds: (ticks, iterations) from the beginning.
        cost: (ticks, iterations) by its own reckoning.
        x, u: (ticks, iterations, N + 1, nx), (ticks, iterations, N, nu).
        rows: (ticks, iterations, N, nu + ng) multipliers of bounds and rows; none of no limits.
        motion: (ticks, N, nx) states that follow those of the guess.
    """

    seconds: Array
    cost: Array
    x: Array
    u: Array
    rows: Array
    motion: Array

    def plan(self, trot: Trot, record: Record, tick: int, iteration: int) -> Plan:
        """Return the plan after an iteration, with its multipliers where there are limits."""
        x, u, rows = (each[tick, iteration] for each in (self.x, self.u, self.rows))
        return trot.plan(record, tick, x, u, rows if rows.size else None)


def guesses(trot: Trot, record: Record) -> tuple[Array, Array]:
    """Return x (ticks, N + 1, nx) and u (ticks, N, nu) that the ticks begin with."""
    N, nx, nu, ticks = trot.intervals, trot.ocp.nx, trot.ocp.nu, len(record.tick)
    x, u = np.split(record.inputs["z"][:, : nx * (N + 1) + nu * N], [nx * (N + 1)], axis=1)
    return x.reshape(ticks, N + 1, nx), u.reshape(ticks, N, nu)


def run_program(
    program: Program, trot: Trot, record: Record, rows: Array, iterations: int, repeats: int
) -> Answers:
    """Run the program from the guesses of the ticks.

    Args:
        program: that is there.
        trot: the robot.
        record: the ticks.
        rows: (ticks, N, nu + ng) multipliers of bounds and rows in the guesses; (ticks, N, 0) of
            no limits.
        iterations: from each guess.
        repeats: the least time of so many is taken.

    Raises:
        SolverError: the program failed.
    """
    assert program.path is not None
    folder, tree = program.path.parent, trot.base_system.tree
    assert tree is not None
    assert trot.case.path is not None
    bodies = {frame.name: frame.body for frame in tree.frames if frame.kind == "body"}
    places = tuple(
        Frame(foot.body, "body", bodies[foot.body], np.array(foot.middle), np.array([1.0, 0, 0, 0]))
        for foot in trot.case.feet
    )
    tree_file, _ = pinocchio_input(TimedModel(trot.case.path, tree, places), folder)
    problem, ticks, results = (folder / f"trot.{end}" for end in ("txt", "ticks", "results"))
    to_joints, of_rows = of_joints(trot), _peer_rows(trot, rows.shape[2])
    multipliers = rows @ of_rows.T
    problem.write_text(_problem_text(trot, multipliers))
    _write_ticks(ticks, trot, record, multipliers)
    command = [str(program.path), tree_file, str(problem), str(ticks), str(results)]
    command += [str(iterations), str(repeats)]
    process = subprocess.run(
        [*pinned(), *command], capture_output=True, encoding="utf-8", check=False
    )
    if process.returncode != 0:
        message = process.stderr[-300:]
        raise SolverError(f"{program.name} ended with {process.returncode}: {message}")
    count, N, nx, nu = len(record.tick), trot.intervals, trot.ocp.nx, trot.ocp.nu
    numbers = np.fromfile(results)
    ends = np.cumsum([1, 1, nx * (N + 1), nu * N, N * len(of_rows)])
    iterates = numbers[: count * iterations * ends[-1]].reshape(count, iterations, ends[-1])
    seconds, cost, x, u, y = np.split(iterates, ends[:-1], axis=2)
    return Answers(
        seconds[..., 0],
        cost[..., 0],
        x.reshape(count, iterations, N + 1, nx),
        u.reshape(count, iterations, N, nu) @ np.linalg.inv(to_joints).T,
        y.reshape(count, iterations, N, len(of_rows)) @ of_rows,
        numbers[iterates.size :].reshape(count, N, nx),
    )


def of_joints(trot: Trot) -> Array:
    """(nv - 6, nu): the joints' torques of the controls."""
    return np.array(trot.base_system.actuation(trot.stand), dtype=float)[6:]


def _peer_rows(trot: Trot, count: int) -> Array:
    """(rows of peers, count): limits of joints' torques, then pyramids, which are our last rows."""
    if not count:
        return np.zeros((0, 0))
    nu, cones = trot.ocp.nu, SIDES * len(trot.case.feet)
    rows = np.zeros((nu + cones, count))
    rows[:nu, :nu] = of_joints(trot)  # a permutation
    rows[nu:, -cones:] = np.eye(cones)
    return rows


def _problem_text(trot: Trot, multipliers: Array) -> str:
    """Return the numbers of the problem."""
    joints = of_joints(trot)
    control = joints @ trot.weights["control"]  # a permutation
    most = np.abs(trot.base_system.limits.ctrl).max(axis=1)
    torque = joints @ np.minimum(most, NO_LIMIT)
    head = [trot.intervals, PERIOD, HEIGHT, FRICTION, len(trot.case.feet)]
    head += [len(multipliers), multipliers.shape[2]]
    rows = [head, trot.weights["state"], control, trot.weights["end"], torque]
    return "\n".join(" ".join(f"{x:.17g}" for x in row) for row in rows)


def _write_ticks(path: Path, trot: Trot, record: Record, rows: Array) -> None:
    """Write states, guesses and references of the ticks."""
    x, u = guesses(trot, record)
    numbers = []
    for k, tick in enumerate(record.tick):
        states, heights, on = trot.samples(int(tick))
        numbers += [record.inputs["q"][k], record.inputs["v"][k], x[k].ravel()]
        numbers += [(u[k] @ of_joints(trot).T).ravel(), rows[k].ravel()]
        numbers.append(np.hstack([states, heights, on]).ravel())
    path.write_bytes(np.concatenate(numbers).tobytes())
