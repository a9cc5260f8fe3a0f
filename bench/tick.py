"""One whole control tick in generated C: kinematics, dynamics, QP and self-check.

Robots sway over their feet, which stay where they are; every tick of the record is timed in a C
program, the active set carried from tick to tick as on a robot. "warm" runs tick after tick,
"evicted" sweeps 64 MiB of memory before each one. Beside it is TSID's whole tick, timed alike
(`tick_tsid.py` says how to install it); and for the quadruped the time that other solvers take for
the QP alone, in the usual form (whose torques must be ours) and as we condense it, and the same
tick without loops. Peers that are not installed are named as absent.

Go2 and G1 are timed where the environment variable `MBCASADI_BENCH_MODELS` names a folder that has
their files.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench import tick_peers, tick_tsid
from bench.rows import row
from bench.tick_cases import FRICTION, PERIOD, QUADRUPED, TickCase, robots
from bench.tick_cones import rows_of_cones
from bench.tick_full_form import full_form
from bench.tick_robots import (
    NATIVE,
    TURNS,
    Tick,
    compared_program,
    exported,
    exported_text,
    rows_beside_straight_line,
    rows_beside_tsid,
    sizes,
)
from mbcasadi.codegen import export_c
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.description import Controller, LeastDistanceStages, Signal

Array = NDArray[np.float64]

TICKS, QUICK_TICKS = 2000, 200
REPEATS = 5  # passes over the record, of the QP alone
MOST_PROBLEMS = 300  # for the peers
SAME_TORQUES = 1e-4  # N m, of 7; solvers stop at different accuracies


def run(quick: bool = False) -> dict[str, Any]:
    """Time the robots' ticks and their peers; `{"rows": [...], <robot>: sizes, ...}`.

    A quick run has the quadruped alone, one pass over a short record and one set of flags.
    """
    cases = [QUADRUPED] if quick else [QUADRUPED, *robots()]
    ticks, turns = (QUICK_TICKS, 1) if quick else (TICKS, TURNS)
    flags: tuple[tuple[str, ...] | None, ...] = (NATIVE,) if quick else (NATIVE, None)
    results: dict[str, Any] = {"rows": [], "flags of TSID": tick_tsid.FLAGS_TEXT}
    with tempfile.TemporaryDirectory(prefix="mbcasadi-tick-") as name:
        folder = Path(name)
        program = tick_tsid.build(folder)
        for case in cases:
            tick = exported(case, folder / case.name, ticks)
            compared, gaps = compared_program(tick, program)
            results[case.name] = sizes(tick, flags) | {"beside TSID": gaps}
            for each in flags:
                results["rows"] += rows_beside_tsid(tick, compared, each, turns)
            results["rows"] += rows_of_cones(case, folder, ticks, turns)
            if case is QUADRUPED:
                results["rows"] += solver_rows(tick, folder, quick=quick)
                if not quick:
                    text = exported_text(tick, folder / "text")
                    results["quadruped as straight-line text"] = sizes(text, (NATIVE,))
                    results["rows"] += rows_beside_straight_line(tick, text, turns)
    return results


def solver_rows(tick: Tick, folder: Path, *, quick: bool) -> list[dict[str, Any]]:
    """Return the rows of other QP solvers, in the usual form and as we condense the problem."""
    whole = tick.project.time(tick.inputs, 1 if quick else REPEATS, flags=NATIVE)
    rows = usual_form_rows(tick.case, tick.controller, tick.states, whole.median)
    return rows + qp_rows(
        tick.case.name, tick.controller.controller, tick.inputs, folder, quick=quick
    )


def usual_form_rows(
    case: TickCase, controller: InverseDynamicsQP, states: tuple[Array, Array], tick: float
) -> list[dict[str, Any]]:
    """Compare our whole tick with other solvers' time for the QP alone, in its usual form.

    A solver whose torques are not ours has no time: its row says by how much they differ.

    Args:
        case: the robot.
        controller: its whole-body controller.
        states: (ticks, nq) and (ticks, nv).
        tick: median time of our whole tick, s.
    """
    every = max(1, len(states[0]) // MOST_PROBLEMS)
    q, v = (values[::every] for values in states)
    cone = (FRICTION, case.least_force)
    problems = full_form(controller, case.sites, cone, (q, v), states[0][0])
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
        name, seconds = peer.name, peer.median
        pairs = zip(problems, peer.solutions, ours, strict=False)
        gap = max((float(np.max(np.abs(p.torques(x) - u))) for p, x, u in pairs), default=0.0)
        if not gap <= SAME_TORQUES:
            name, seconds = f"{name} (not compared: its torques differ by {gap:.2g} N m)", None
        rows.append(row(case.name, label, tick, name, seconds))
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
    ours = project.time(columns, 1 if quick else REPEATS, flags=NATIVE).median
    label = f"QP alone, condensed: {stages.n} unknowns, {stages.m} rows"
    short = tick_peers.from_least_distance(*(values[:MOST_PROBLEMS] for values in problems))
    return [row(model, label, ours, p.name, p.median) for p in tick_peers.solvers(short)]


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
