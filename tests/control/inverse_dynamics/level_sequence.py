"""Levels solved in sequence, the long way: NumPy, singular values, Clarabel at 1e-12.

The problem is that of `full_problem.py` in (a, p, lam, f). Each level is a QP of its own within the
hard rows and the optima of the levels before it; its solution is Clarabel's, made exact on the rows
that it finds active.
"""

from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.sparse as sparse
from full_problem import RANK_TOL, inequalities, independent

CLARABEL = 1e-12
UNMOVED = 1e-9  # a level that nothing moves, relative to its rows
NEAR = 1e-8  # conditions of the exact solution, relative


@dataclass
class Sequence:
    """What the levels come to.

    Attributes:
        feasible: whether the hard rows can be met.
        residuals: of each level, `J a - rhs` (k,), rows weighted by the root of their weight.
        a, p: acceleration and actuator forces of the last level.
        weakest: of each level, the least singular value that is not zero, of what the levels before
            leave of its rows; each row over its length in the metric of the inertia.
    """

    feasible: bool
    residuals: list
    a: np.ndarray
    p: np.ndarray
    weakest: list


def solve_levels(full, levels):
    """Return the optima of levels in sequence, and of the regularisation behind them.

    Args:
        full: the problem; of its cost only the regularisation counts.
        levels: lists of tasks (J, rhs, weight), first to last.
    """
    nv, nu = full.B.shape
    E, e, of_p, of_f = equations(full)
    C, d = inequalities(full, of_p, of_f)
    U, S, Vt = np.linalg.svd(E)
    rank = int(np.sum(RANK_TOL * S[0] < S))
    z = Vt[:rank].T @ ((U[:, :rank].T @ e) / S[:rank])
    N = Vt[rank:].T  # z + N y
    root = np.linalg.inv(np.linalg.cholesky(full.M))
    residuals, weakest = [], []
    for tasks in levels:
        J = np.vstack([np.sqrt(w)[:, None] * J for J, _, w in tasks])
        rhs = np.concatenate([np.sqrt(w) * r for _, r, w in tasks])
        A = J @ N[:nv]
        lengths = np.linalg.norm(J @ root.T, axis=1)
        weakest.append(least_singular(A @ tame(N, nv, full.M) / lengths[:, None]))
        A = A if np.linalg.norm(A, 2) > UNMOVED * np.linalg.norm(J, 2) else np.zeros_like(A)
        y, feasible = within(A, rhs - J @ z[:nv], C @ N, d - C @ z)
        if not feasible:
            return Sequence(False, [], z[:nv], z[nv : nv + nu], weakest)
        z = z + N @ y
        residuals.append(J @ z[:nv] - rhs)
        N = N @ null(A / np.linalg.norm(J, axis=1)[:, None])
    roots = [np.sqrt(full.torque_weight)[:, None] * of_p]
    roots += [np.sqrt(full.internal_weight) * full.internal @ of_f]
    R = np.vstack(roots)
    y, _ = within(R @ N, -R @ z, C @ N, d - C @ z)
    z = z + N @ y
    return Sequence(True, residuals, z[:nv], z[nv : nv + nu], weakest)


def equations(full):
    """Return E, e of dynamics and constraints, and p and f as rows over (a, p, lam, f)."""
    nv, nu = full.B.shape
    A, c = independent(full.A, full.c)
    kept, bias = independent(
        np.vstack([A, full.J]), np.concatenate([c, full.c_contact])
    )
    nf, nl = full.J.shape[0], A.shape[0]
    size = nv + nu + nl + nf
    dynamics = np.hstack([full.M, -full.B, -A.T, -full.J.T])
    still = np.hstack([kept, np.zeros((len(kept), size - nv))])
    of_p = np.hstack([np.zeros((nu, nv)), np.eye(nu), np.zeros((nu, nl + nf))])
    of_f = np.hstack([np.zeros((nf, nv + nu + nl)), np.eye(nf)])
    return np.vstack([dynamics, still]), np.concatenate([full.f, -bias]), of_p, of_f


def tame(N, nv, M):
    """Return the columns of N in which a unit is an acceleration `(aᵀ M a)^½ = 1`."""
    L = np.linalg.cholesky(M)
    U, S, Vt = np.linalg.svd(L.T @ N[:nv], full_matrices=False)
    keep = S > UNMOVED * np.linalg.norm(L, 2)
    return Vt[keep].T / S[keep]


def least_singular(A):
    S = np.linalg.svd(A, compute_uv=False)
    return S[S > 1e-9].min(initial=np.inf)


def null(A):
    U, S, Vt = np.linalg.svd(A)
    return Vt[int(np.sum(S > RANK_TOL * S.max(initial=1e-300))) :].T


def within(A, b, G, h):
    """Return y of least `|A y - b|` with `G y <= h`, and whether there is one."""
    n = A.shape[1]
    if n == 0 or (not A.any() and np.all(h >= -NEAR * (1 + np.abs(h).max()))):
        return np.zeros(n), True
    lengths = np.linalg.norm(G, axis=1)
    usable = lengths > 1e-11 * lengths.max(initial=1.0)
    G, h = G[usable] / lengths[usable, None], h[usable] / lengths[usable]
    h = np.where(h < 0, np.where(h > -1e-11 * max(1.0, np.abs(h).max(initial=0.0)), 0.0, h), h)
    scale = np.linalg.norm(A, 2) or 1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CLARABEL
    settings.max_iter = 200
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(A.T @ A) / scale**2),
        -A.T @ b / scale**2,
        sparse.csc_matrix(G),
        h,
        [clarabel.NonnegativeConeT(len(h))],
        settings,
    )
    found = solver.solve()
    if "Infeasible" in str(found.status):
        return np.zeros(n), False
    return exact(A, b, G, h, np.array(found.x), np.array(found.z), np.array(found.s)), True


def exact(A, b, G, h, y, z, s):
    """Return the optimum on the rows that are active, y itself where that is none."""
    active = z > s
    K, right = G[active], h[active]
    if len(K):
        start = np.linalg.lstsq(K, right, rcond=1e-10)[0]
        free = null(K)
    else:
        start, free = np.zeros(len(y)), np.eye(len(y))
    # nearest to y among the optima: what the level does not see stays
    start = start + free @ (free.T @ (y - start))
    step = np.linalg.lstsq(A @ free, b - A @ start, rcond=1e-10)[0] if free.size else np.zeros(0)
    better = start + free @ step
    gradient = A.T @ (A @ better - b)
    multiplier = np.linalg.lstsq(K.T, -gradient, rcond=1e-10)[0] if len(K) else np.zeros(0)
    size = 1 + np.abs(h).max(initial=0.0)
    good = np.all(G @ better - h <= NEAR * size)
    good &= np.linalg.norm(gradient + K.T @ multiplier) <= NEAR * (1 + np.linalg.norm(A.T @ b))
    return better if good else y
