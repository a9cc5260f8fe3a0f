"""Constrained forward dynamics in every formulation, its derivatives and inverse dynamics, in C.

Each Function is generated, compiled with `FLAGS` and called by a C program that times itself,
caches warm, so that no Python is in the figures. On mechanisms the peer is MuJoCo's `mj_forward`
on the same states, without contacts, timed in C too: it solves its soft constraints iteratively,
so the ratio says what a controller pays, not which code is better. On random dense matrices,
which show how the formulations grow with the joints n and the rows m, the peer is `lagrange`.

Beside the times are the operations of each Function written out (`operations`) and the lines of
its C (`lines`). The size of the derivatives must follow the Jacobian of inverse dynamics, not that
of a linear solve.
"""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import mujoco
import numpy as np

from bench.formulation_cases import (
    MECHANISMS,
    VARIANTS,
    functions,
    on_matrices,
    random_matrices,
    random_states,
)
from bench.kernel_peers import NATIVE
from bench.programs import take_turns
from mbcasadi.description.loops import LOOPS
from mbcasadi.system import read_mjcf

FLAGS = ("-O2", "-march=native")
MODELS = tuple(MECHANISMS)
SIZES = ((6, 3), (12, 6), (24, 12), (48, 24), (24, 4), (24, 24))
"""Joints n and rows m of the random matrices: growth with n at m = n / 2, then with m."""
STATES = 16
SPREAD = 0.1  # of the states about the authored pose, rad or m
LARGEST_WRITTEN_OUT = 24  # joints; larger problems are not written out to be counted
PEER = "MuJoCo mj_forward"
REFERENCE = "lagrange"


@dataclass(frozen=True)
class Rounds:
    """How many passes over the states a median takes, and how often the programs take turns."""

    passes: int
    turns: int


def run(quick: bool = False) -> dict[str, Any]:
    """Time the formulations; return `{"rows", "flags", "operations", "lines"}`."""
    rounds = Rounds(passes=20, turns=1) if quick else Rounds(passes=200, turns=3)
    models, sizes = (MODELS[:2], SIZES[:1]) if quick else (MODELS, SIZES)
    results: dict[str, Any] = {"rows": [], "flags": " ".join(FLAGS), "operations": {}, "lines": {}}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name in models:
            _add(results, _mechanism(name, work / name.replace(" ", "_"), rounds))
        for n, m in sizes:
            _add(results, _matrices(n, m, work / f"matrices_{n}_{m}", rounds))
    return results


def count_written_out(function: ca.Function) -> int:
    """Return the number of operations with every loop and inner Function written out."""
    return int(function.expand().n_instructions()) + _in_loops(function)


def _in_loops(function: ca.Function) -> int:
    """Return the operations of the loops inside, which CasADi expands to a single call."""
    if not function.is_a("MXFunction"):
        return 0
    calls = (
        k for k in range(function.n_instructions()) if function.instruction_id(k) == ca.OP_CALL
    )
    return sum(_of_call(function.instruction_MX(k).which_function()) for k in calls)


def _of_call(function: ca.Function) -> int:
    if function.name() not in LOOPS:
        return _in_loops(function)
    kinds = (function.instruction_id(k) for k in range(function.n_instructions()))
    return sum(
        _of_node(function.instruction_MX(k))
        for k, kind in enumerate(kinds)
        if kind not in (ca.OP_INPUT, ca.OP_OUTPUT)
    )


def _of_node(node: ca.MX) -> int:
    """Return the operations of a matrix operation on the nonzeros of its arguments."""
    if not node.is_op(ca.OP_MTIMES):
        return int(node.nnz())
    left, right = node.dep(1).sparsity(), node.dep(2).sparsity()
    columns, rows = np.diff(left.colind()), np.bincount(right.row(), minlength=right.size1())
    return int(2 * columns @ rows)


@dataclass(frozen=True)
class Timed:
    """Programs on one problem: what they are, how large, and how long a call takes, in s."""

    label: str
    peer: str
    times: dict[str, float]
    peer_time: float
    operations: dict[str, int]
    lines: dict[str, int]


