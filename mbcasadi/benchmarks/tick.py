"""One whole control tick in generated C: kinematics, dynamics, QP and self-check.

The quadruped of `mujoco_models` sways over its four feet, which stay where they are; every tick
of the record is timed in a C program, the active set carried from tick to tick as on a robot.
"warm" runs tick after tick, "evicted" sweeps 64 MiB of memory before each one. Beside it is
the time that other solvers take for the QP alone, in the usual form (whose torques must be ours)
and as we condense it. Peers that are not installed are named as absent.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi import models
from mbcasadi.benchmarks import tick_peers
from mbcasadi.benchmarks.rows import row
from mbcasadi.benchmarks.tick_full_form import full_form
from mbcasadi.codegen import CProject, TickTimes, export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact, Controller, LeastDistanceStages, Signal
from mbcasadi.errors import SolverError
from mbcasadi.system import read_mjcf

Array = NDArray[np.float64]

FLAGS = ("-O3", "-march=native")
FEET = ("FL", "FR", "RL", "RR")
FRICTION, LEAST_FORCE = 0.6, 5.0  # of the contacts, N
SWAY = np.array([0.04, 0.04, 0.02, 0.08, 0.08, 0.08])  # of the trunk, m and rad
FREQUENCY, PERIOD = 0.5, 1e-3  # Hz, s
TICKS, QUICK_TICKS = 2000, 200
REPEATS, EVICTED = 5, 200  # passes over the record, ticks with swept caches
MOST_PROBLEMS = 300  # for the peers
SAME_TORQUES = 1e-4  # N m, of 7; solvers stop at different accuracies


def run(quick: bool = False) -> dict[str, Any]:
    """Time the quadruped's tick and its peers; `{"rows": [...], "flags": ..., ...}`."""
    path = models.path("quadruped")
    controller = quadruped_controller(path)
    q, v = sway(path, QUICK_TICKS if quick else TICKS)
    inputs = {
        "q": q,
        "v": v,
        "ref": np.array(controller.reference_at(q[0]), dtype=float).ravel(),
        "mask": np.ones(len(FEET)),
    }
    with tempfile.TemporaryDirectory(prefix="mbcasadi-tick-") as folder:
        project = export_c(controller, Path(folder) / "tick")
        build = project.build(flags=FLAGS)
        times = tick_times(project, inputs, quick=quick)
        rows = tick_rows("quadruped", times)
        rows += usual_form_rows("quadruped", controller, (q, v), times["warm"].median)
        rows += qp_rows("quadruped", controller.controller, inputs, Path(folder), quick=quick)
    return {
        "rows": rows,
        "flags": " ".join(FLAGS),
        "operations": project.operations,
        "compile_seconds": build.seconds,
        "unsolved": {k: int(np.count_nonzero(t.status)) for k, t in times.items()},
    }


def tick_times(
    project: CProject, inputs: Mapping[str, ArrayLike], *, quick: bool = False
) -> dict[str, TickTimes]:
    """Return the times of every tick of any exported controller, warm and evicted."""
    short = {k: np.asarray(a)[:EVICTED] if np.ndim(a) == 2 else a for k, a in inputs.items()}
    return {
        "warm": project.time(inputs, 1 if quick else REPEATS, flags=FLAGS),
        "evicted": project.time(short, 1, evict=True, flags=FLAGS),
    }


def tick_rows(model: str, times: Mapping[str, TickTimes]) -> list[dict[str, Any]]:
    """Return median and 99th percentile of the whole tick."""
    return [
        row(model, f"whole tick, {caches}, {label}", value, tick_peers.TSID_ABSENT, None)
        for caches, ticks in times.items()
        for label, value in (("median", ticks.median), ("p99", ticks.p99))
    ]


