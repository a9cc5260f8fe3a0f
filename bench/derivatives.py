"""Derivatives of inverse and of constrained forward dynamics: generated C beside Pinocchio.

Ours is the C of an export, compiled with `FLAGS` and called by a C program that times itself,
caches warm. The peer is a C++ program on the same tree and states: `computeRNEADerivatives`,
`computeABADerivatives`, and with contacts `constraintDynamics` with
`computeConstraintDynamicsDerivatives`. A body that several points hold is one six-dimensional
contact there. Beside the times are the operations written out, those of loops included, and the
seconds and the memory of the compiler.

Robots of others are timed where `MBCASADI_BENCH_MODELS` names a folder that has their files.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench.dynamics_cases import CASES, Standing
from bench.formulation_cases import random_states
from bench.formulations import count_written_out
from bench.kernel_peers import NATIVE, Peer, TimedModel, build_pinocchio
from bench.programs import take_turns
from bench.rows import row
from mbcasadi.codegen.compiled_function import function_c
from mbcasadi.dynamics import forward_dynamics_derivatives, inverse_dynamics_derivatives
from mbcasadi.system import System, read_mjcf

FLAGS = ("-O2", "-march=native")
STATES = 16
SPREAD = 0.1  # of the states about the authored pose, rad or m
SUMS_AGREE = 1e-9  # relative, of the diagonal of M over slides and hinges
OF_PEER = {"inverse dynamics": "inverse", "forward dynamics": "derivatives"}

PANDA = Standing("Panda, free", "men__franka_emika_panda__panda.xml")


def default_cases() -> tuple[Standing, ...]:
    """Return those of `dynamics_cases` that are there, each one free before it stands."""
    cases = []
    for case in (*CASES, PANDA):
        if case.held:
            cases.append(replace(case, name=f"{case.name.split()[0]}, free", held={}))
        cases.append(case)
    return tuple(case for case in cases if case.path is not None)


def run(quick: bool = False) -> dict[str, Any]:
    """Time the derivatives; return `{"rows", "flags", "operations", "compiler"}`.

    Args:
        quick: fewer samples, and the first two models.
    """
    rounds = 20 if quick else 200
    cases = default_cases()[: 2 if quick else None]
    results: dict[str, Any] = {
        "rows": [],
        "flags": " ".join(FLAGS),
        "operations": {},
        "compiler": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        peer = build_pinocchio(Path(folder), FLAGS, "constrained_pinocchio")
        for k, case in enumerate(cases):
            work = Path(folder) / str(k)
            work.mkdir()
            _add_case(results, case, work, rounds, peer)
    return results


def _add_case(results: dict[str, Any], case: Standing, work: Path, rounds: int, peer: Peer) -> None:
    """Add the rows of one case: of inverse dynamics where nothing is held, and of forward."""
    system = read_mjcf(case.spec())
    states = random_states(system, SPREAD, STATES)
    np.savetxt(work / "states.txt", states, fmt="%.17g")
    builds: dict[str, Callable[[], ca.Function]] = {}
    if not case.held:
        builds["inverse dynamics"] = partial(inverse_dynamics_derivatives, system)
    builds["forward dynamics"] = partial(forward_dynamics_derivatives, system)
    sizes = [str(work / "states.txt"), str(STATES), str(rounds)]
    theirs = _peer_command(case, system, work, peer)
    for quantity, build in builds.items():
        function, label = build(), f"{case.name}, nv {system.nv}, nc {system.nc}"
        program, compiler = _compiled(function, work / quantity.split()[0])
        commands = [[str(program), *sizes]]
        if theirs:
            commands += [[*theirs, *sizes, case.of_peer or "-", OF_PEER[quantity]]]
        times = take_turns(commands, 3)
        what, name = f"derivatives of {quantity}", _name_of(peer, system, states, times[1:])
        peer_time = float(times[1]["warm"]) if name == peer.name else None
        results["rows"].append(row(label, what, float(times[0]["warm"]), name, peer_time))
        key = f"{label}: {what}"
        results["operations"][key] = count_written_out(function)
        results["compiler"][key] = f"{compiler.seconds:.1f} s, {compiler.megabytes:.0f} MB"


def _peer_command(case: Standing, system: System, work: Path, peer: Peer) -> list[str]:
    """Return the first words of the peer's call; none where it is absent or has loops to close."""
    tree = system.tree
    assert tree is not None  # it was read from a model
    if peer.program is None or (system.nc and not case.held):
        return []
    model = TimedModel(work / "states.txt", tree, case.frames(tree))
    return [str(peer.program), peer.model_input(model, work)[0]]


def _name_of(
    peer: Peer, system: System, states: NDArray[np.float64], times: Sequence[Mapping[str, Any]]
) -> str:
    """Return the peer's name, with the reason where it is not timed."""
    if peer.program is None:
        return f"{peer.name} (absent: {peer.reason})"
    if not times:
        return "- (Pinocchio's reader has no loops)"
    tree = system.tree
    assert tree is not None
    M = system.mass_matrix(states[0, : tree.nq]).full()
    dofs = [joint.dof for joint in tree.joints if joint.kind in ("slide", "hinge")]
    same = np.isclose(float(times[0]["sums"]), M[dofs, dofs].sum(), rtol=SUMS_AGREE)
    return peer.name if same else f"{peer.name} (computes another M: not compared)"


@dataclass(frozen=True)
class Compiler:
    """What the compiler took: CPU seconds, and its largest process in MB."""

    seconds: float
    megabytes: float


def _compiled(function: ca.Function, work: Path) -> tuple[Path, Compiler]:
    """Generate and compile a timing program of a Function."""
    source, program = work.with_suffix(".c"), work.with_suffix("")
    source.write_text(function_c(function), encoding="utf-8")
    command = [os.environ.get("CC", "cc"), *FLAGS, f"-I{NATIVE}", f"-DFUNCTION={function.name()}"]
    command += [str(source), str(NATIVE / "any_function.c"), "-o", str(program), "-lm"]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return program, Compiler(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
