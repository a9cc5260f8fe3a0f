"""Constrained forward dynamics as a user calls it, in C, against Pinocchio's constraintDynamics.

`forward_dynamics(system)` with its default arguments is generated, compiled with `FLAGS` and timed
by a C program on closed poses, caches warm. The peer is a C++ program on the same tree, states and
forces; it holds a foot of one point by three rows and a sole by six, where our model has three rows
for each point. Both must find the same accelerations, or they are not compared. Loops between
bodies of a model are timed without a peer.

Robots of others are timed where the environment variable `MBCASADI_BENCH_MODELS` names a folder
that has their files.
"""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from bench.dynamics_cases import CASES, Standing
from bench.kernel_peers import NATIVE, Peer, TimedModel, build_pinocchio
from bench.programs import measure
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.system import System, read_mjcf

FLAGS = ("-O3", "-march=native")
QUANTITY = "forward dynamics"
STATES = 16
TURNS = 5
PEER_STATES = "peer_states.txt"
AGREE = 1e-6  # relative; the proximal step of the peer leaves 1e-8


@dataclass(frozen=True)
class Problem:
    """A mechanism, its compiled dynamics and the states on which it is timed."""

    case: Standing
    system: System
    function: ca.Function
    program: Path
    states: Path
    sum: float


def run(quick: bool = False) -> dict[str, Any]:
    """Time the cases; return `{"rows", "flags", "operations", "lines"}`."""
    passes, cases = (20, CASES[:1]) if quick else (200, CASES)
    results: dict[str, Any] = {"rows": [], "flags": " ".join(FLAGS), "operations": {}, "lines": {}}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        peer = build_pinocchio(work, FLAGS, "constrained_pinocchio")
        for k, case in enumerate(case for case in cases if case.path is not None):
            problem = _problem(case, work / str(k))
            row = _row(problem, peer, passes)
            results["rows"].append(row)
            results["operations"][row["model"]] = int(problem.function.expand().n_instructions())
            text = problem.program.with_suffix(".c").read_text(encoding="utf-8")
            results["lines"][row["model"]] = text.count("\n")
    return results


def _problem(case: Standing, folder: Path) -> Problem:
    folder.mkdir()
    system = read_mjcf(case.spec())
    function = forward_dynamics(system)
    states = closed_states(system)
    np.savetxt(folder / "states.txt", states, fmt="%.17g")
    np.savetxt(folder / PEER_STATES, with_passive_force(system, states), fmt="%.17g")
    source = folder / "forward.c"
    generator = ca.CodeGenerator(source.name)
    generator.add(function)
    source.write_text(generator.dump())
    program = source.with_suffix("")
    command = [os.environ.get("CC", "cc"), *FLAGS, f"-I{NATIVE}", f"-DFUNCTION={function.name()}"]
    command += [str(source), str(NATIVE / "any_function.c"), "-o", str(program), "-lm"]
    subprocess.run(command, check=True)
    first = _sum_of_joints(system, function, states[0])
    return Problem(case, system, function, program, folder / "states.txt", first)


def closed_states(system: System) -> np.ndarray:
    """Return (STATES, nq + 2 nv) closed poses, velocities that keep them closed, and forces."""
    rng, rows = np.random.default_rng(0), []
    poses = [q for q, _ in system.scales.states]
    for k in range(STATES):
        q = poses[k % len(poses)]
        A = system.loop_jacobian(q).full()
        v = rng.standard_normal(system.nv)
        v -= np.linalg.lstsq(A, A @ v, rcond=1e-8)[0]
        rows.append(np.concatenate([np.ravel(q), v, rng.standard_normal(system.nv)]))
    return np.array(rows)


def with_passive_force(system: System, states: np.ndarray) -> np.ndarray:
    """Return the states with springs and dampers among the forces, which the peer leaves out."""
    rows = states.copy()
    for row in rows:
        q, v, f = np.split(row, [system.nq, system.nq + system.nv])
        f += system.passive_force(q, v).full().ravel()
    return rows


def _sum_of_joints(system: System, function: ca.Function, state: np.ndarray) -> float:
    """Return the sum of the accelerations of slides and hinges."""
    assert system.tree is not None
    q, v, f = np.split(state, [system.nq, system.nq + system.nv])
    a = function(q, v, f)[0].full().ravel()
    dofs = [joint.dof for joint in system.tree.joints if joint.kind in ("slide", "hinge")]
    return float(a[dofs].sum())


def _row(problem: Problem, peer: Peer, passes: int) -> dict[str, Any]:
    """Return the row of one case, the programs by turns; the smallest of the medians."""
    ours = [str(problem.program), str(problem.states), str(STATES), str(passes)]
    theirs = _peer_command(problem, peer, passes)
    runs = [(measure(ours), measure(theirs) if theirs else {}) for _ in range(TURNS)]
    time = min(float(run["warm"]) for run, _ in runs)
    label, peer_time = peer.name, None
    if peer.program is None:
        label = f"{peer.name} (absent: {peer.reason})"
    elif not theirs:
        label = "-"
    elif not np.isclose(float(runs[0][1]["sums"]), problem.sum, rtol=AGREE):
        label = f"{peer.name} (computes another motion: not compared)"
    else:
        peer_time = min(float(run["warm"]) for _, run in runs)
    system = problem.system
    return {
        "model": f"{problem.case.name}, nv {system.nv}, nc {system.nc}",
        "quantity": QUANTITY,
        "ours": time,
        "peer": label,
        "peer_time": peer_time,
        "ratio": None if peer_time is None else time / peer_time,
    }


def _peer_command(problem: Problem, peer: Peer, passes: int) -> list[str]:
    """Return the peer's call, or none where it is absent or has nothing to hold."""
    tree, case = problem.system.tree, problem.case
    if peer.program is None or not case.held or tree is None:
        return []
    model = TimedModel(problem.states, tree, case.frames(tree))
    tree_file, _ = peer.model_input(model, problem.states.parent)
    states = problem.states.with_name(PEER_STATES)
    sizes = (str(STATES), str(passes))
    return [str(peer.program), tree_file, str(states), *sizes, case.of_peer, "dynamics"]
