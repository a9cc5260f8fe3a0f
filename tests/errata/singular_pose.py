"""The slider-crank in Cartesian coordinates, driven through its singular poses.

Unit links, unit masses at the crank pin (x1, y1) and at the slider (x2, 0). Where the crank
stands upright both rows of the constraint fall together. In the two angles of A05 §8 the
manifold is a straight line, which every Runge-Kutta method keeps; here it is curved.
"""

import numpy as np
from scipy.integrate import DOP853

from .mechanisms import GRAVITY
from .numerics import Array

DROPPED = 1e-8  # m; singular values of A below this count as zero
COLLAPSED = 1e-5  # s; undisturbed steps are 1e-2 s
RTOL = 1e-11
DURATION = 2.0  # s; two to three passages through each singular pose
SPEEDS = (5.0, 5.6, 6.8)  # rad/s, of the crank at the start
MAX_STEPS = 2000


def rows(q: Array) -> Array:
    """Return the Jacobian A of `loop`, linear in q: its rate is the same function of v."""
    x1, y1, x2 = q
    return np.array([[x1, y1, 0.0], [x1 - x2, y1, x2 - x1]])


def loop(q: Array) -> Array:
    """Return half of each link's squared length, less one half."""
    x1, y1, x2 = q
    return np.array([x1**2 + y1**2 - 1, (x2 - x1) ** 2 + y1**2 - 1]) / 2


def inverse(A: Array) -> Array:
    """Return ``A⁺`` with small singular values dropped."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    kept = s > DROPPED
    return np.asarray((Vt[kept].T / s[kept]) @ U[:, kept].T)


def project(y: Array) -> Array:
    """Return the state on the manifold: Newton's iteration on q [A05, eq. 39], then ``P v``."""
    q, v = y[:3].copy(), y[3:]
    size = np.inf
    for _ in range(8):
        gap = loop(q)
        if np.abs(gap).max() >= size:
            break
        size = np.abs(gap).max()
        q -= inverse(rows(q)) @ gap
    A = rows(q)
    return np.concatenate([q, v - inverse(A) @ (A @ v)])


def slope(y: Array) -> Array:
    """Return ``(v, a)`` with ``a = P g - A⁺ Ȧ v`` (the inertia is the identity)."""
    q, v = y[:3], y[3:]
    A = rows(q)
    A_pinv = inverse(A)
    free = np.array([0.0, -GRAVITY, 0.0])
    return np.concatenate([v, free - A_pinv @ (A @ free + rows(v) @ v)])


def run(speed: float, every_stage: bool) -> tuple[float, float]:
    """Return the shortest step and the relative change of energy of one run."""
    angle = 0.8
    spin = speed * np.array([-np.sin(angle), np.cos(angle), -2 * np.sin(angle)])
    y = np.concatenate([[np.cos(angle), np.sin(angle), 2 * np.cos(angle)], spin])
    start = energy(y)

    def fun(_t: float, y: Array) -> Array:
        return slope(project(y) if every_stage else y)

    solver = DOP853(fun, 0.0, y, DURATION, rtol=RTOL, atol=RTOL)
    steps: list[float] = []
    while solver.status == "running" and len(steps) < MAX_STEPS:
        solver.step()
        steps.append(solver.step_size)
        solver.y = project(solver.y)
        if not every_stage:
            solver.f = fun(solver.t, solver.y)
    shortest = 0.0 if solver.status == "failed" else min(steps[2:-1])
    return shortest, abs(energy(solver.y) / start - 1)


def energy(y: Array) -> float:
    """Return kinetic and potential energy."""
    return float(y[3:] @ y[3:] / 2 + GRAVITY * y[1])


def share_collapsed(every_stage: bool) -> float:
    """Return the share of runs whose step falls below `COLLAPSED` or whose solver gives up."""
    return float(np.mean([run(w, every_stage)[0] < COLLAPSED for w in SPEEDS]))
