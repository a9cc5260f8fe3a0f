"""Convex QPs by quadprog, which shares nothing with our solvers."""

from typing import ClassVar

import numpy as np
import quadprog


def solve_qp(H, g, *rows):
    """Return y of `min ½ yᵀ H y + gᵀ y`, and whether a row is active; None where rows contradict.

    Args:
        H, g: of the cost.
        rows: (C, lower, upper) of `lower <= C y <= upper`; infinite sides are none.
    """
    C = np.vstack([side * row for row, _, _ in rows for side in (1, -1)])
    ends = [
        side * np.asarray(e, float)
        for _, *two in rows
        for side, e in zip((1, -1), two, strict=True)
    ]
    finite = np.isfinite(np.concatenate(ends))
    C, b = C[finite], np.concatenate(ends)[finite]
    try:
        y, *_, multipliers, _ = quadprog.solve_qp(H, -g, C.T, b)
    except ValueError as error:
        if "inconsistent" not in str(error):
            raise
        return None, False
    return y, bool(np.any(multipliers > 0))


def condensed_solution(c, theta):
    """Return the same of a condensed MPC at its parameters."""
    offset = c.D @ theta + c.c_0
    return solve_qp(c.H, c.G @ theta + c.g_0, (c.C, c.lower - offset, c.upper - offset))


class MassOnRail:
    """A mass that is pushed: its QP over N samples of T from the motion in closed form.

    `weights` are of the cost of `mpc.Cost` to rest at `goal`.
    """

    N, T, mass = 12, 0.1, 2.0
    weights: ClassVar = {"Q": [3, 0.1], "R": 0.2, "Q_end": [10, 1]}

    def __init__(self, x0, goal=0.0):
        N, T = self.N, self.T
        A, B = np.array([[1, T], [0, 1]]), np.array([T**2 / 2, T]) / self.mass
        self.G, self.free = np.zeros((N + 1, 2, N)), np.zeros((N + 1, 2))
        self.free[0] = x0
        for k in range(N):
            self.G[k + 1], self.free[k + 1] = A @ self.G[k], A @ self.free[k]
            self.G[k + 1][:, k] += B
        Q, R, Q_end = self.weights.values()
        weights = [T * np.diag(Q)] * N + [np.diag(Q_end)]
        gaps = self.free - [goal, 0.0]
        pairs = list(zip(self.G, weights, gaps, strict=True))
        self.H = sum(g.T @ W @ g for g, W, _ in pairs) + R * T * np.eye(N)
        self.g = sum(g.T @ W @ f for g, W, f in pairs)

    def forces(self, low, high):
        """Return rows of bounded forces."""
        return np.eye(self.N), np.full(self.N, low), np.full(self.N, high)
