"""A dual certificate of optimality in the metric of the cost, by non-negative least squares.

With N the null space of E, `z = z_0 + N y` and `x = S y - s` with `cost = ½ |x|² + constant`, a
feasible x is optimal if `x + C_xᵀ mu = 0` with `mu >= 0` on rows without a gap. What is left of
this equation bounds the distance to the optimum.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from campaign.full_form import Full
from campaign.mechanics import Array


@dataclass
class Reduced:
    """The problem in x: `min ½ |x|²` with rows `C_x x <= d_x`."""

    z_0: Array
    N: Array
    S: Array
    s: Array
    C_x: Array
    d_x: Array
    least_cost: float
    at_zero: float


def reduce(full: Full) -> Reduced:
    """Return the problem without its equations."""
    U, values, Vt = np.linalg.svd(full.E)
    rank = int(np.sum(values > 1e-10 * values[0]))
    z_0 = Vt[:rank].T @ ((U.T[:rank] @ full.e) / values[:rank])
    N = Vt[rank:].T
    Q, S = np.linalg.qr(full.R @ N)
    rest = full.r - full.R @ z_0
    s = Q.T @ rest
    least = 0.5 * float(np.sum((rest - Q @ s) ** 2))
    at_zero = float(np.linalg.norm(error_at_zero(full)))
    C_x = solve_triangular(S, (full.C @ N).T, trans=1).T if len(full.C) else np.zeros((0, len(S)))
    return Reduced(z_0, N, S, s, C_x, full.d - full.C @ z_0 - C_x @ s, least, at_zero)


def error_at_zero(full: Full) -> Array:
    """Return the tasks' weighted errors without actuator forces."""
    nv, nu, _, _ = full.sizes
    without = np.delete(full.E, slice(nv, nv + nu), axis=1)
    b = np.linalg.lstsq(without, full.e, rcond=1e-10)[0][:nv]
    return full.task_root @ b - full.task_right


def clipped(full: Full, limits: Array) -> Full:
    """Return the problem whose tasks' errors without actuator forces are shortened by one factor.

    Args:
        full: the problem.
        limits: (k,) of the accelerations that tasks ask for, unweighted; the largest excess is the
            factor.
    """
    root = full.task_weight / full.cost_scale
    largest = np.where(root > 0, root * np.minimum(limits, HUGE), HUGE)
    error = error_at_zero(full)
    change = error / max(1.0, np.max(np.abs(full.task_right) / largest)) - error
    r = full.r.copy()
    r[: len(change)] -= change
    return replace(full, r=r, task_right=full.task_right - change)


HUGE = 1e200
"""Stands for a limit that is none."""


@dataclass
class Certificate:
    """What is left of the optimality conditions, relative to the size of the problem."""

    stationarity: float
    complementarity: float
    size: float
    x: Array


NEAR = (1e-12, 1e-10, 1e-8, 1e-6, 1e-5)
"""Gaps, relative to the size of x, up to which a row may be active; the best choice counts."""


def certify(reduced: Reduced, z: Array, floor: float) -> Certificate:
    """Return the best certificate of a feasible z; `floor` is the least size of a problem."""
    x = reduced.S @ (reduced.N.T @ (z - reduced.z_0)) - reduced.s
    distance = np.sqrt(max(reduced.at_zero**2 - 2 * reduced.least_cost, 0.0))
    size = float(np.linalg.norm(x) + distance + reduced.at_zero + floor)
    lengths = np.linalg.norm(reduced.C_x, axis=1)
    gaps = (reduced.d_x - reduced.C_x @ x) / np.maximum(lengths, 1e-300) / size
    found = []
    for near in NEAR:
        rows = (gaps < near) & (lengths > 1e-12 * lengths.max(initial=0.0))
        active = reduced.C_x[rows] / lengths[rows, None]
        mu = np.zeros(0)
        if rows.any():
            mu = nnls(active.T, -x / size, maxiter=100 * (len(x) + 10))[0]
        left = float(np.linalg.norm(x / size + active.T @ mu))
        found.append(Certificate(left, float(mu @ np.abs(gaps[rows])), size, x))
        if max(left, found[-1].complementarity) < GOOD:
            break
    return min(found, key=lambda c: max(c.stationarity, c.complementarity))


GOOD = 1e-9
"""A certificate below this needs no further choice of rows."""
