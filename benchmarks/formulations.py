"""Constrained forward dynamics, its derivatives and inverse dynamics in generated C.

The peer is MuJoCo's `mj_forward` on the same states, which also finds contacts and solves its
soft constraints iteratively: it answers a larger question, so the ratio says what a controller
pays, not which code is better. Both are called from Python, which adds about 1 µs to each.
Beside the times stand the operations of each Function written out (`operations`): the size of
the derivatives must follow the Jacobian of inverse dynamics, not that of a linear solve.
"""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import mujoco
import numpy as np

import mujoco_models
from mbcasadi.dynamics import (
    FORMULATIONS,
    forward_dynamics,
    forward_dynamics_derivatives,
    inverse_dynamics,
)
from mbcasadi.system import System, read_mjcf

FLAGS = ("-O2", "-march=native")
MODELS = ("four_bar", "spatial_loop", "arm_gripper", "quadruped", "humanoid")
STATES = 16
SPREAD = 0.1  # of the states about the authored pose, rad or m


def run(quick: bool = False) -> dict[str, Any]:
    """Time the dynamics and return `{"rows": [...], "flags": ..., "operations": {...}}`."""
    rounds = 20 if quick else 200
    rows: list[dict[str, Any]] = []
    operations: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS[:2] if quick else MODELS:
            path = mujoco_models.path(name)
            system = read_mjcf(path)
            states = _states(system)
            peer_time = _peer_time(path, states, rounds)
            for quantity, function in functions(system).items():
                ours = _time(
                    _compiled(function, Path(folder) / f"{name}_{quantity}"), states, rounds
                )
                operations[f"{name}: {quantity}"] = written_out(function)
                rows.append(
                    {
                        "model": f"{name}, nv {system.nv}, nc {system.nc}",
                        "quantity": quantity,
                        "ours": ours,
                        "peer": "MuJoCo mj_forward",
                        "peer_time": peer_time,
                        "ratio": ours / peer_time,
                    }
                )
    return {"rows": rows, "flags": " ".join(FLAGS), "operations": operations}


def functions(system: System) -> dict[str, ca.Function]:
    """Return what is timed, by name; each takes (q, v, f) or (q, v, a)."""
    forward = {name: forward_dynamics(system, name) for name in FORMULATIONS}
    return forward | {
        "derivatives": forward_dynamics_derivatives(system),
        "inverse": inverse_dynamics(system),
    }


def written_out(function: ca.Function) -> int:
    """Return the number of operations with every loop and inner Function written out."""
    return int(function.expand().n_instructions())


def _states(system: System) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    assert system.tree is not None
    states = []
    for _ in range(STATES):
        q = system.integrate(system.tree.q0, SPREAD * rng.standard_normal(system.nv))
        states.append(
            (q.full().ravel(), rng.standard_normal(system.nv), rng.standard_normal(system.nv))
        )
    return states


def _compiled(function: ca.Function, folder: Path) -> ca.Function:
    folder.mkdir()
    generator = ca.CodeGenerator("dynamics.c")
    generator.add(function)
    generator.generate(f"{folder}/")
    library = folder / "dynamics.so"
    command = [
        "cc",
        *FLAGS,
        "-fPIC",
        "-shared",
        str(folder / "dynamics.c"),
        "-o",
        str(library),
        "-lm",
    ]
    subprocess.run(command, check=True)
    return ca.external(function.name(), str(library))


def _time(function: ca.Function, states: list[tuple[np.ndarray, ...]], rounds: int) -> float:
    """Return the median time of a call, in s, with no array made on the way."""
    buffer, call = function.buffer()
    inputs = [np.zeros(function.numel_in(i)) for i in range(function.n_in())]
    outputs = [np.zeros(function.nnz_out(i)) for i in range(function.n_out())]
    for i, array in enumerate(inputs):
        buffer.set_arg(i, memoryview(array))
    for i, array in enumerate(outputs):
        buffer.set_res(i, memoryview(array))

    def load(state: tuple[np.ndarray, ...]) -> None:
        for array, value in zip(inputs, state, strict=True):
            array[:] = value

    return _median(load, call, states, rounds)


def _peer_time(path: Path, states: list[tuple[np.ndarray, ...]], rounds: int) -> float:
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)

    def load(state: tuple[np.ndarray, ...]) -> None:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = state

    return _median(load, lambda: mujoco.mj_forward(model, data), states, rounds)


def _median(
    load: Callable[[tuple[np.ndarray, ...]], None],
    call: Callable[[], None],
    states: list[tuple[np.ndarray, ...]],
    rounds: int,
) -> float:
    times = []
    for _ in range(rounds):
        for state in states:
            load(state)
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return statistics.median(times)
