"""One tick of linear MPC in generated C, in closed loop, and its QP beside other solvers.

A double integrator with a sample time of 0.1 s follows a setpoint that jumps: the control is
bounded, or speed and place too. `ours` is the whole tick in C (products with the state, solver,
self-check), caches warm, the active set shifted and carried from tick to tick. "QP alone" is the
condensed QP of consecutive ticks in C on both sides, see `qp`: cold, and warm from the tick before.
`miss` is the largest difference of x, relative. "active" times the ticks alone at whose solution
some bound holds; "p99" takes each tick at the best of its passes, so that it shows long ticks and
not what else ran. A tick in two phases is timed as a whole and by phase.

    python -m bench mpc --json > mpc.json
    python -m bench.mpc mpc.json          # the same as a Markdown table
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench import mpc_rigid_body, mpc_rti, mpc_solvers
from bench.qp_same_problem import same_problem_rows
from bench.rows import row, table
from mbcasadi.codegen import CProject, TickTimes, export_c
from mbcasadi.description import Controller
from mbcasadi.mpc import LinearModel, LinearMPC, LinearOptions, Output, lti_mpc

Array = NDArray[np.float64]

FLAGS = ("-O3", "-march=native")
PERIOD = 0.1  # s
HORIZONS = (20, 50)
JUMP, HELD = 2.0, 100  # m, and the ticks for which a setpoint stays
TICKS, REPEATS = 1000, 20
QUICK_TICKS, QUICK_REPEATS = 120, 2
STATES, QUICK_STATES = 20, 3  # at which whole problems are solved
PASSES, QUICK_PASSES = 20, 2  # of the QPs alone
MOST_OF_ROWS = 200  # ticks of a QP alone whose rows change
SUITE = "mpc"


def double_integrator(horizon: int, *, box: bool) -> LinearMPC:
    """Return the controller: |u| <= 1, and with a box |place| <= 5, |speed| <= 0.8."""
    model = LinearModel.of([[1.0, PERIOD], [0.0, 1.0]], [[PERIOD**2 / 2], [PERIOD]], PERIOD)
    box_limits = np.array([5.0, 0.8])
    outputs = [Output("x", np.eye(2), np.zeros((2, 1)), -box_limits, box_limits)] if box else []
    return lti_mpc(
        model,
        LinearOptions(
            horizon,
            [1.0, 0.1],
            0.1,
            u_bounds=[[-1.0, 1.0]],
            outputs=outputs,
            name="double_integrator",
        ),
    )


def run(quick: bool = False) -> dict[str, Any]:
    """Time each horizon and its peers; return `{"rows", "flags", "operations", "lines", ...}`."""
    results: dict[str, Any] = {"rows": [], "flags": " ".join(FLAGS)}
    results |= {key: {} for key in ("operations", "lines", "compile_seconds", "unsolved", "active")}
    for horizon in HORIZONS:
        for box in (False, True):
            with tempfile.TemporaryDirectory(prefix="mbcasadi-mpc-") as folder:
                _add(results, double_integrator(horizon, box=box), Path(folder), quick=quick)
    with tempfile.TemporaryDirectory(prefix="mbcasadi-mpc-") as folder:
        _add_quadruped(results, Path(folder), quick=quick)
    for name, case in (
        (f"cart-pole, real-time iteration, N = {mpc_rti.CART_POLE}", mpc_rti.cart_pole()),
        (
            f"pendulum on a four-bar, real-time iteration, N = {mpc_rti.FOUR_BAR}",
            mpc_rti.four_bar(),
        ),
    ):
        with tempfile.TemporaryDirectory(prefix="mbcasadi-mpc-") as folder:
            _add_rti(results, name, case, Path(folder), quick=quick)
    return results


def _add(results: dict[str, Any], mpc: LinearMPC, folder: Path, *, quick: bool) -> None:
    m = mpc.condensed.C.shape[0]
    model = f"double integrator, N = {mpc.problem.horizon}, {m} rows"
    project = export_c(mpc, folder / "c")
    results["compile_seconds"][model] = project.build(flags=FLAGS).seconds
    law = project.load(flags=FLAGS)
    record, _, z = closed_loop(mpc, law, QUICK_TICKS if quick else TICKS)
    _time_ticks(results, model, project, record, active_sets(mpc.controller, z), quick=quick)
    _add_qps(results, model, least_distance_problems(mpc.controller, record), quick=quick)


def _add_quadruped(results: dict[str, Any], folder: Path, *, quick: bool) -> None:
    mpc = mpc_rigid_body.quadruped()
    assert mpc.controller.stages is not None
    size = f"N = {mpc_rigid_body.HORIZON}, {mpc.controller.stages.m} rows"
    model = f"quadruped as one rigid body, {size}"
    project = export_c(mpc, folder / "c")
    results["compile_seconds"][model] = project.build(flags=FLAGS).seconds
    law = project.load(flags=FLAGS)
    ticks = QUICK_TICKS if quick else TICKS
    record, _, z = mpc_rigid_body.closed_loop(law, mpc.controller.z0, ticks)
    _time_ticks(results, model, project, record, active_sets(mpc.controller, z), quick=quick)
    first = {key: values[:MOST_OF_ROWS] for key, values in record.items()}
    _add_qps(results, model, least_distance_problems(mpc.controller, first), quick=quick)


def _add_qps(
    results: dict[str, Any], model: str, problems: tuple[Array, Array, Array], *, quick: bool
) -> None:
    results["rows"] += same_problem_rows(model, problems, QUICK_PASSES if quick else PASSES)


def _add_rti(
    results: dict[str, Any], model: str, case: mpc_rti.Case, folder: Path, *, quick: bool
) -> None:
    project = export_c(case.rti, folder / "c")
    results["compile_seconds"][model] = project.build(flags=FLAGS).seconds
    ticks = QUICK_TICKS if quick else TICKS
    record, u, z = mpc_rti.closed_loop(case, project.load(flags=FLAGS), ticks)
    active = active_sets(case.rti.controller, z)
    median = _time_ticks(results, model, project, record, active, quick=quick)
    every = slice(0, None, max(1, ticks // (QUICK_STATES if quick else STATES)))
    sampled = {key: values[every] for key, values in record.items()}
    options = {} if quick else mpc_solvers.COMPILED
    results["rows"] += mpc_solvers.rows(model, median, case.rti, (sampled, u[every]), options)


def _time_ticks(
    results: dict[str, Any],
    model: str,
    project: CProject,
    record: dict[str, Array],
    active_set: Array,
    *,
    quick: bool,
) -> float:
    """Time whole ticks, and their phases, over the record; return the median of whole ticks."""
    repeats = QUICK_REPEATS if quick else REPEATS
    inputs = {key: values for key, values in record.items() if key != "z"}
    times = project.time(inputs, repeats, flags=FLAGS)
    active = np.tile(np.any(active_set != 0, axis=1), repeats)
    times_by_label = {"whole tick": times.median, "p99": _p99_of_best(times, repeats)}
    if np.any(active):
        times_by_label["whole tick, active"] = float(np.median(times.seconds[active]))
    for name, phase in (("preparation", times.preparation), ("feedback", times.feedback)):
        if phase is not None:
            times_by_label |= {name: phase.median, f"{name}, p99": _p99_of_best(phase, repeats)}
    results["rows"] += [row(model, key, value, "-", None) for key, value in times_by_label.items()]
    results["operations"][model] = project.operations
    results["lines"][model] = project.lines
    results["unsolved"][model] = int(np.count_nonzero(times.status))
    results["active"][model] = float(np.mean(active))
    return times.median


def _p99_of_best(times: TickTimes, repeats: int) -> float:
    """Return the 99th percentile of the ticks, each at the best of its passes."""
    return float(np.percentile(times.seconds.reshape(repeats, -1).min(axis=0), 99))


def active_sets(controller: Controller, z: Array) -> Array:
    """Return the entries of states z (ticks, nz) that are the active set."""
    components = next(signal for signal in controller.inputs if signal.name == "z").components
    return z[:, [name.startswith("active") for name in components]]


def closed_loop(
    mpc: LinearMPC, law: ca.Function, ticks: int
) -> tuple[dict[str, Array], Array, Array]:
    """Return the law's inputs at every tick, its controls, and the z that it hands on."""
    model, x, z = mpc.problem.model, np.zeros(2), mpc.controller.z0
    inputs: dict[str, list[Array]] = {"x0": [], "ref": [], "z": []}
    controls, states = [], []
    for k in range(ticks):
        ref = mpc.reference(x=[JUMP if k // HELD % 2 == 0 else -JUMP, 0.0])
        for key, value in (("x0", x), ("ref", ref), ("z", z)):
            inputs[key].append(value)
        u, z = (np.array(out).ravel() for out in law(x, ref, z)[:2])
        x = model.A @ x + model.B @ u
        controls.append(u)
        states.append(z)
    record = {key: np.array(values) for key, values in inputs.items()}
    return record, np.array(controls), np.array(states)


def least_distance_problems(
    controller: Controller, record: dict[str, Array]
) -> tuple[Array, Array, Array]:
    """Return A (ticks, m, n), lower and upper (ticks, m) of the least-distance problems."""
    stages, ticks = controller.stages, len(record["x0"])
    assert stages is not None
    build = stages.build.map(ticks)
    A, lower, upper = build(*(record[k].T for k in stages.build.name_in()))[:3]
    every = np.array(A).reshape(stages.m, ticks, stages.n).transpose(1, 0, 2)
    return every, np.array(lower).T, np.array(upper).T


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
