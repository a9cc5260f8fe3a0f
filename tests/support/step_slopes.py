"""Slopes of an interval along tangents, by differences."""

import casadi as ca
import numpy as np

from mbcasadi.mpc.rti.stagewise import stagewise
from mbcasadi.qp.stagewise import interval_blocks


def assert_slopes(problem, x, u, p):
    """The interval about a state has the slopes of step, cost and path, and the gap of a guess.

    Its Hessian is that of the slopes of residuals.
    """
    form, size, nu, N = problem.motion, 1e-6, problem.nu, problem.horizon
    nx = form.tangent.size2_out(0)
    x_next = np.array(problem.dynamics(x, u, p)).ravel()
    kept = stagewise(problem, (np.tile(x, (N + 1, 1)).T, np.tile(u, (N, 1)).T))
    A, d, H, g, G = blocks(kept.problem, kept.interval(x, u, p, x_next, 0))
    np.testing.assert_allclose(d.ravel(), 0, atol=1e-12)
    beside = form.moved(x_next, 0.1 * np.sin(np.arange(nx)))
    gap = blocks(kept.problem, kept.interval(x, u, p, beside, 0))[1]
    np.testing.assert_allclose(gap, np.array(form.gap(beside, x_next)), atol=1e-12)

    def values(step):
        at = form.moved(x, step[nu:]), u + step[:nu], p
        parts = form.gap(x_next, problem.dynamics(*at)), problem.residual(*at), problem.path(*at)
        return [np.array(part).ravel() for part in parts]

    ends = [[values(sign * step) for sign in (1, -1)] for step in size * np.eye(nu + nx)]
    slopes = [
        np.array([(above[i] - below[i]) / (2 * size) for above, below in ends]).T for i in range(3)
    ]
    r, J = np.array(problem.residual(x, u, p)).ravel(), slopes[1]
    path = G[len(G) - len(slopes[2]) :]
    pairs = (A, slopes[0]), (path, slopes[2]), (H, J.T @ J), (g.ravel(), J.T @ r)
    for found, expected in pairs:
        largest = np.abs(expected).max(axis=0, initial=1)
        assert np.all(np.abs(found - expected) <= 2e-6 * largest)


def blocks(problem, column):
    """Return A (nx, nz), d, H, g and G of an interval."""
    symbol = ca.MX.sym("column", problem.column_size)
    outputs = [ca.densify(part) for part in interval_blocks(problem, symbol)[:5]]
    return [np.array(part) for part in ca.Function("blocks", [symbol], outputs)(column)]
