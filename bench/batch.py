"""Many states at once, and many steps: `mb.batch` and compiled steps beside MuJoCo and CasADi.

Forward dynamics, s a state; steps of mechanisms with loops, s a step.
Ours and the peers take turns in one process, NumPy arrays in and out, and the best of the rounds is
given for each: other work of the machine lengthens some. A peer does what it can do in one call:

- `mujoco.rollout` takes whole steps (with actuators and integration, without contacts and limits);
- CasADi's `map` evaluates our Function; "compiled" is the same C by `ca.external`, in one thread.

Robots of others are timed where `MBCASADI_BENCH_MODELS` names a folder that has their files.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import casadi as ca
import mujoco
import numpy as np
from mujoco import rollout
from numpy.typing import NDArray

from bench.robots import G1, GO2, robot_path
from bench.rows import row
from mbcasadi import models
from mbcasadi.codegen import BatchBuild, batch
from mbcasadi.codegen.batches.batch import require_threads
from mbcasadi.codegen.batches.rank_decisions import decides_rank_below_float
from mbcasadi.codegen.compiled_function import compiled_function
from mbcasadi.codegen.precision import Real
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.errors import SolverError
from mbcasadi.simulation import fixed_step_fun
from mbcasadi.simulation.buffered_function import BufferedFunction
from mbcasadi.simulation.fixed_step import block_fun
from mbcasadi.system import System, read_mjcf

Array = NDArray[np.float64]

PACKAGE_MODELS = ("quadruped", "humanoid")
ROBOTS = (GO2, G1)
LOOPS = ("four_bar", "slider_crank", "planar_3rrr")
QUICK_LOOPS = LOOPS[:2]
STATES, ROUNDS = 2048, 8
QUICK_STATES, QUICK_ROUNDS = 256, 2
STEP, STEPS = 1e-3, 1000  # s
RUNS, STEPS_OF_RUN = 512, 10
SPREAD = 0.3  # of joint positions about the authored pose, rad or m
AGREEMENT = {"double": 1e-9, "float": 1e-2}  # relative, of accelerations, or times do not compare
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
FED_BACK = {f"{name}_next": name for name in ("q", "v", "act", "drift", "t")}


def run(quick: bool = False) -> dict[str, Any]:
    """Time batches and steps; `{"rows": [...], "lanes": ..., "compile_seconds": ...}`."""
    results: dict[str, Any] = {"rows": [], "lanes": {}, "compile_seconds": {}}
    further = [path for path in map(robot_path, ROBOTS) if path is not None]
    count, rounds = (QUICK_STATES, QUICK_ROUNDS) if quick else (STATES, ROUNDS)
    for path in (*(models.path(name) for name in PACKAGE_MODELS), *further):
        add_dynamics(results, path, count, rounds)
    for name in QUICK_LOOPS if quick else LOOPS:
        add_steps(results, models.path(name), rounds)
    return results


def add_dynamics(results: dict[str, Any], path: Path, count: int, rounds: int) -> None:
    """Add the rows of one mechanism's forward dynamics.

    Raises:
        SolverError: the batch and CasADi do not agree, so that times must not be compared.
    """
    system = read_mjcf(path)
    function = forward_dynamics(system)
    values = states(system, count)
    cores = require_threads(None)
    reals: tuple[Real, ...] = ("double", "float")
    if decides_rank_below_float(function):
        reals = ("double",)
    with tempfile.TemporaryDirectory(prefix="mbcasadi-bench-") as folder:
        batches = {
            (real, threads): batch(
                function, real=real, threads=threads, build=BatchBuild(folder=folder)
            )
            for real in reals
            for threads in sorted({1, cores})
        }
        ours = {key: _batch_call(b, values) for key, b in batches.items()}
        require_agreement(function, ours, values)
        peers = _dynamics_peers(path, function, values)
        times = best_times({**ours, **peers}, rounds)
    name = f"{path.stem}, nv {system.nv}"
    for real, threads in ours:
        own = times[real, threads] / count
        quantity = f"forward dynamics, {real}, {_threads(threads)}"
        alike = [peer for peer in peers if peer.endswith(_threads(threads))]
        results["rows"] += [row(name, quantity, own, peer, times[peer] / count) for peer in alike]
        key = f"{name}: {real}"
        results["lanes"][key] = batches[real, threads].lanes
        seconds = results["compile_seconds"].get(key, 0.0)
        results["compile_seconds"][key] = max(seconds, batches[real, threads].build.seconds)


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def states(system: System, count: int) -> tuple[Array, Array, Array]:
    """Return (count, nq), (count, nv), (count, nv): poses about the authored one, v and f."""
    rng = np.random.default_rng(0)
    q0 = authored_pose(system)
    xi, v, f = rng.normal(size=(3, count, system.nv))
    moved = system.integrate.map(count)(q0, SPREAD * xi.T)
    return np.ascontiguousarray(np.array(moved).T), v, f


def authored_pose(system: System) -> Array:
    """Return (nq,) the pose of the model's file."""
    return np.array(system.tree.q0 if system.tree else np.zeros(system.nq), dtype=float)


