"""The same least-distance problem in C on both sides, ticks with active rows apart."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import tick_peers
from bench.mpc_osqp import osqp_times
from bench.qp_native import NativeTimes, native_times
from bench.rows import row

Array = NDArray[np.float64]
Problems = tuple[Array, Array, Array]

MOST_PROBLEMS = 200  # for peers that take long


def same_problem_rows(model: str, problems: Problems, passes: int) -> list[dict[str, Any]]:
    """Compare ours with DAQP, eiquadprog and OSQP on A (ticks, m, n), lower and upper (ticks, m).

    OSQP, which starts warm, is compared where A is the same at all ticks.
    """
    times = {
        (warm, daqp): native_times(problems, daqp=daqp, warm=warm, passes=passes)
        for warm in (False, True)
        for daqp in (False, True)
    }
    active = np.flatnonzero(times[False, False].active)
    groups = {"": np.arange(len(problems[0]))} | ({", active": active} if len(active) else {})
    size = f"{problems[0].shape[2]} x {problems[0].shape[1]}"
    same_rows = bool(np.all(problems[0] == problems[0][0]))
    name, osqp = osqp_times(problems, passes) if same_rows else ("", None)
    rows = []
    for group, ticks in groups.items():
        some = ticks[:: max(1, len(ticks) // MOST_PROBLEMS)]
        eiquadprog = _eiquadprog(problems, some)
        for warm in (False, True):
            ours, daqp = times[warm, False], times[warm, True]
            quantity = f"QP alone, {'warm' if warm else 'cold'}{group}: {size}"
            median = float(np.median(ours.seconds[ticks]))
            peer = float(np.median(daqp.seconds[ticks]))
            rows.append(row(model, quantity, median, "DAQP, C", peer) | _miss(ours, daqp.x))
            median = float(np.median(ours.seconds[some]))
            rows.append(row(model, quantity, median, eiquadprog.name, eiquadprog.median))
            if len(eiquadprog.solutions) == len(some):
                there = NativeTimes(ours.seconds[some], ours.x[some], ours.active[some])
                rows[-1] |= _miss(there, np.array(eiquadprog.solutions))
            if warm and name:
                median = float(np.median(ours.seconds[ticks]))
                peer_time = None if osqp is None else float(np.median(osqp.seconds[ticks]))
                rows.append(row(model, quantity, median, name, peer_time))
                rows[-1] |= {} if osqp is None else _miss(ours, osqp.x)
    return rows


def _miss(ours: NativeTimes, x: Array) -> dict[str, float]:
    size = max(1.0, float(np.abs(ours.x).max(initial=0.0)))
    return {"miss": float(np.abs(ours.x - x).max(initial=0.0)) / size}


def _eiquadprog(problems: Problems, ticks: NDArray[np.intp]) -> tick_peers.SolverTimes:
    chosen = tick_peers.from_least_distance(*(values[ticks] for values in problems))
    return tick_peers.solvers(chosen, only=("eiquadprog",))[0]
