"""The full problem by Clarabel, an interior-point method, and by how much it is feasible."""

import warnings

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from campaign.full_form import Full

ACCURACY = 1e-11
LARGEST = 1e6  # scaled forces and accelerations of a problem that is feasible well inside


def settings(accuracy: float = ACCURACY) -> clarabel.DefaultSettings:
    """Return Clarabel's settings."""
    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    chosen.max_iter = 200
    chosen.tol_gap_abs = chosen.tol_gap_rel = chosen.tol_feas = accuracy
    return chosen


def solve_full(full: Full, accuracy: float = ACCURACY):
    """Return the optimum z, or None, and Clarabel's verdict: "solved", "infeasible", "unknown"."""
    P = sparse.csc_matrix(np.triu(full.R.T @ full.R))
    size = np.linalg.norm(full.r) + 1.0
    q = -full.R.T @ full.r / size
    of_cones = [cone_rows(full, *cone) for cone in full.cones]
    matrix = sparse.csc_matrix(np.vstack([full.E, full.C, *of_cones]))
    right = np.concatenate([full.e, full.d, np.zeros(3 * len(of_cones))]) / size
    cones = [clarabel.ZeroConeT(len(full.e))]
    if len(full.d):
        cones.append(clarabel.NonnegativeConeT(len(full.d)))
    cones += [clarabel.SecondOrderConeT(3)] * len(of_cones)
    answer = clarabel.DefaultSolver(P, q, matrix, right, cones, settings(accuracy)).solve()
    status = str(answer.status)
    if "Infeasible" in status and "Primal" in status:
        return None, "infeasible"
    z = np.array(answer.x) * size
    if status in ("Solved", "AlmostSolved", "InsufficientProgress") and np.all(np.isfinite(z)):
        return z, "solved" if status == "Solved" else "nearly"
    return None, "unknown"


def cone_rows(full: Full, first: int, scales: np.ndarray) -> np.ndarray:
    """Return (3, n) rows -s of a cone, of the size of the others."""
    rows = np.zeros((3, full.C.shape[1]))
    rows[:, first : first + 3] = -np.diag(scales) / scales.max()
    return rows


def margin(full: Full, scale: float = 1.0) -> float:
    """Return the largest t with `E z = e`, `C z + t unit <= d`: negative where infeasible."""
    m, n = full.C.shape
    if not m:
        return np.inf
    A_ub = np.hstack([full.C, full.unit[:, None]])
    A_eq = np.hstack([full.E, np.zeros((len(full.E), 1))])
    cost = np.zeros(n + 1)
    cost[-1] = -1.0
    bounds = [(-LARGEST * scale, LARGEST * scale)] * n + [(None, 1.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = linprog(cost, A_ub, full.d, A_eq, full.e, bounds, method="highs")
    return float(found.x[-1]) if found.x is not None else -np.inf