def require_agreement(
    function: ca.Function,
    ours: Mapping[Any, Callable[[], Any]],
    values: Sequence[Array],
) -> None:
    """Raise `SolverError` where a batch is not CasADi's evaluation."""
    few = [value[:8] for value in values]
    expected = np.array(function.map(8)(*(value.T for value in few))[0]).T
    for (real, threads), call in ours.items():
        miss = np.max(np.abs(call()["a"][:8] - expected)) / np.max(np.abs(expected))
        if not miss <= AGREEMENT[real]:
            raise SolverError(
                f"batch in {real}, {threads} threads: other accelerations ({miss:.0e})"
            )


def best_times(calls: Mapping[Any, Callable[[], Any]], rounds: int) -> dict[Any, float]:
    """Return the shortest time of each call, s.

    The calls take turns. The second one of a turn is timed, with what it uses in the caches.
    """
    best = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for key, call in calls.items():
            call()
            begin = time.perf_counter()
            call()
            best[key] = min(best[key], time.perf_counter() - begin)
    return best


def _batch_call(function: Any, values: Sequence[Array]) -> Callable[[], Any]:
    dtype = np.float32 if function.real == "float" else np.float64
    inputs = [value.astype(dtype) for value in values]
    out = function(*inputs)
    return lambda: function(*inputs, out=out)


def _dynamics_peers(
    path: Path, function: ca.Function, values: Sequence[Array]
) -> dict[str, Callable[[], Any]]:
    count = len(values[0])
    columns = [ca.DM(value.T) for value in values]
    plain, compiled = function.map(count), compiled_function(function).map(count)
    peers: dict[str, Callable[[], Any]] = {
        "casadi map, 1 thread": lambda: plain(*columns),
        "casadi map, compiled, 1 thread": lambda: compiled(*columns),
    }
    model = mujoco.MjModel.from_xml_path(str(path))
    for kind in ("CONTACT", "LIMIT", "FRICTIONLOSS"):
        model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{kind}")
    starts = mujoco_states(model, values[0], values[1])
    for threads in sorted({1, require_threads(None)}):
        peers[f"mujoco.rollout, {_threads(threads)}"] = rollout_call(model, starts, 1, threads)
    return peers


def mujoco_states(model: Any, q: Array, v: Array) -> Array:
    """Return MuJoCo's full states, one row each."""
    data = mujoco.MjData(model)
    rows = np.zeros((len(q), mujoco.mj_stateSize(model, STATE)))
    for k in range(len(q)):
        data.qpos[:], data.qvel[:] = q[k], v[k]
        mujoco.mj_getState(model, data, rows[k], STATE)
    return rows


def rollout_call(model: Any, starts: Array, steps: int, threads: int) -> Callable[[], Any]:
    """Return a call of MuJoCo's threaded rollout on memory of its own."""
    data = [mujoco.MjData(model) for _ in range(threads)]
    result = np.zeros((len(starts), steps, starts.shape[1]))
    runner = rollout.Rollout(nthread=threads if threads > 1 else 0)
    return lambda: runner.rollout(model, data, starts, nstep=steps, state=result)


def add_steps(results: dict[str, Any], path: Path, rounds: int) -> None:
    """Add the rows of fixed steps: blocks of `simulate_fixed_step`, and many runs in lanes."""
    system = read_mjcf(path)
    q0, v0 = authored_pose(system), np.zeros(system.nv)
    step = fixed_step_fun(system, STEP)
    block = block_fun(step, STEPS)
    compiled, plain = BufferedFunction(compiled_function(block)), BufferedFunction(block)
    many = batch(step, feedback=FED_BACK, threads=1)
    act, drift = np.zeros(system.na), np.zeros(2)
    mask, u = np.ones(system.nc), np.zeros(system.nu)
    start = (q0, v0, act, drift, np.zeros(STEPS), mask, u)
    starts = (np.tile(q0, (RUNS, 1)), v0, act, drift, 0.0, mask, u)
    ours: dict[str, tuple[Callable[[], Any], int]] = {
        "simulate_fixed_step, compiled": (lambda: compiled(*start), STEPS),
        "simulate_fixed_step": (lambda: plain(*start), STEPS),
        f"batch of {RUNS} runs": (lambda: many(*starts, steps=STEPS_OF_RUN), RUNS * STEPS_OF_RUN),
    }
    peers = {}
    for integrator in ("RK4", "EULER"):
        model = mujoco.MjModel.from_xml_path(str(path))
        model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
        model.opt.timestep = STEP
        states = mujoco_states(model, q0[None, :], v0[None, :])
        peers[f"mujoco.rollout, {integrator}"] = rollout_call(model, states, STEPS, 1)
    times = best_times({name: call for name, (call, _) in ours.items()} | peers, rounds)
    results["rows"] += [
        row(path.stem, f"step of {STEP:g} s, {name}", times[name] / n, peer, times[peer] / STEPS)
        for name, (_, n) in ours.items()
        for peer in peers
    ]
