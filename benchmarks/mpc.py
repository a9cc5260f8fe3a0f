"""One tick of linear MPC in generated C, in closed loop, beside the QP alone by other solvers.

A double integrator with a sample time of 0.1 s follows a setpoint that jumps: the control is
bounded, or speed and place too. `ours` is the whole tick in C (products with the state, solver,
self-check), caches warm, the active set shifted and carried from tick to tick. The peers get the
condensed QP of the same states; OSQP starts warm, from its answer at the state before. `miss` is
the largest difference of the first control from ours. "active" times the ticks alone at whose
solution some bound holds.

    mbcasadi bench mpc --json > mpc.json
    python -m benchmarks.mpc mpc.json          # the same as a Markdown table
"""

import importlib.util
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

import mbcasadi as mb
from benchmarks import tick_peers
from mbcasadi.control.mpc import LinearModel, LinearMPC, Output, lti_mpc
from mbcasadi.control.mpc.least_distance_form import least_distance_problem

Array = NDArray[np.float64]

FLAGS = ("-O3", "-march=native")
PERIOD = 0.1  # s
HORIZONS = (20, 50)
JUMP, HELD = 2.0, 100  # m, and the ticks for which a setpoint stays
TICKS, REPEATS = 1000, 20
QUICK_TICKS, QUICK_REPEATS = 120, 2
EVERY = 5  # peers get one tick of so many
OSQP_ACCURACY = 1e-6
SUITE = "mpc"


def double_integrator(horizon: int, *, box: bool) -> LinearMPC:
    """Return the controller: |u| <= 1, and with a box |place| <= 5, |speed| <= 0.8."""
    model = LinearModel.of([[1, PERIOD], [0, 1]], [[PERIOD**2 / 2], [PERIOD]], PERIOD)
    far = np.array([5.0, 0.8])
    outputs = [Output("x", np.eye(2), np.zeros((2, 1)), -far, far)] if box else []
    return lti_mpc(
        model,
        horizon,
        [1.0, 0.1],
        0.1,
        u_bounds=[[-1.0, 1.0]],
        outputs=outputs,
        name="double_integrator",
    )


def run(quick: bool = False) -> dict[str, Any]:
    """Time each horizon and its peers; return `{"rows", "flags", "operations", "lines", ...}`."""
    found: dict[str, Any] = {"rows": [], "flags": " ".join(FLAGS)}
    found |= {key: {} for key in ("operations", "lines", "compile_seconds", "unsolved")}
    for horizon in HORIZONS:
        for box in (False, True):
            with tempfile.TemporaryDirectory(prefix="mbcasadi-mpc-") as folder:
                _add(found, double_integrator(horizon, box=box), Path(folder), quick=quick)
    return found


def _add(found: dict[str, Any], mpc: LinearMPC, folder: Path, *, quick: bool) -> None:
    m, n = mpc.condensed.C.shape
    model = f"double integrator, N = {mpc.problem.horizon}, {m} rows"
    project = mb.export_c(mpc, folder / "c")
    build = project.build(flags=FLAGS)
    record, u, z = closed_loop(mpc, project.load(flags=FLAGS), QUICK_TICKS if quick else TICKS)
    repeats = QUICK_REPEATS if quick else REPEATS
    times = project.time({key: record[key] for key in ("x0", "ref")}, repeats, flags=FLAGS)
    active = np.tile(np.any(z != 0, axis=1), repeats)
    whole = {"whole tick": times.median, "p99": times.p99}
    whole["whole tick, active"] = float(np.median(times.seconds[active]))
    found["rows"] += [_row(model, key, value, "-", None) for key, value in whole.items()]
    label = f"whole tick against the QP alone: {n} unknowns"
    some = {key: values[::EVERY] for key, values in record.items()}
    for peer in _peers(mpc, some):
        miss = _miss(mpc, some, peer.solutions, u[::EVERY])
        row = _row(model, label, times.median, peer.name, peer.median)
        found["rows"].append(row | {"miss": miss})
    found["operations"][model] = project.operations
    found["lines"][model] = project.lines
    found["compile_seconds"][model] = build.seconds
    found["unsolved"][model] = int(np.count_nonzero(times.status))


