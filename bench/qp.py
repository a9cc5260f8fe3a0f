"""QPs of the shipped controllers: the same problem in C on both sides, and whole pipelines.

"QP alone" is the condensed least-distance problem of every tick of a record, solved in C by ours,
by DAQP, by eiquadprog (C++), and by OSQP where the rows stay the same: cold, from no active set,
and warm, from the active set of the tick before. eiquadprog has no warm start, so its time beside
the warm ones is its cold one; OSQP starts from the solution before. "active" times the ticks alone
at whose solution some row is active. `miss` is the largest difference of x, relative.

"whole tick" is our pipeline in C, from measurement to control; its peers are called from Python and
solve the usual full form of the same states, whose building is not timed.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import qp_full_form
from bench.qp_cases import Case, cases
from bench.qp_native import FLAGS
from bench.qp_same_problem import MOST_PROBLEMS, same_problem_rows
from bench.rows import row
from mbcasadi.codegen import export_c

Array = NDArray[np.float64]
TICKS, QUICK_TICKS = 1000, 60
PASSES, QUICK_PASSES = 20, 2


def run(quick: bool = False) -> dict[str, Any]:
    """Time the solvers; returns `{"rows": [...], "flags": ...}`, medians in seconds over ticks."""
    rows: list[dict[str, Any]] = []
    for case in cases(QUICK_TICKS if quick else TICKS):
        rows += same_problem_rows(case.name, case.problems, QUICK_PASSES if quick else PASSES)
        if case.controller is not None:
            rows += pipeline_rows(case, quick=quick)
    return {"rows": rows, "flags": " ".join(FLAGS)}


def pipeline_rows(case: Case, *, quick: bool) -> list[dict[str, Any]]:
    """Compare our whole tick in C with peers from Python on the full form."""
    assert case.controller is not None
    every = max(1, len(case.inputs["q"]) // (10 if quick else MOST_PROBLEMS))
    states = [
        {"q": q, "v": v, "ref": case.inputs["ref"], "mask": case.inputs["mask"]}
        for q, v in zip(case.inputs["q"][::every], case.inputs["v"][::every], strict=True)
    ]
    forms = qp_full_form.full_forms(case.controller, states)
    forces = [case.controller.solve(s["q"], s["v"], s["ref"], mask=s["mask"]).p for s in states]
    with tempfile.TemporaryDirectory(prefix="mbcasadi-qp-") as folder:
        project = export_c(case.controller, Path(folder) / "c")
        ours = project.time(case.inputs, 1 if quick else 5).median
    rows = []
    for name in qp_full_form.PEERS:
        solver = qp_full_form.python_peer(name)
        label = (
            f"whole tick, default flags, against the QP in full form: {len(forms[0].g)} unknowns"
        )
        if solver is None:
            rows.append(row(case.name, label, ours, f"{name} (absent)", None))
            continue
        taken, wrong = qp_full_form.time_solver(solver, forms, forces)
        peer = row(case.name, label, ours, f"{name}, called from Python", taken)
        rows.append(peer | {"wrong": wrong, "states": len(forms)})
    return rows
