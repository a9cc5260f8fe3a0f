"""OSQP on the condensed QPs of a closed loop, each warm from the solution before."""

import importlib.util
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.benchmarks import tick_peers

Array = NDArray[np.float64]

OSQP_ACCURACY = 1e-6


def osqp_times(A: Array, lower: Array, upper: Array) -> tick_peers.SolverTimes:
    """Time OSQP, set up once for a matrix that stays: each solution is the start of the next."""
    if importlib.util.find_spec("osqp") is None:
        return tick_peers.SolverTimes("OSQP (absent: install osqp)")
    osqp: Any = importlib.import_module("osqp")
    sparse: Any = importlib.import_module("scipy.sparse")
    n = A.shape[2]
    accuracy = {"eps_abs": OSQP_ACCURACY, "eps_rel": OSQP_ACCURACY, "max_iter": 100_000}
    solver = osqp.OSQP()
    solver.setup(
        sparse.eye(n, format="csc"),
        np.zeros(n),
        sparse.csc_matrix(A[0]),
        lower[0],
        upper[0],
        verbose=False,
        **accuracy,
    )
    seconds, solutions = [], []
    for low, high in zip(lower, upper, strict=True):
        begin = time.perf_counter()
        solver.update(l=low, u=high)
        solution = solver.solve(raise_error=False)
        seconds.append(time.perf_counter() - begin)
        solutions.append(np.array(solution.x, dtype=float))
    name = f"OSQP, Python, warm, to {OSQP_ACCURACY:g}"
    return tick_peers.SolverTimes(name, float(np.median(seconds)), tuple(solutions))