def _add(results: dict[str, Any], timed: Timed) -> None:
    for quantity, ours in timed.times.items():
        results["rows"].append(
            {
                "model": timed.label,
                "quantity": quantity,
                "ours": ours,
                "peer": timed.peer,
                "peer_time": timed.peer_time,
                "ratio": ours / timed.peer_time,
            }
        )
    for key in ("operations", "lines"):
        sizes: dict[str, int] = getattr(timed, key)
        results[key] |= {f"{timed.label}: {quantity}": size for quantity, size in sizes.items()}


def _mechanism(name: str, folder: Path, rounds: Rounds) -> Timed:
    folder.mkdir()
    spec = MECHANISMS[name].spec()
    system = read_mjcf(spec)
    states = folder / "states.txt"
    np.savetxt(states, random_states(system, SPREAD, STATES), fmt="%.17g")
    builds = functions(system, list(VARIANTS))
    programs = Programs.of({key: build() for key, build in builds.items()}, folder, written=True)
    model = folder / "model.xml"
    model.write_text(spec.to_xml())
    peer = [str(_compile_mujoco(folder)), str(model), str(states), str(STATES)]
    times = programs.times(states, rounds, [[*peer, str(rounds.passes)]])
    label = f"{name}, nv {system.nv}, nc {system.nc}"
    times_by_name = dict(zip(builds, times, strict=False))
    return Timed(label, PEER, times_by_name, times[-1], programs.operations, programs.lines)


def _matrices(n: int, m: int, folder: Path, rounds: Rounds) -> Timed:
    folder.mkdir()
    states = folder / "states.txt"
    np.savetxt(states, random_matrices(n, m, STATES), fmt="%.17g")
    built = {name: on_matrices(name, n, m) for name in VARIANTS}
    programs = Programs.of(built, folder, written=n <= LARGEST_WRITTEN_OUT)
    times_by_name = dict(zip(built, programs.times(states, rounds, []), strict=True))
    label = f"matrices, n {n}, m {m}"
    return Timed(
        label,
        REFERENCE,
        times_by_name,
        times_by_name[REFERENCE],
        programs.operations,
        programs.lines,
    )


@dataclass(frozen=True)
class Programs:
    """Compiled programs, the lines of their C and, where counted, their operations."""

    paths: tuple[Path, ...]
    lines: dict[str, int]
    operations: dict[str, int]

    @staticmethod
    def of(built: dict[str, ca.Function], folder: Path, *, written: bool) -> "Programs":
        """Generate and compile a timing program for each Function."""
        paths, lines = [], {}
        for k, (name, function) in enumerate(built.items()):
            source = folder / f"function_{k}.c"
            generator = ca.CodeGenerator(source.name)
            generator.add(function)
            text = generator.dump()
            source.write_text(text)
            lines[name] = text.count("\n")
            paths.append(_compile(source, function.name()))
        sizes = {name: count_written_out(f) for name, f in built.items()} if written else {}
        return Programs(tuple(paths), lines, sizes)

    def times(
        self, states: Path, rounds: Rounds, other_commands: Sequence[Sequence[str]]
    ) -> list[float]:
        """Return the median time of a call of each program, then of the other commands."""
        arguments = [str(states), str(STATES), str(rounds.passes)]
        commands = [[str(path), *arguments] for path in self.paths] + [
            list(command) for command in other_commands
        ]
        return [float(run["warm"]) for run in take_turns(commands, rounds.turns)]


def _compile(source: Path, function: str) -> Path:
    program = source.with_suffix("")
    command = [os.environ.get("CC", "cc"), *FLAGS, f"-I{NATIVE}", f"-DFUNCTION={function}"]
    command += [str(source), str(NATIVE / "any_function.c"), "-o", str(program), "-lm"]
    subprocess.run(command, check=True)
    return program


def _compile_mujoco(folder: Path) -> Path:
    package, program = Path(mujoco.__file__).parent, folder / "mujoco_forward"
    library = sorted(package.glob("libmujoco*"))[0]
    command = [os.environ.get("CC", "cc"), *FLAGS, f"-I{NATIVE}", f"-I{package / 'include'}"]
    command += [str(NATIVE / "mujoco_forward.c"), str(library), f"-Wl,-rpath,{package}"]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program