def usual_form_rows(
    model: str, controller: InverseDynamicsQP, states: tuple[Array, Array], tick: float
) -> list[dict[str, Any]]:
    """Compare our whole tick with other solvers' time for the QP alone, in its usual form.

    Args:
        model: its name.
        controller: the whole-body controller.
        states: (ticks, nq) and (ticks, nv).
        tick: median time of our whole tick, s.

    Raises:
        SolverError: a solver's torques are not ours, so that times must not be compared.
    """
    every = max(1, len(states[0]) // MOST_PROBLEMS)
    q, v = (values[::every] for values in states)
    problems = full_form(controller, FEET, (FRICTION, LEAST_FORCE), (q, v), states[0][0])
    law, ref = controller.function, controller.reference_at(states[0][0])
    ours = [
        np.array(law(a, b, ref, 1, controller.z0)[0]).ravel() for a, b in zip(q, v, strict=True)
    ]
    p = problems[0]
    label = (
        f"whole tick against the QP alone in (a, f): {len(p.g)} unknowns, {len(p.ce)} equalities"
    )
    rows = []
    for peer in tick_peers.solvers(problems):
        for problem, x, u in zip(problems, peer.solutions, ours, strict=False):
            if np.max(np.abs(problem.torques(x) - u)) > SAME_TORQUES:
                raise SolverError(f"{peer.name}: other torques than ours, the times do not compare")
        rows.append(row(model, label, tick, peer.name, peer.median))
    return rows


def qp_rows(
    model: str, controller: Controller, inputs: Mapping[str, Array], folder: Path, *, quick: bool
) -> list[dict[str, Any]]:
    """Time the QP alone, the same condensed problems for every solver.

    Args:
        model: its name.
        controller: an exported controller.
        inputs: (ticks, ·) recorded inputs by name.
        folder: for the generated C.
        quick: one pass over the record.
    """
    stages = controller.stages
    if stages is None:
        return []
    problems = record_problems(stages, controller.z0, inputs)
    project = export_c(solver_only(stages), folder / "qp")
    columns = dict(zip(("A", "lower", "upper"), problems, strict=True))
    columns["A"] = columns["A"].transpose(0, 2, 1).reshape(len(columns["A"]), -1)
    ours = project.time(columns, 1 if quick else REPEATS, flags=FLAGS).median
    label = f"QP alone, condensed: {stages.n} unknowns, {stages.m} rows"
    short = tick_peers.from_least_distance(*(values[:MOST_PROBLEMS] for values in problems))
    return [row(model, label, ours, p.name, p.median) for p in tick_peers.solvers(short)]


def quadruped_controller(path: Path) -> InverseDynamicsQP:
    """Return the whole-body controller of a quadruped that stands on four feet."""
    return InverseDynamicsQP(
        read_mjcf(path),
        tasks=[FrameTask("trunk", weight=10.0), PostureTask(weight=0.1)],
        contacts=[Contact(f, friction=FRICTION, sides=4, min_force=LEAST_FORCE) for f in FEET],
        name="quadruped_tick",
        period=PERIOD,
    )


def sway(path: Path, ticks: int) -> tuple[Array, Array]:
    """Return (ticks, nq) and (ticks, nv): the trunk sways, the feet stay, `J_foot v = 0`."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    phase = np.array([0, 90, 180, 45, 135, 0]) * np.pi / 180
    rate = 2 * np.pi * FREQUENCY
    q, v = np.zeros((ticks, model.nq)), np.zeros((ticks, model.nv))
    jacobian = np.zeros((3, model.nv))
    for k in range(ticks):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        rows = []
        for foot in FEET:
            site = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, foot)
            mujoco.mj_jacSite(model, data, jacobian, None, site)
            rows.append(jacobian.copy())
        J = np.vstack(rows)
        trunk = SWAY * rate * np.cos(rate * k * PERIOD + phase)
        legs = -np.linalg.solve(J[:, 6:], J[:, :6] @ trunk)
        q[k], v[k] = data.qpos, np.concatenate([trunk, legs])
        mujoco.mj_integratePos(model, data.qpos, v[k], PERIOD)
    return q, v


def record_problems(
    stages: LeastDistanceStages, z0: Array, inputs: Mapping[str, Array]
) -> tuple[Array, Array, Array]:
    """Return A (ticks, m, n), lower and upper (ticks, m) of every tick."""
    ticks = len(inputs["q"])
    arguments = [
        np.broadcast_to(np.atleast_2d(inputs.get(name, z0)), (ticks, stages.build.size1_in(name))).T
        for name in stages.build.name_in()
    ]
    A, lower, upper = (np.array(out) for out in stages.build.map(ticks)(*arguments)[:3])
    return A.reshape(stages.m, ticks, stages.n).transpose(1, 0, 2), lower.T, upper.T


def solver_only(stages: LeastDistanceStages) -> Controller:
    """Return a law that is the solver alone: (A, lower, upper, z) → (u, z_next, status)."""
    n, m = stages.n, stages.m
    problem = [ca.SX.sym("A", m, n), *(ca.SX.sym(s, m) for s in ("lower", "upper", "z"))]
    names = ["A", "lower", "upper", "z"]
    build = ca.Function(
        "build",
        problem,
        [*problem, ca.SX(0, 1)],
        names,
        ["A_qp", "lba", "uba", "active0", "carry"],
    )
    solution = {"carry": 0, "x": n, "lam_a": m, "active": m, "flag": 1}
    symbols = {key: ca.SX.sym(key, size) for key, size in solution.items()}
    outputs = [symbols["x"], symbols["active"], 1 - symbols["flag"]]
    labels = ["u", "z_next", "status"]
    finish = ca.Function(
        "finish", problem + list(symbols.values()), outputs, names + list(symbols), labels
    )
    zeros = [ca.SX.zeros(n), problem[3], ca.SX.zeros(1)]
    return Controller(
        name="least_distance",
        function=ca.Function("law", problem, zeros, names, labels),
        inputs=tuple(Signal(name, (), ()) for name in names),
        outputs=tuple(Signal(name, (), ()) for name in labels),
        u_min=np.full(n, -np.inf),
        u_max=np.full(n, np.inf),
        z0=np.zeros(m),
        period=PERIOD,
        stages=LeastDistanceStages(build, finish),
    )
