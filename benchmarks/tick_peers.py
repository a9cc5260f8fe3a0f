"""Peers of the control tick: TSID with eiquadprog for all of it, QP solvers for their part.

TSID is used from C++, the Python modules of its wheel need another Pinocchio than their own.
It solves its own form of the same task: unknowns (a, f), the dynamics as equalities, the same
trunk and posture tasks, contacts, friction and torque limits. Its headers are looked for beside
this Python's packages, or in the folder that the environment's `MBCASADI_TSID_PREFIX` names.

The QP solvers get the least-distance problems that our own controller poses, through their
Python modules, whose calls cost about a microsecond.
"""

import importlib.util
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.timing import SWEEP_BYTES

Array = NDArray[np.float64]

NATIVE = Path(__file__).parent / "native"
TSID = "TSID + eiquadprog, C++"
CXX_FLAGS = ("-std=c++17", "-O3", "-march=native", "-DNDEBUG")
# What Pinocchio's own build sets, so that its list of joints fits into Boost's variant.
DEFINES = ("-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30")
LIBRARIES = ("-ltsid", "-lpinocchio_default", "-lpinocchio_parsers", "-leiquadprog")
UNBOUNDED = 1e20  # bounds beyond are none
REPEATS, EVICTED = 5, 200
MOST_PROBLEMS = 300
ACCURACY = 1e-6  # an answer that violates a row by more is no answer


@dataclass(frozen=True)
class PeerTimes:
    """Times of a whole tick, s; empty, with the reason in the name, where it is absent."""

    name: str
    times: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class SolverTimes:
    """Median time of one QP, s, or None with the reason in the name."""

    name: str
    median: float | None


def whole_tick(model: Path, q: Array, v: Array, *, quick: bool = False) -> PeerTimes:
    """Time TSID's tick over the same record, or say why not."""
    prefix = _tsid_prefix()
    if prefix is None:
        return PeerTimes(f"{TSID} (absent: install tsid, or set MBCASADI_TSID_PREFIX)")
    with tempfile.TemporaryDirectory(prefix="mbcasadi-tsid-") as folder:
        program, reason = _build_tsid(prefix, Path(folder))
        if program is None:
            return PeerTimes(f"{TSID} (absent: {reason})")
        found = {}
        for caches, ticks, repeats, sweep in (
            ("warm", len(q), 1 if quick else REPEATS, 0),
            ("evicted", min(EVICTED, len(q)), 1, SWEEP_BYTES),
        ):
            times, reason = _run_tsid(program, model, (q[:ticks], v[:ticks]), repeats, sweep)
            if times is None:
                return PeerTimes(f"{TSID} (absent: {reason})")
            found[caches] = times
    return PeerTimes(TSID, found)


def least_distance(A: Array, lower: Array, upper: Array) -> list[SolverTimes]:
    """Time each installed QP solver on the problems (ticks, m, n), (ticks, m), (ticks, m)."""
    keep = slice(0, MOST_PROBLEMS)
    problems = list(zip(A[keep], lower[keep], upper[keep], strict=True))
    solvers: dict[str, Callable[..., Any]] = {"quadprog": _quadprog, "proxsuite": _proxqp}
    found = []
    for module, make in solvers.items():
        name = {"quadprog": "quadprog (Goldfarb-Idnani)", "proxsuite": "ProxQP"}[module]
        if importlib.util.find_spec(module) is None:
            found.append(SolverTimes(f"{name} (absent: install {module})", None))
            continue
        found.append(_timed(name, make, problems))
    return found


def _timed(name: str, make: Callable[..., Any], problems: list[tuple[Array, ...]]) -> SolverTimes:
    seconds, wrong = [], 0
    for A, lower, upper in problems:
        solve = make(A, lower, upper)
        begin = time.perf_counter()
        x = solve()
        seconds.append(time.perf_counter() - begin)
        size = ACCURACY * max(1.0, float(np.max(np.abs(x))))
        wrong += bool(np.any(A @ x > upper + size) or np.any(A @ x < lower - size))
    label = f"{name}, {wrong} of {len(problems)} wrong" if wrong else name
    return SolverTimes(label, float(np.median(seconds)))


