"""Peers of the control tick: other QP solvers, on our condensed problem and on the usual form.

eiquadprog, the solver of TSID, is timed in a C++ program; quadprog and ProxQP through their
Python modules, whose calls cost about a microsecond. TSID's whole tick is in `tick_tsid.py`.
"""

import importlib.util
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.tick_full_form import Quadratic

Array = NDArray[np.float64]

NATIVE = Path(__file__).parent / "native"
CXX_FLAGS = ("-std=c++17", "-O3", "-march=native", "-DNDEBUG")
UNBOUNDED = 1e20  # bounds beyond are none
REPEATS = 5
PROXQP_ACCURACY = 1e-9
PEERS = ("eiquadprog", "quadprog", "proxsuite")


@dataclass(frozen=True)
class SolverTimes:
    """Median time of one QP, s, and the solutions; nothing, and why, where it is absent."""

    name: str
    median: float | None = None
    solutions: tuple[Array, ...] = ()


def from_least_distance(A: Array, lower: Array, upper: Array) -> list[Quadratic]:
    """Return `min ½ xᵀx, lower <= A x <= upper` for every tick, rows without a bound dropped.

    eiquadprog needs one size for all ticks: a row that has a bound at any tick has one always.
    """
    n = A.shape[2]
    low, high = np.any(lower > -UNBOUNDED, axis=0), np.any(upper < UNBOUNDED, axis=0)
    none, bound = np.zeros((0, n)), np.zeros(0)
    problems = []
    for a, lo, up in zip(A, lower, upper, strict=True):
        CI, ci = np.vstack([a[low], -a[high]]), np.concatenate([-lo[low], up[high]])
        problems.append(
            Quadratic(np.eye(n), np.zeros(n), none, bound, CI, ci, np.eye(n), np.zeros(n))
        )
    return problems


def solvers(problems: Sequence[Quadratic], only: Sequence[str] = PEERS) -> list[SolverTimes]:
    """Time the installed ones of these solvers on the problems."""
    results = [_eiquadprog(problems)] if "eiquadprog" in only else []
    modules: tuple[tuple[str, str, Callable[[Quadratic], Callable[[], Array]]], ...] = (
        ("quadprog", "quadprog, Python", _quadprog),
        ("proxsuite", "ProxQP, Python", _proxqp),
    )
    for module, name, make in modules:
        if module not in only:
            continue
        if importlib.util.find_spec(module) is None:
            results.append(SolverTimes(f"{name} (absent: install {module})"))
        else:
            results.append(_time_solver(name, make, problems))
    return results


def _time_solver(
    name: str, make: Callable[[Quadratic], Callable[[], Array]], problems: Sequence[Quadratic]
) -> SolverTimes:
    seconds, solutions = [], []
    for problem in problems:
        solve = make(problem)
        begin = time.perf_counter()
        solutions.append(solve())
        seconds.append(time.perf_counter() - begin)
    return SolverTimes(name, float(np.median(seconds)), tuple(solutions))


def _quadprog(problem: Quadratic) -> Callable[[], Array]:
    """Goldfarb and Idnani's dual method: `Cᵀ x >= b`, equalities first."""
    import quadprog

    C = np.ascontiguousarray(np.vstack([problem.CE, problem.CI]).T)
    b = -np.concatenate([problem.ce, problem.ci])
    return lambda: np.asarray(quadprog.solve_qp(problem.H, -problem.g, C, b, len(problem.ce))[0])


def _proxqp(problem: Quadratic) -> Callable[[], Array]:
    """ProxQP's dense solver, cold."""
    from proxsuite import proxqp

    solver: Any = proxqp.dense.QP(len(problem.g), len(problem.ce), len(problem.ci))
    solver.settings.eps_abs = PROXQP_ACCURACY
    equalities = (problem.CE, -problem.ce) if len(problem.ce) else (None, None)
    solver.init(problem.H, problem.g, *equalities, problem.CI, -problem.ci)

    def solve() -> Array:
        solver.solve()
        return np.array(solver.results.x)

    return solve


def _eiquadprog(problems: Sequence[Quadratic]) -> SolverTimes:
    name = "eiquadprog, C++"
    prefix = _prefix()
    if prefix is None or not (prefix / "include" / "eiquadprog").is_dir():
        return SolverTimes(f"{name} (absent: install eiquadprog)")
    with tempfile.TemporaryDirectory(prefix="mbcasadi-eiquadprog-") as folder:
        program = Path(folder, "qp_eiquadprog")
        reason = _build(prefix, program)
        if reason:
            return SolverTimes(f"{name} (absent: {reason})")
        return _run(name, program, problems)


def _run(name: str, program: Path, problems: Sequence[Quadratic]) -> SolverTimes:
    sizes_of = problems[0]
    sizes = (len(sizes_of.g), len(sizes_of.ce), len(sizes_of.ci), len(problems), REPEATS)
    source, target = program.with_suffix(".in"), program.with_suffix(".out")
    arrays = [
        np.asarray(array).ravel(order="F")
        for p in problems
        for array in (p.H, p.g, p.CE, p.ce, p.CI, p.ci)
    ]
    source.write_bytes(np.concatenate(arrays).tobytes())
    command = [str(program), str(source), str(target), *map(str, sizes)]
    process = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if process.returncode != 0:
        return SolverTimes(f"{name} (absent: its program ended with status {process.returncode})")
    results = np.fromfile(target).reshape(len(problems) * REPEATS, 2 + len(sizes_of.g))
    failed = int(np.count_nonzero(results[:, 1]))
    label = f"{name}, {failed} of {len(results)} failed" if failed else name
    return SolverTimes(label, float(np.median(results[:, 0])), tuple(results[: len(problems), 2:]))


def _prefix() -> Path | None:
    """Return the folder in which the wheels of the Pinocchio family put their headers."""
    spec = importlib.util.find_spec("cmeel")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parents[1] / "cmeel.prefix"


def _build(prefix: Path, program: Path) -> str:
    """Compile the program; return "" or why it failed."""
    headers = [prefix / "include", prefix / "include" / "eigen3", Path("/usr/include/eigen3")]
    command = [os.environ.get("CXX", "c++"), *CXX_FLAGS]
    command += [f"-I{path}" for path in headers if path.is_dir()]
    command += [str(NATIVE / "qp_eiquadprog.cpp"), f"-L{prefix / 'lib'}", "-leiquadprog"]
    command += [f"-Wl,-rpath,{prefix / 'lib'}", "-o", str(program)]
    try:
        process = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    except OSError as error:
        return f"no C++ compiler: {error.strerror}"
    errors = [line for line in process.stderr.splitlines() if "error" in line]
    reason = errors[0] if errors else process.stderr[-200:]
    return "" if process.returncode == 0 else f"does not compile: {reason}"
