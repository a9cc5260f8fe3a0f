"""Rates, rows of path and end, hard and soft: an independent QP, other solvers, the C."""

import numpy as np
import pytest
import quadprog
from rti_mechanisms import cart_pole, sliding_mass

from mbcasadi.control.mpc.nonlinear import optimal_control_problem
from mbcasadi.control.mpc.ocp_solution import guess_of
from mbcasadi.control.mpc.real_time_iteration import real_time_iteration
from mbcasadi.control.mpc.solve import solve

SAME_QP = 1e-7
SAME_OPTIMUM = 1e-5  # of ipopt at residuals of 1e-9, in a flat valley
SAME_C = 1e-8
N, T, M = 12, 0.1, 2.0
WEIGHTS = {"Q": [3, 0.1], "R": 0.2, "Q_end": [10, 1]}


def predicted(x0):
    """Return (N + 1, 2, N) and (N + 1, 2): states of the mass by its forces, and without any."""
    A, B = np.array([[1, T], [0, 1]]), np.array([T**2 / 2, T]) / M
    G, free = np.zeros((N + 1, 2, N)), np.zeros((N + 1, 2))
    free[0] = x0
    for k in range(N):
        G[k + 1], free[k + 1] = A @ G[k], A @ free[k]
        G[k + 1][:, k] += B
    return G, free


def tracking(x0):
    """Return H and c of ½ uᵀ H u + cᵀ u, the cost of `WEIGHTS` to rest at zero."""
    G, free = predicted(x0)
    weights = [T * np.diag([3, 0.1])] * N + [np.diag([10.0, 1.0])]
    H = sum(g.T @ W @ g for g, W in zip(G, weights, strict=True)) + 0.2 * T * np.eye(N)
    return H, sum(g.T @ W @ f for g, W, f in zip(G, weights, free, strict=True))


def qp(H, c, rows):
    """Return the optimum under rows (C, low, high), by quadprog."""
    C = np.vstack([side * row for row, _, _ in rows for side in (1, -1)])
    b = np.concatenate(
        [side * end for _, *ends in rows for side, end in zip((1, -1), ends, strict=True)]
    )
    finite = np.isfinite(b)
    return quadprog.solve_qp(H, -c, C[finite].T, b[finite])[0]


def tick(law, x, ref, z):
    nq = x.size // 2
    return [np.array(out).ravel() for out in law(x[:nq], x[nq:], ref, z)]


def test_bounded_and_weighted_changes_of_the_control_are_those_of_an_independent_qp():
    ocp = optimal_control_problem(
        sliding_mass(M), N, T, **WEIGHTS, S=0.3, du_bounds=[[-1.0, 0.5]], u_bounds=[[-4, 3]]
    )
    x0, last = np.array([1.5, 0.4]), -0.5
    H, c = tracking(x0)
    D = np.eye(N) - np.eye(N, k=-1)
    first = np.eye(N)[0] * last
    rows = [(np.eye(N), np.full(N, -4.0), np.full(N, 3.0)), (D, first - 1.0, first + 0.5)]
    expected = qp(H + 0.3 * D.T @ D, c - 0.3 * D.T @ first, rows)
    change = np.diff(expected, prepend=last)
    assert np.isclose(change, -1.0).any()
    assert np.isclose(change, 0.5).any()
    for solver in ("ipopt", "fatrop", "sqpmethod"):
        found = solve(ocp, [*x0, last], solver=solver)
        assert found.solved, found.in_words
        np.testing.assert_allclose(found.u[:, 0], expected, atol=SAME_OPTIMUM, err_msg=solver)
    rti = real_time_iteration(ocp, shift=False)
    start = rti.z(guess_of(ocp, np.zeros((N + 1, 3)), np.zeros((N, 1))), sent=[[last]])
    u, z, status, _ = tick(rti.function, x0, ocp.parameters().ravel(), start)
    assert status == 0
    np.testing.assert_allclose(rti.trajectory(z)[1][:, 0], expected, atol=SAME_QP)
    np.testing.assert_allclose(u, expected[:1], atol=SAME_QP)


@pytest.mark.parametrize("delay", [0, 2])
def test_a_closed_loop_keeps_the_rates_whatever_is_measured(delay):
    ocp = optimal_control_problem(
        cart_pole(upright=True), 20, 0.04, Q=[1, 10, 0.1, 0.1], R=0.01, du_bounds=[[-1.5, 1.5]]
    )
    rti, rng = real_time_iteration(ocp, delay=delay), np.random.default_rng(0)
    z, controls, statuses = rti.controller.z0, [0.0], []
    for k in range(30):
        x = 0.3 * rng.standard_normal(4)
        x[0] = np.nan if k % 7 == 6 else x[0]
        u, z, status, _ = tick(rti.function, x, ocp.parameters().ravel(), z)
        controls.append(u[0])
        statuses.append(int(status[0]))
    assert {0, 3} == set(statuses)
    changes = np.abs(np.diff(controls))
    assert changes.max() == pytest.approx(1.5, abs=SAME_QP)
