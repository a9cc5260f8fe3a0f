"""Levels solved in sequence, the long way: NumPy, singular values, quadprog.

The problem is that of `full_problem.py` in (a, p, lam, f). Each level is a QP of its own within the
hard rows and the optima of the levels before it. quadprog wants it strictly convex: a proximal term
makes it so, around the solution of the pass before, until nothing of it is left.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import quadprog
from full_problem import RANK_TOL, column, equations, full_problem, inequalities, numbers

from mbcasadi.control.tasks.task import own_slices

SHARE = 1e-4  # of the proximal term, relative to the level
PASSES = 40
PRESSED = 1e-9  # a multiplier above this share of the residual at the start is not rounding
ROUNDING = 1e-11  # a bound this near to a point that meets it is met
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


def solve_levels(full, levels, usual):
    """Return the optima of levels in sequence, and of the regularisation behind them.

    Args:
        full: the problem; of its cost only the regularisation counts.
        levels: lists of tasks (J, rhs, weight), first to last.
        usual: of each level, the usual length of its rows J in the metric of the inertia.
    """
    nv, nu = full.B.shape
    E, e, of_p, of_f = equations(full)
    C, d = inequalities(full, of_p, of_f)
    U, S, Vt = np.linalg.svd(E)
    rank = int(np.sum(RANK_TOL * S[0] < S))
    z = Vt[:rank].T @ ((U[:, :rank].T @ e) / S[:rank])
    N = Vt[rank:].T  # z + N y
    residuals, weakest = [], []
    for tasks, lengths in zip(levels, usual, strict=True):
        J = np.vstack([np.sqrt(w)[:, None] * J for J, _, w in tasks])
        rhs = np.concatenate([np.sqrt(w) * r for _, r, w in tasks])
        A = J @ N[:nv]
        scale = np.concatenate([np.sqrt(w) for _, _, w in tasks]) * lengths
        weakest.append(least_singular(A @ tame(N, nv, full.M) / scale[:, None]))
        A = A if np.linalg.norm(A, 2) > UNMOVED * np.linalg.norm(J, 2) else np.zeros_like(A)
        y, feasible, pressed = within(A, rhs - J @ z[:nv], C @ N, d - C @ z)
        if not feasible:
            return Sequence(False, [], z[:nv], z[nv : nv + nu], weakest)
        z = z + N @ y
        residuals.append(J @ z[:nv] - rhs)
        N = N @ null(A / np.linalg.norm(J, axis=1)[:, None])
        # a row with a multiplier is active at every optimum of this level
        N = N @ null((C @ N / np.linalg.norm(C, axis=1)[:, None])[pressed])
    roots = [np.sqrt(full.torque_weight)[:, None] * of_p]
    roots += [np.sqrt(full.internal_weight) * full.internal @ of_f]
    R = np.vstack(roots)
    y, *_ = within(R @ N, -R @ z, C @ N, d - C @ z)
    z = z + N @ y
    return Sequence(True, residuals, z[:nv], z[nv : nv + nu], weakest)


def tame(N, nv, M):
    """Return the columns of N in which a unit is an acceleration `(aᵀ M a)^½ = 1`."""
    L = np.linalg.cholesky(M)
    _, S, Vt = np.linalg.svd(L.T @ N[:nv], full_matrices=False)
    keep = UNMOVED * np.linalg.norm(L, 2) < S
    return Vt[keep].T / S[keep]


def least_singular(A):
    S = np.linalg.svd(A, compute_uv=False)
    return S[S > 1e-9].min(initial=np.inf)


def null(A):
    """Return a null basis of rows that have usual lengths of one."""
    if not len(A):
        return np.eye(A.shape[1])
    _, S, Vt = np.linalg.svd(A)
    return Vt[int(np.sum(RANK_TOL < S)) :].T


def within(A, b, G, h):
    """Return y of least `|A y - b|` with `G y <= h`, whether there is one, and rows that press."""
    n = A.shape[1]
    if n == 0 or (not A.any() and np.all(h >= -NEAR * (1 + np.abs(h).max()))):
        return np.zeros(n), True, np.zeros(len(h), dtype=bool)
    lengths = np.linalg.norm(G, axis=1)
    usable = lengths > 1e-11 * lengths.max(initial=1.0)
    G, h = G[usable] / lengths[usable, None], h[usable] / lengths[usable]
    h = np.where(np.abs(h) <= ROUNDING * (1 + np.abs(h).max(initial=0.0)), np.maximum(h, 0), h)
    share = SHARE * (np.linalg.norm(A, 2) or 1.0)
    inverse = np.linalg.inv(np.linalg.qr(np.vstack([A, share * np.eye(n)]), mode="r"))
    y, pressed = np.zeros(n), np.zeros(len(usable), dtype=bool)
    for _ in range(PASSES):
        linear = A.T @ b + share**2 * y
        try:
            found = quadprog.solve_qp(inverse, linear, -G.T, -h, factorized=True)
        except ValueError:
            return np.zeros(n), False, pressed
        y, multiplier = found[0], found[4]
    pressed[usable] = multiplier > PRESSED * np.linalg.norm(A, 2) * np.linalg.norm(b)
    return y, True, pressed


def task_numbers(law, q, v, ref):
    """Return the tasks of a law as (J, rhs, weight) by their names."""
    found = {}
    for task, gains in zip(law.tasks, law.gains, strict=True):
        q_x, v_x = ca.SX.sym("q", law.system.nq), ca.SX.sym("v", law.system.nv)
        part = {name: ca.SX(ca.DM(ref[place])) for name, place in law.reference_slices.items()}
        rows = task.rows(law.system, q_x, v_x, own_slices(task, law.system, part), gains)
        parts = ca.Function("task", [q_x, v_x], [ca.densify(rows.J), rows.a_des - rows.c])(q, v)
        found[task.name] = (numbers(parts[0]), column(parts[1]), gains.weight)
    return found


def differences(law, solution, q, v, ref, *, contacts=(), mask=None):
    """Return the sequence of a law's levels, and for each level the largest difference of a row.

    Each row is divided by its length in the metric of the inertia times `(aᵀ M a)^½`.
    """
    tasks = task_numbers(law, q, v, ref)
    full = full_problem(
        law.system, q, v, [], contacts, law.system.limits.ctrl, mask, weights=law.force_weights
    )
    levels = [[tasks[name] for name in level] for level in law.levels]
    starts = np.cumsum([0] + [len(tasks[task.name][1]) for task in law.tasks])
    reach = {
        task.name: law.stages.scales.reach[first:end]
        for task, first, end in zip(law.tasks, starts[:-1], starts[1:], strict=True)
    }
    usual = [np.concatenate([reach[name] for name in level]) for level in law.levels]
    sequence = solve_levels(full, levels, usual)
    if not sequence.feasible:
        return sequence, []
    L = np.linalg.cholesky(full.M)
    size, found = np.linalg.norm(L.T @ sequence.a), []
    for level, residual in zip(levels, sequence.residuals, strict=True):
        J = np.vstack([J for J, _, _ in level])
        root = np.concatenate([np.sqrt(w) for _, _, w in level])
        ours = root * (J @ solution.a - np.concatenate([rhs for _, rhs, _ in level]))
        scale = root * np.linalg.norm(np.linalg.solve(L, J.T), axis=0) * size
        found.append(np.abs((ours - residual) / scale).max())
    return sequence, found