def closed_loop(
    mpc: LinearMPC, law: ca.Function, ticks: int
) -> tuple[dict[str, Array], Array, Array]:
    """Return the law's inputs at every tick, its controls, and the z that it hands on."""
    model, x, z = mpc.problem.model, np.zeros(2), mpc.controller.z0
    inputs: dict[str, list[Array]] = {"x0": [], "ref": [], "z": []}
    controls, states = [], []
    for k in range(ticks):
        ref = mpc.ref(x=[JUMP if k // HELD % 2 == 0 else -JUMP, 0.0])
        for key, value in (("x0", x), ("ref", ref), ("z", z)):
            inputs[key].append(value)
        u, z = (np.array(out).ravel() for out in law(x, ref, z)[:2])
        x = model.A @ x + model.B @ u
        controls.append(u)
        states.append(z)
    record = {key: np.array(values) for key, values in inputs.items()}
    return record, np.array(controls), np.array(states)


def _problems(mpc: LinearMPC, record: dict[str, Array]) -> tuple[Array, Array, Array]:
    """Return A (m, n), lower and upper (ticks, m) of the least-distance problems."""
    stages = mpc.controller.stages
    assert stages is not None
    build = stages.build.map(len(record["x0"]))
    A, lower, upper = build(*(record[k].T for k in stages.build.name_in()))[:3]
    return np.array(A)[:, : stages.n], np.array(lower).T, np.array(upper).T


def _peers(mpc: LinearMPC, record: dict[str, Array]) -> list[tick_peers.SolverTimes]:
    A, lower, upper = _problems(mpc, record)
    every = np.broadcast_to(A, (len(lower), *A.shape))
    found = tick_peers.solvers(tick_peers.from_least_distance(every, lower, upper))
    return [*found, _osqp(A, lower, upper)]


def _osqp(A: Array, lower: Array, upper: Array) -> tick_peers.SolverTimes:
    """Time OSQP, set up once: each solution is the start of the next."""
    if importlib.util.find_spec("osqp") is None:
        return tick_peers.SolverTimes("OSQP (absent: install osqp)")
    osqp: Any = importlib.import_module("osqp")
    sparse: Any = importlib.import_module("scipy.sparse")
    n = A.shape[1]
    accuracy = {"eps_abs": OSQP_ACCURACY, "eps_rel": OSQP_ACCURACY, "max_iter": 100_000}
    solver = osqp.OSQP()
    solver.setup(
        sparse.eye(n, format="csc"),
        np.zeros(n),
        sparse.csc_matrix(A),
        lower[0],
        upper[0],
        verbose=False,
        **accuracy,
    )
    seconds, solutions = [], []
    for low, high in zip(lower, upper, strict=True):
        begin = time.perf_counter()
        solver.update(l=low, u=high)
        answer = solver.solve()
        seconds.append(time.perf_counter() - begin)
        solutions.append(np.array(answer.x, dtype=float))
    name = f"OSQP, Python, warm, to {OSQP_ACCURACY:g}"
    return tick_peers.SolverTimes(name, float(np.median(seconds)), tuple(solutions))


def _miss(
    mpc: LinearMPC, record: dict[str, Array], solutions: tuple[Array, ...], ours: Array
) -> float | None:
    """Return the largest difference of the first controls, before which x becomes u."""
    if not solutions:
        return None
    qp, nu = least_distance_problem(mpc.condensed), mpc.problem.model.nu
    theta = np.hstack([record["x0"], record["ref"]])
    u_0 = theta @ qp.K[:nu].T + qp.k_0[:nu]
    u = np.array(solutions)[: len(u_0)] @ qp.L_inv[:nu].T - u_0
    return float(np.abs(u - ours).max())


def table(found: dict[str, Any]) -> str:
    """Return the times as Markdown, from the JSON of `mbcasadi bench mpc`."""
    lines = ["| problem | what | µs, median | miss of u |", "| --- | --- | ---: | ---: |"]
    for row in found["rows"]:
        own = row["peer"] == "-"
        seconds = row["ours"] if own else row["peer_time"]
        cells = [row["model"], f"ours, {row['quantity']}" if own else row["peer"]]
        cells.append("-" if seconds is None else f"{1e6 * seconds:.1f}")
        cells.append("-" if row.get("miss") is None else f"{row['miss']:.0e}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _row(model: str, quantity: str, ours: float, peer: str, other: float | None) -> dict[str, Any]:
    return {
        "model": model,
        "quantity": quantity,
        "ours": ours,
        "peer": peer,
        "peer_time": other,
        "ratio": None if other is None else ours / other,
    }


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text())), end="")
