"""The least-distance form that the controller hands to its solver, solved by Clarabel."""

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from campaign.case import Case, Inputs
from campaign.second_solver import settings
from mbcasadi.control.inverse_dynamics.solution import InverseDynamicsSolution

BOUNDLESS = 1e29  # larger bounds are none
TOLERANCE = 1e-6  # of |x|², relative to its size and that of the bounds
WELL_INSIDE = 1e-6  # distance to all rows, relative to the size of the bounds


def judge_least_distance(case: Case, inputs: Inputs, solution: InverseDynamicsSolution) -> str:
    """Return what is wrong with an answer, "" for nothing."""
    C, d = rows_of(case, inputs)
    unit = max(1.0, np.abs(d).max(initial=0.0))
    if solution.status == 0:
        return _finding_on_answer(case, inputs, C, d, unit, solution)
    inside = margin(C, d / unit)
    if inside <= WELL_INSIDE:
        return ""
    names = {1: "needless suboptimal", 2: "false infeasible", 3: "refused", 4: "needless failure"}
    return f"{names[solution.status]}, margin {inside:.1e}"


def _finding_on_answer(case, inputs, C, d, unit, solution) -> str:
    """Compare costs: `½ |x|²` is the cost of the answer above that without inequalities."""
    x, word = solve(C, d / unit)
    if x is None:
        return "" if word != "infeasible" or margin(C, d / unit) > -WELL_INSIDE else "infeasible"
    H, g, y = solution.problem.H, solution.problem.g, np.concatenate([solution.p, np.zeros(0)])
    if len(H) != len(y):
        return ""  # internal forces are part of the unknown: the full form judges them
    free = np.linalg.solve(H, -g)
    excess = (y - free) @ H @ (y - free) - float(x @ x) * unit**2
    size = (y - free) @ H @ (y - free) + float(free @ H @ free) + unit**2
    return "" if abs(excess) <= TOLERANCE * size else f"not optimal by {excess / size:.1e}"


def rows_of(case: Case, inputs: Inputs):
    """Return `C x <= d` with rows of unit length."""
    build = case.controller.stages.qp.build
    given = {
        "q": inputs.q, "v": inputs.v, "ref": inputs.ref, "mask": inputs.mask, "z": inputs.z,
    }  # fmt: skip
    out = build(**given)
    A, low, high = (np.array(out[key]) for key in ("A_qp", "lba", "uba"))
    low, high, lengths = low.ravel(), high.ravel(), np.linalg.norm(A, axis=1)
    use = lengths > 1e-12 * lengths.max(initial=0.0)
    A, low, high = A[use] / lengths[use, None], low[use] / lengths[use], high[use] / lengths[use]
    below, above = high * lengths[use] < BOUNDLESS, low * lengths[use] > -BOUNDLESS
    return np.vstack([A[below], -A[above]]), np.concatenate([high[below], -low[above]])


def solve(C, d):
    """Return `argmin |x|` with `C x <= d`, or None, and Clarabel's verdict."""
    n = C.shape[1]
    if not len(d):
        return np.zeros(n), "solved"
    cones = [clarabel.NonnegativeConeT(len(d))]
    answer = clarabel.DefaultSolver(
        sparse.eye(n, format="csc"), np.zeros(n), sparse.csc_matrix(C), d, cones, settings()
    ).solve()
    status = str(answer.status)
    if status == "PrimalInfeasible":
        return None, "infeasible"
    return (np.array(answer.x), "solved") if status == "Solved" else (None, status)


def margin(C, d) -> float:
    """Return the largest distance to all rows that some x has; negative where there is none."""
    n = C.shape[1]
    cost = np.zeros(n + 1)
    cost[-1] = -1.0
    A = np.hstack([C, np.ones((len(d), 1))])
    found = linprog(cost, A, d, bounds=[(None, None)] * n + [(None, 1.0)], method="highs")
    return float(found.x[-1]) if found.x is not None else -np.inf
