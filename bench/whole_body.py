"""Real-time iterations of a whole body in generated C, beside others on the same problem.

A quadruped trots (`whole_body_cases`). "whole tick" is that of the exported controller, hard limits
of torques and friction pyramids included, in closed loop with the problem's own step as plant and
noise in its velocities, with its phases. All solvers start from the same guesses: those of recorded
ticks, shifted. "one iteration" is the first from there. "to a residual of 1e-3" is the time until
gaps, violations, stationarity and complementarity of the plan are below it, by differences of the
nonlinear problem (`whole_body_residual`), not by a solver. Of several passes each tick counts with
the least time, and medians are over ticks, of those that reach the residual where not all do. Peers
without limits run beside ours without them.

A quadrotor and an arm are beside acados (`whole_body_acados`).

    python -m bench whole_body --json > whole_body.json
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import whole_body_acados, whole_body_beside, whole_body_cases
from bench import whole_body_programs as programs
from bench.rows import row
from bench.tick_cases import LEGS, QUADRUPED, TickCase, robots
from bench.tick_tsid import Program
from bench.whole_body_beside import FLAGS, Solver
from bench.whole_body_cases import Trot, closed_loop
from mbcasadi.codegen import CProject, export_c

Array = NDArray[np.float64]

TICKS, QUICK_TICKS = 200, 20
EVERY = 5  # of the ticks are solved to the end
REPEATS, QUICK_REPEATS = 5, 2
LONG, SHORT = 40, 10  # horizons of which the growth is measured
MEGABYTE = 1e6


def run(quick: bool = False) -> dict[str, Any]:
    """Time the robots and their peers; return `{"rows", "flags", "sizes", "checks"}`."""
    results: dict[str, Any] = {"rows": [], "sizes": {}, "checks": {}}
    results["flags"] = " ".join(FLAGS)
    results["peers' flags"] = programs.FLAGS_TEXT
    cases = [QUADRUPED, *(case for case in robots() if len(case.feet) == len(LEGS))]
    with tempfile.TemporaryDirectory(prefix="mbcasadi-peers-") as folder:
        peers = [(peer, peer.build(Path(folder))) for peer in PEERS]
        for case in cases:
            _trot(results, case, peers, quick=quick)
    ticks, repeats = (QUICK_TICKS, QUICK_REPEATS) if quick else (TICKS, REPEATS)
    for shuttle in whole_body_acados.shuttles():
        whole_body_acados.add_rows(results, shuttle, tick_rows, (FLAGS, ticks, repeats))
    if not quick:
        _growth(results)
    return results


PEERS = (programs.CROCODDYL, programs.ALIGATOR)


def _trot(
    results: dict[str, Any],
    case: TickCase,
    peers: list[tuple[programs.Peer, Program]],
    *,
    quick: bool,
) -> None:
    """Add the rows of one robot."""
    trot = Trot(case, whole_body_cases.INTERVALS)
    model = f"{case.name}, trot, N = {trot.intervals}"
    repeats = QUICK_REPEATS if quick else REPEATS
    with tempfile.TemporaryDirectory(prefix="mbcasadi-trot-") as name:
        folder = Path(name)
        law = trot.law()
        project = export_c(law, folder / "tick")
        results["sizes"][model] = sizes(project)
        record = closed_loop(trot, law, project.load(flags=FLAGS), QUICK_TICKS if quick else TICKS)
        results["checks"][f"{model}: unsolved ticks"] = int(np.count_nonzero(record.status))
        results["rows"] += tick_rows(model, project, record.inputs, repeats)
        few = record[::EVERY]
        for limited, words in ((False, "no limits"), (True, "limits and cones")):
            which = [(p, program) for p, program in peers if p.limited == limited]
            solver = Solver.of(Trot(case, trot.intervals, limited), folder / f"limited{limited:d}")
            whole_body_beside.add_rows(results, f"{model}, {words}", solver, which, few, repeats)


def sizes(project: CProject) -> dict[str, Any]:
    """Return operations, sizes of text, library and memory, and what the compiler needs."""
    size = project.size(flags=FLAGS)
    return {
        "operations": size.operations,
        "C, MB": round(project.source.stat().st_size / MEGABYTE, 2),
        "library, kB": round(size.library_bytes / 1e3),
        "memory, MB": round(project.manifest["memory_bytes"] / MEGABYTE, 2),
        "compiler, s": round(size.build.seconds, 1),
        "compiler, MB": round(size.build.peak_bytes / MEGABYTE),
    }


def tick_rows(
    model: str, project: CProject, inputs: dict[str, Array], repeats: int
) -> list[dict[str, Any]]:
    """Return median and 99th percentile of whole ticks and their phases."""
    times = project.time(inputs, repeats, flags=FLAGS)
    parts = {"whole tick": times, "preparation": times.preparation, "feedback": times.feedback}
    lines = []
    for name, part in parts.items():
        assert part is not None
        best = part.seconds.reshape(repeats, -1).min(axis=0)
        values = ((name, np.median(best)), (f"{name}, p99", np.percentile(best, 99)))
        lines += [row(model, quantity, float(value), "-", None) for quantity, value in values]
    return lines


def _growth(results: dict[str, Any]) -> None:
    """Add sizes and times of a short and a long horizon."""
    for intervals in (SHORT, LONG):
        trot = Trot(QUADRUPED, intervals)
        model = f"{QUADRUPED.name}, trot, N = {intervals}"
        with tempfile.TemporaryDirectory(prefix="mbcasadi-trot-") as name:
            law = trot.law()
            project = export_c(law, Path(name) / "c")
            results["sizes"][model] = sizes(project)
            record = closed_loop(trot, law, project.load(flags=FLAGS), TICKS)
            results["rows"] += tick_rows(model, project, record.inputs, REPEATS)
