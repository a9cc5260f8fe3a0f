"""The two coordinated robots of L15 along the motion that they are asked for.

Five unit links in a loop with base distance 3 l; the third link stays level at x3 = 1.5 l and
y3 = l/2 (1 - cos t). These rows fix the motion, so the states are known without integration.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from .mechanisms import five_links
from .numerics import Array, pinv, rate

B = np.array(  # of the six joint motors [L15, eq. 70]
    [
        [1.0, -1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, -1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, -1.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, -1.0, 1.0],
    ]
)
TIMES = np.linspace(0, 2 * np.pi, 61)  # s; one period
BODIES = five_links()


def pose(t: float) -> Array:
    """Return the absolute angles at a time: two-link inverse kinematics on each side."""
    height = (1 - np.cos(t)) / 2
    line, bend = np.arctan(height), np.arccos(np.hypot(1, height) / 2)
    return np.array([line + bend, line - bend, 0.0, bend - line, -bend - line])


def loop_rows(q: Array) -> Array:
    """Return `Â` of the closed loop (2, 5) [L15, eq. 63]."""
    return np.array([-np.sin(q), np.cos(q)])


def servo_rows(q: Array) -> Array:
    """Return `A_s` of x3, y3, θ3 (3, 5) [L15, eq. 68]."""
    lengths = np.array([1.0, 1.0, 0.5, 0.0, 0.0])
    return np.vstack([loop_rows(q) * lengths, [0.0, 0.0, 1.0, 0.0, 0.0]])


@dataclass(frozen=True)
class Instant:
    """Matrices at one time: the applied force `Q` without control, and both sets of rows."""

    t: float
    q: Array
    v: Array
    M: Array
    Q: Array
    A: Array
    b: Array
    A_s: Array
    b_s: Array

    def reaction(self, force: Array) -> Array:
        """Return `Qᶜ` under an applied force [L15, eq. 14]."""
        A_Minv = self.A @ np.linalg.inv(self.M)
        return np.asarray(self.A.T @ pinv(A_Minv @ self.A.T) @ (self.b - A_Minv @ force))


@cache
def instants() -> tuple[Instant, ...]:
    """Return the matrices along one period."""
    found = []
    for t in TIMES:
        q = pose(t)
        v = rate(lambda x: pose(x[0]), np.array([t]), np.ones(1))
        b = np.array([np.cos(q), np.sin(q)])
        lengths = np.array([1.0, 1.0, 0.5, 0.0, 0.0])
        b_s = np.append(b @ (lengths * v**2), 0.0) + np.array([0.0, np.cos(t) / 2, 0.0])
        found.append(
            Instant(
                t, q, v, BODIES.M(q), -BODIES.bias(q, v), loop_rows(q), b @ v**2, servo_rows(q), b_s
            )
        )
    return tuple(found)


def printed_control(x: Instant) -> Array:
    """Return u of (35) with s = 0 and a reaction that follows from `Q` alone."""
    S = x.A_s @ np.linalg.inv(x.M)
    return np.asarray(pinv(S @ B) @ (x.b_s - S @ (x.Q + x.reaction(x.Q))))


def figures_control(x: Instant) -> Array:
    """Return u of (35) with s = 0 and the reaction that feels it: linear in u."""
    S = x.A_s @ np.linalg.inv(x.M)
    K = pinv(S @ B)
    felt = np.column_stack([x.reaction(x.Q + column) - x.reaction(x.Q) for column in B.T])
    right = K @ (x.b_s - S @ (x.Q + x.reaction(x.Q)))
    return np.asarray(np.linalg.solve(np.eye(6) + K @ S @ felt, right))


def smallest_control(x: Instant) -> Array:
    """Return the control of minimum norm that realises the servo rows of the whole system."""
    Minv = np.linalg.inv(x.M)
    G = Minv - Minv @ x.A.T @ pinv(x.A @ Minv @ x.A.T) @ x.A @ Minv
    a_0 = Minv @ (x.Q + x.reaction(x.Q))
    return np.asarray(pinv(x.A_s @ G @ B) @ (x.b_s - x.A_s @ a_0))


def misses(x: Instant, u: Array, feels: bool) -> tuple[float, float]:
    """Return the residuals of the loop and of the servo rows under a control."""
    force = x.Q + B @ u
    a = np.linalg.solve(x.M, force + x.reaction(force if feels else x.Q))
    return float(np.abs(x.A @ a - x.b).max()), float(np.abs(x.A_s @ a - x.b_s).max())


def control_table() -> str:
    """Return a Markdown table of the range of each input over the period, in N m."""
    controls = [
        np.array([law(x) for x in instants()]) for law in (figures_control, smallest_control)
    ]
    rows = ["| | as in the paper's figures | minimum norm |", "| --- | --- | --- |"]
    for k in range(6):
        cells = [f"{shown(u[:, k].min())} to {shown(u[:, k].max())}" for u in controls]
        rows.append(f"| u{k + 1} | {cells[0]} | {cells[1]} |")
    return "\n".join(rows)


def shown(x: float) -> str:
    """Return a number with three decimals, never minus zero."""
    return f"{round(float(x), 3) + 0.0:.3f}"
