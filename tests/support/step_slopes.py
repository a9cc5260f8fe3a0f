"""Slopes of a step along tangents, by differences."""

import casadi as ca
import numpy as np

from mbcasadi.mpc.rti.stagewise import stagewise
from mbcasadi.qp.stagewise import interval_blocks


def assert_slopes(problem, x, u, p):
    """The interval about a state has the slopes of the step, and the gap of a guess beside it."""
    form, size, nu, N = problem.motion, 1e-6, problem.nu, problem.horizon
    nx = form.tangent.size2_out(0)
    x_next = np.array(problem.dynamics(x, u, p)).ravel()
    kept = stagewise(problem, (np.tile(x, (N + 1, 1)).T, np.tile(u, (N, 1)).T))
    A, d = blocks(kept.problem, kept.interval(x, u, p, x_next, 0))
    np.testing.assert_allclose(d, 0, atol=1e-12)
    beside = form.moved(x_next, 0.1 * np.sin(np.arange(nx)))
    _, d = blocks(kept.problem, kept.interval(x, u, p, beside, 0))
    np.testing.assert_allclose(d, np.array(form.gap(beside, x_next)).ravel(), atol=1e-12)
    for i, step in enumerate(size * np.eye(nu + nx)):
        ends = [
            problem.dynamics(form.moved(x, sign * step[nu:]), u + sign * step[:nu], p)
            for sign in (1, -1)
        ]
        slope = np.subtract(*(np.array(form.gap(x_next, end)).ravel() for end in ends)) / (2 * size)
        np.testing.assert_allclose(A[:, i], slope, atol=2e-6 * max(1, np.abs(slope).max()))


def blocks(problem, column):
    """Return A (nx, nz) and d of an interval."""
    symbol = ca.MX.sym("column", problem.column_size)
    found = interval_blocks(problem, symbol)
    A, d = ca.Function("blocks", [symbol], [ca.densify(found.A), found.d])(column)
    return np.array(A), np.array(d).ravel()
