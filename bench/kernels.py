"""M, h, frame Jacobians and J̇v in one call: generated C against MuJoCo's C and Pinocchio's C++.

All three are compiled programs that time themselves on the same states, so no Python is in the
figures, and every entry of what they compute is compared before the times are. "warm" calls the
kernel over and over and takes the shortest of many batches; "L2 swept" walks through 4 MiB before
each call and "last level swept" through more memory than the last-level cache holds, and take the
median. Each is the least of several turns. Ours and the peers' programs are compiled here with
`FLAGS`; MuJoCo's library is the one of its wheel. Further robots are read from the folder that
`MBCASADI_BENCH_MODELS` names.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from bench.kernel_peers import NATIVE, Peer, TimedModel, build_mujoco, build_pinocchio
from bench.kernel_states import numbers_of, random_states
from bench.programs import take_turns
from bench.robots import robot_path
from mbcasadi import mjcf, model, models
from mbcasadi.codegen.compiled_function import function_c
from mbcasadi.description import Frame, RigidTree

FLAGS = ("-O3", "-march=native")
STATES = 64
MOST_FRAMES = 4
QUANTITY = "M, h, J, J_dot_v"
AGREE = 1e-9  # of the largest entry; the peers compute the same numbers, or are not compared
NAMES = ("kernels", "casadi_f0", "double_")  # of the generated functions, clones included
CACHES = {"warm": "best", "L2 swept": "l2_swept", "last level swept": "evicted"}
ROUNDS, QUICK_ROUNDS = (200, 60, 3), (50, 20, 1)  # see `Rounds`
ROBOTS = (
    "men__franka_emika_panda__panda",
    "men__unitree_go2__go2",
    "men__unitree_h1__h1",
    "men__agility_cassie__cassie",
    "men__unitree_g1__g1",
)


@dataclass(frozen=True)
class Case:
    """A model and the frames whose Jacobians are timed; the ends of its branches if None."""

    path: Path
    frames: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Rounds:
    """How often each median samples, and how often the programs take turns."""

    warm: int
    evicted: int
    turns: int = 3


def default_cases() -> tuple[Case, ...]:
    """Return the models that come with the package, and the robots that are in the folder."""
    own = (
        Case(models.path("arm_gripper")),
        Case(models.path("quadruped"), ("FL", "FR", "RL", "RR")),
        Case(models.path("humanoid")),
    )
    found = [robot_path(f"{name}.xml") for name in ROBOTS]
    return (*own, *(Case(path) for path in found if path is not None))


def run(quick: bool = False, models: Sequence[str | Path] = ()) -> dict[str, Any]:
    """Time the kernels and return `{"rows", "flags", "operations", "code_bytes"}`.

    Args:
        quick: fewer samples.
        models: paths of further MJCF or URDF files.

    Returns:
        Rows with `model`, `quantity`, `ours`, `peer`, `peer_time`, `ratio`; times in seconds.
    """
    rounds = Rounds(*(QUICK_ROUNDS if quick else ROUNDS))
    cases = (*default_cases(), *(Case(Path(path)) for path in models))
    rows: list[dict[str, Any]] = []
    operations: dict[str, int] = {}
    code_bytes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        peers = (build_mujoco(work, FLAGS), build_pinocchio(work, FLAGS))
        for case in cases:
            problem = Problem.of(case, work)
            operations[problem.name] = problem.function.n_instructions()
            code_bytes[problem.name] = problem.code_bytes()
            rows += _rows(problem, rounds, peers)
    sizes = {"operations": operations, "code_bytes": code_bytes}
    return {"rows": rows, "flags": " ".join(FLAGS), **sizes}


@dataclass(frozen=True)
class Problem:
    """One model, ready to be timed."""

    name: str
    model: TimedModel
    function: ca.Function
    states: Path
    numbers: dict[str, np.ndarray]
    program: Path

    @staticmethod
    def of(case: Case, work: Path) -> "Problem":
        """Read the model, generate and compile its kernels, write random states."""
        tree = mjcf.read(case.path).tree
        frames = _frames(tree, case.frames)
        function = kernels(tree, frames)
        folder = work / f"{case.path.stem}_{len(list(work.iterdir()))}"
        folder.mkdir()
        states = random_states(tree, STATES)
        np.savetxt(folder / "states.txt", states, fmt="%.17g")
        return Problem(
            name=case.path.stem,
            model=TimedModel(case.path, tree, frames),
            function=function,
            states=folder / "states.txt",
            numbers=numbers_of(tree, function, states[0]),
            program=_compile(function, folder),
        )

    def agrees(self, printed: dict[str, Any]) -> bool:
        """Return whether a peer prints the same M, h, J and J_dot_v of slides and hinges."""
        return all(
            np.shape(printed.get(name, 0.0)) == own.shape
            and float(np.abs(own - printed[name]).max()) <= AGREE * float(np.abs(own).max())
            for name, own in self.numbers.items()
        )

    def code_bytes(self) -> int:
        """Return the size of the compiled function, or 0 where there is no `nm`."""
        if shutil.which("nm") is None:
            return 0
        command = ["nm", "-S", "--defined-only", str(self.program)]
        symbols = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
        sizes = [line.split() for line in symbols.splitlines()]
        return sum(int(size[1], 16) for size in sizes if size[-1].startswith(NAMES))


def kernels(tree: RigidTree, frames: Sequence[Frame]) -> ca.Function:
    """Return `kernels(q, v) → (M, h, J…, J_dot_v…)` with shared kinematics."""
    q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
    outputs = [model.mass_matrix(tree, q), model.bias_force(tree, q, v)]
    outputs += [model.frame_jacobian(tree, frame, q) for frame in frames]
    outputs += [model.frame_bias(tree, frame, q, v) for frame in frames]
    return ca.Function("kernels", [q, v], outputs, {"cse": True})


def _frames(tree: RigidTree, names: Sequence[str] | None) -> tuple[Frame, ...]:
    """Return the frames by name, or those of the bodies at the ends of the longest branches."""
    if names is not None:
        return tuple(next(f for f in tree.frames if f.name == name) for name in names)
    parents = {body.parent for body in tree.bodies}
    depths = [0]
    for body in tree.bodies[1:]:
        depths.append(depths[body.parent] + len(body.joints))
    ends = [i for i in range(1, len(tree.bodies)) if i not in parents and depths[i] > 0]
    ends = sorted(ends, key=lambda i: -depths[i])[:MOST_FRAMES]
    return tuple(f for f in tree.frames if f.kind == "body" and f.body in ends)


def _compile(function: ca.Function, folder: Path) -> Path:
    source, program = folder / "kernels.c", folder / "kernels"
    source.write_text(function_c(function), encoding="utf-8")
    compiler = os.environ.get("CC", "cc")
    command = [compiler, *FLAGS, f"-I{NATIVE}", str(source), str(NATIVE / "kernels_generated.c")]
    subprocess.run([*command, "-o", str(program), "-lm"], check=True)
    return program


def _rows(problem: Problem, rounds: Rounds, peers: Sequence[Peer]) -> list[dict[str, Any]]:
    commands = [_our_command(problem, rounds)]
    commands += [_peer_command(peer, problem, rounds) for peer in peers if peer.program]
    times = take_turns(commands, rounds.turns, np.min)
    ours, rows = times.pop(0), []
    for peer in peers:
        label, peer_times = peer.name, {}
        if peer.program is None:
            label = f"{peer.name} (absent: {peer.reason})"
        else:
            peer_times = times.pop(0)
            if not problem.agrees(peer_times):
                label, peer_times = f"{peer.name} (computes other numbers: not compared)", {}
        for caches, key in CACHES.items():
            time, our_time = peer_times.get(key), float(ours[key])
            rows.append(
                {
                    "model": f"{problem.name}, nv {problem.model.tree.nv}",
                    "quantity": f"{QUANTITY} ({caches})",
                    "ours": our_time,
                    "peer": label,
                    "peer_time": None if time is None else float(time),
                    "ratio": None if time is None else our_time / float(time),
                }
            )
    return rows


def _our_command(problem: Problem, rounds: Rounds) -> list[str]:
    tree = problem.model.tree
    sizes = [str(STATES), str(tree.nq), str(tree.nv)]
    counts = [str(rounds.warm), str(rounds.evicted)]
    return [str(problem.program), str(problem.states), *sizes, *counts]


def _peer_command(peer: Peer, problem: Problem, rounds: Rounds) -> list[str]:
    model_argument, frame_arguments = peer.model_input(problem.model, problem.states.parent)
    counts = [str(rounds.warm), str(rounds.evicted)]
    return [
        str(peer.program),
        model_argument,
        str(problem.states),
        str(STATES),
        *counts,
        *frame_arguments,
    ]
