"""Derivatives of inverse and of constrained forward dynamics: generated C beside Pinocchio.

Ours is the C of an export, compiled with `FLAGS` and called by a C program that times itself,
caches warm. The peer is called from Python (`derivative_peers`), on the same tree and states:
`computeRNEADerivatives`, `computeABADerivatives`, and with contacts `constraintDynamics` with
`computeConstraintDynamicsDerivatives`. A body that several points hold is one six-dimensional
contact there. Beside the times are the operations written out, those of loops included, and the
seconds and the memory of the compiler.

Robots of others are timed where `MBCASADI_BENCH_MODELS` names a folder that has their files.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench.derivative_peers import SUMS_AGREE, Pinocchio, installed, median_time
from bench.dynamics_cases import CASES, Standing
from bench.formulation_cases import random_states
from bench.formulations import count_written_out
from bench.kernel_peers import NATIVE
from bench.programs import take_turns
from bench.rows import row
from mbcasadi.codegen.compiled_function import function_c
from mbcasadi.dynamics import forward_dynamics_derivatives, inverse_dynamics_derivatives
from mbcasadi.system import System, read_mjcf

FLAGS = ("-O2", "-march=native")
STATES = 16
SPREAD = 0.1  # of the states about the authored pose, rad or m

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
        for k, case in enumerate(cases):
            work = Path(folder) / str(k)
            work.mkdir()
            _add_case(results, case, work, rounds)
    return results


def _add_case(results: dict[str, Any], case: Standing, work: Path, rounds: int) -> None:
    """Add the rows of one case: of inverse dynamics where nothing is held, and of forward."""
    system = read_mjcf(case.spec())
    states = random_states(system, SPREAD, STATES)
    np.savetxt(work / "states.txt", states, fmt="%.17g")
    builds: dict[str, Callable[[], ca.Function]] = {}
    if not case.held:
        builds["inverse dynamics"] = partial(inverse_dynamics_derivatives, system)
    builds["forward dynamics"] = partial(forward_dynamics_derivatives, system)
    peer, times = _peer(case, system, states, rounds)
    for quantity, build in builds.items():
        function, label = build(), f"{case.name}, nv {system.nv}, nc {system.nc}"
        program, compiler = _compiled(function, work / quantity.split()[0])
        command = [str(program), str(work / "states.txt"), str(STATES), str(rounds)]
        ours = float(take_turns([command], 3)[0]["warm"])
        what = f"derivatives of {quantity}"
        results["rows"].append(row(label, what, ours, peer, times.get(quantity)))
        key = f"{label}: {what}"
        results["operations"][key] = count_written_out(function)
        results["compiler"][key] = f"{compiler.seconds:.1f} s, {compiler.megabytes:.0f} MB"


def _peer(
    case: Standing, system: System, states: NDArray[np.float64], rounds: int
) -> tuple[str, dict[str, float]]:
    """Return the peer's name and its times by quantity."""
    tree = system.tree
    assert tree is not None  # it was read from a model
    if not installed():
        return "Pinocchio (absent: install pin)", {}
    if system.nc and not case.held:
        return "- (Pinocchio's reader has no loops)", {}
    peer = Pinocchio(tree, case.held)
    q = states[0, : tree.nq]
    M = system.mass_matrix(q).full()
    dofs = [joint.dof for joint in tree.joints if joint.kind in ("slide", "hinge")]
    if not np.isclose(peer.inertia(tree, q), M[dofs, dofs].sum(), rtol=SUMS_AGREE):
        return "Pinocchio (computes another M: not compared)", {}
    calls = {"inverse dynamics": peer.inverse, "forward dynamics": peer.forward}
    name = f"Pinocchio {peer.version} from Python"
    return name, {
        quantity: median_time(make(tree, states), STATES, rounds)
        for quantity, make in calls.items()
    }


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
