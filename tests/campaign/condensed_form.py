"""The least-distance form that the controller hands to its solver, solved by Clarabel."""

import functools

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from campaign.case import Case, Inputs
from campaign.second_solver import settings
from mbcasadi.qp.solver import candidate_fun

ZERO_ROW = 1e-12  # length of a row without content, relative to the longest
BOUNDLESS = 1e29  # larger bounds are none
TOLERANCE = 1e-6  # of |x|², relative to its size and that of the bounds
WELL_INSIDE = 1e-6  # distance to all rows, relative to the size of the bounds


def judge_least_distance(case: Case, inputs: Inputs, status: int) -> str:
    """Return what is wrong with a status and the solver's x, "" for nothing."""
    given = {"q": inputs.q, "v": inputs.v, "ref": inputs.ref, "mask": inputs.mask, "z": inputs.z}
    C, d = rows_of(case, given)
    unit = max(1.0, np.abs(d).max(initial=0.0))
    if status != 0:
        inside = margin(C, d / unit)
        return "" if inside <= WELL_INSIDE else f"{FAILED[status]}, margin {inside:.1e}"
    x = np.array(candidate_of(case)(**given)["x"]).ravel()
    outside = np.max(C @ x - d, initial=0.0)
    if outside > TOLERANCE * (unit + np.linalg.norm(x)):
        return f"outside by {outside:.1e}"
    best, word = solve(C, d / unit)
    if best is None:
        return "" if word != "infeasible" else "solved where Clarabel proves infeasible"
    excess = (float(x @ x) - float(best @ best) * unit**2) / (float(x @ x) + unit**2)
    return "" if abs(excess) <= TOLERANCE else f"not optimal by {excess:.1e}"


FAILED = {1: "needless suboptimal", 2: "false infeasible", 3: "refused", 4: "needless failure"}


@functools.cache
def candidate_of(case: Case):
    """Return the Function of the solver's x."""
    return candidate_fun(case.controller.stages.qp, case.controller.solver)


def rows_of(case: Case, given):
    """Return `C x <= d` with rows of unit length."""
    out = case.controller.stages.qp.build(**given)
    A, low, high = (np.array(out[key]) for key in ("A_qp", "lba", "uba"))
    low, high, lengths = low.ravel(), high.ravel(), np.linalg.norm(A, axis=1)
    use = lengths > ZERO_ROW * lengths.max(initial=0.0)
    A, low, high, lengths = A[use], low[use], high[use], lengths[use]
    below, above = high < BOUNDLESS, low > -BOUNDLESS
    A, low, high = A / lengths[:, None], low / lengths, high / lengths
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