def _quadprog(A: Array, lower: Array, upper: Array) -> Callable[[], Array]:
    """Goldfarb and Idnani's dual method: `min ½ xᵀ x, Cᵀ x >= b`."""
    import quadprog

    low, high = lower > -UNBOUNDED, upper < UNBOUNDED
    C = np.ascontiguousarray(np.vstack([A[low], -A[high]]).T)
    b = np.concatenate([lower[low], -upper[high]])
    H, g = np.eye(A.shape[1]), np.zeros(A.shape[1])
    return lambda: np.asarray(quadprog.solve_qp(H, g, C, b)[0])


def _proxqp(A: Array, lower: Array, upper: Array) -> Callable[[], Array]:
    """ProxQP's dense solver, cold, to 1e-9."""
    from proxsuite import proxqp

    m, n = A.shape
    solver = proxqp.dense.QP(n, 0, m)
    solver.settings.eps_abs = 1e-9
    low, high = np.clip(lower, -UNBOUNDED, UNBOUNDED), np.clip(upper, -UNBOUNDED, UNBOUNDED)
    solver.init(np.eye(n), np.zeros(n), None, None, A, low, high)

    def solve() -> Array:
        solver.solve()
        return np.asarray(solver.results.x)

    return solve


def _tsid_prefix() -> Path | None:
    wanted = os.environ.get("MBCASADI_TSID_PREFIX", "")
    spec = importlib.util.find_spec("cmeel")
    folders = [Path(wanted)] if wanted else []
    if spec is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parents[1] / "cmeel.prefix")
    return next((f for f in folders if (f / "include" / "tsid").is_dir()), None)


def _build_tsid(prefix: Path, folder: Path) -> tuple[Path | None, str]:
    """Compile the program; takes about two minutes."""
    own = importlib.util.find_spec("cmeel")
    beside = Path(own.origin).parents[1] / "cmeel.prefix" if own and own.origin else prefix
    headers = [prefix / "include", prefix / "include" / "urdfdom"]
    headers += [p / "include" / "eigen3" for p in (prefix, beside)] + [Path("/usr/include/eigen3")]
    program = folder / "tick_tsid"
    command = [os.environ.get("CXX", "c++"), *CXX_FLAGS, *DEFINES]
    command += [f"-I{path}" for path in headers if path.is_dir()]
    command += [str(NATIVE / "tick_tsid.cpp"), f"-L{prefix / 'lib'}", *LIBRARIES]
    command += [f"-Wl,-rpath,{prefix / 'lib'}", "-o", str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return None, f"no C++ compiler: {error.strerror}"
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    reason = "does not compile: " + (errors[0] if errors else done.stderr[-200:])
    return (program, "") if done.returncode == 0 else (None, reason)


def _run_tsid(
    program: Path, model: Path, record: tuple[Array, Array], repeats: int, sweep: int
) -> tuple[Array | None, str]:
    """Run the program on the record; q and v in Pinocchio's order: x y z w, base axes."""
    from scipy.spatial.transform import Rotation

    q, v = (values.copy() for values in record)
    q[:, 3:7] = q[:, [4, 5, 6, 3]]
    v[:, :3] = Rotation.from_quat(q[:, 3:7]).inv().apply(v[:, :3])
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "inputs"), Path(folder, "results")
        source.write_bytes(np.ascontiguousarray(np.hstack([q, v])).tobytes())
        numbers = [str(n) for n in (len(q), repeats, sweep)]
        command = [str(program), str(model), str(source), str(target), *numbers]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, f"its program ended with status {done.returncode}"
        results = np.fromfile(target).reshape(-1, 2)
    failed = int(np.count_nonzero(results[:, 1]))
    if failed:
        return None, f"failed on {failed} of {len(results)} ticks"
    return results[:, 0].copy(), ""
