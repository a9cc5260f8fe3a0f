"""Rates, rows of path and end, hard and soft: an independent QP, other solvers, the C."""

import numpy as np
import pytest
import quadprog
from support.mpc_mechanisms import cart_pole, sliding_mass
from support.pages import equal_but_for_rounding
from support.problems import problem

from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.make_problem import optimal_control_problem
from mbcasadi.mpc.ocp.solution import initial_guess
from mbcasadi.mpc.ocp.solver import solve_ocp
from mbcasadi.mpc.ocp.stage import stage_symbols
from mbcasadi.mpc.ocp.stage_bounds import StageBounds
from mbcasadi.mpc.rti.controller import real_time_iteration
from mbcasadi.qp.rows import Bounded

SAME_QP = 1e-7
SAME_OPTIMUM = 1e-5  # of ipopt at residuals of 1e-9, in a flat valley
SAME_C = 1e-8
N, T, M = 12, 0.1, 2.0
WEIGHTS = {"Q": [3, 0.1], "R": 0.2, "Q_end": [10, 1]}


def predict(x0):
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
    G, free = predict(x0)
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
    ocp = problem(
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
        solution = solve_ocp(ocp, [*x0, last], solver=solver)
        assert solution.solved, solution.in_words
        np.testing.assert_allclose(solution.u[:, 0], expected, atol=SAME_OPTIMUM, err_msg=solver)
    rti = real_time_iteration(ocp, shift=False)
    start = rti.z_from(initial_guess(ocp, np.zeros((N + 1, 3)), np.zeros((N, 1))), pending=[[last]])
    u, z, status, *_ = tick(rti.function, x0, ocp.parameters().ravel(), start)
    assert status == 0
    np.testing.assert_allclose(rti.trajectory(z)[1][:, 0], expected, atol=SAME_QP)
    np.testing.assert_allclose(u, expected[:1], atol=SAME_QP)


@pytest.mark.parametrize("delay", [0, 2])
def test_a_closed_loop_keeps_the_rates_whatever_is_measured(delay):
    ocp = optimal_control_problem(
        cart_pole(upright=True),
        20,
        0.04,
        [Cost(Q=[1, 10, 0.1, 0.1], R=0.01), StageBounds(du=[[-1.5, 1.5]])],
    )
    rti, rng = real_time_iteration(ocp, delay=delay), np.random.default_rng(0)
    plan = initial_guess(ocp, np.zeros((21, 5)), np.full((20, 1), 8.0))
    z, controls, statuses = rti.z_from(plan), [0.0], []
    for k in range(30):
        x = 0.3 * rng.standard_normal(4)
        x[0] = np.nan if k % 7 == 0 else x[0]  # at first too, where the plan is far away
        u, z, status, *_ = tick(rti.function, x, ocp.parameters().ravel(), z)
        controls.append(u[0])
        statuses.append(int(status[0]))
    assert {0, 3} == set(statuses)
    changes = np.abs(np.diff(controls))
    assert changes.max() == pytest.approx(1.5, abs=SAME_QP)


def rail(**speed):
    """Return the mass, which ends at rest at zero, with a bounded speed; hard unless priced."""
    system = sliding_mass(M)
    s = stage_symbols(system)
    return problem(
        system,
        N,
        T,
        **WEIGHTS,
        symbols=s,
        u_bounds=[[-4, 3]],
        path=[Bounded(s.v + 0.1 * s.u, -0.9, 1.2, name="speed", **speed)],
        end=[Bounded(s.v, 0, 0, name="stop")],
    )


def rail_qp(x0, linear=None, quadratic=0.0):
    """Return the forces of `rail` by quadprog, slacks as unknowns; None where it is infeasible."""
    G, free = predict(x0)
    H, c = tracking(x0)
    k = 0 if linear is None else N
    speed = G[:N, 1] + 0.1 * np.eye(N)
    wide = np.zeros((N, k))
    give = np.eye(N)[:, :k]
    stop = np.hstack([G[N:, 1], np.zeros((1, k))])
    rows = [
        (np.hstack([np.eye(N), wide]), np.full(N, -4.0), np.full(N, 3.0)),
        (np.hstack([speed, -give]), np.full(N, -np.inf), 1.2 - free[:N, 1]),
        (np.hstack([speed, give]), -0.9 - free[:N, 1], np.full(N, np.inf)),
        (stop, -free[N:, 1], -free[N:, 1]),
    ]
    if k:
        rows.append((np.hstack([np.zeros((N, N)), np.eye(N)]), np.zeros(N), np.full(N, np.inf)))
    whole = np.zeros((N + k, N + k))
    whole[:N, :N] = H
    whole[N:, N:] = quadratic * np.eye(k)
    try:
        return qp(whole, np.append(c, np.full(k, linear or 0.0)), rows)
    except ValueError:
        return None


PRICES = {
    "hard": ({}, {}),
    "both": ({"linear_penalty": 0.3, "quadratic_penalty": 2.0}, {"linear": 0.3, "quadratic": 2.0}),
    "linear": ({"linear_penalty": 5.0}, {"linear": 5.0, "quadratic": 0.05}),
    "quadratic": ({"quadratic_penalty": 4.0}, {"linear": 0.0, "quadratic": 4.0}),
}


@pytest.mark.parametrize("kind", PRICES)
def test_rows_of_path_and_end_are_those_of_an_independent_qp_or_called_infeasible(kind):
    speed, prices = PRICES[kind]
    ocp, rng = rail(**speed), np.random.default_rng(1)
    rti = real_time_iteration(ocp, shift=False)
    ref, actual = ocp.parameters().ravel(), {0: 0, 2: 0}
    missed = []
    for x0 in rng.uniform([-2.5, -2.0], [2.5, 2.0], (60, 2)):
        guess = initial_guess(ocp, rng.standard_normal((N + 1, 2)), rng.standard_normal((N, 1)))
        _, z, status, *_ = tick(rti.function, x0, ref, rti.z_from(guess))
        expected = rail_qp(x0, **prices)
        assert int(status[0]) == (2 if expected is None else 0)
        actual[int(status[0])] += 1
        if expected is not None:
            u = rti.trajectory(z)[1][:, 0]
            np.testing.assert_allclose(u, expected[:N], atol=SAME_QP)
            missed.append(expected[N:].max(initial=0.0))
            assert bool(rti.violations(z)) == (missed[-1] > 1e-6)
    assert actual[0] > 20
    assert actual[2] > (5 if kind == "hard" else 0)
    if kind != "hard":
        assert max(missed) > 0.1
        assert min(missed) < 1e-9


def test_a_soft_row_is_the_hard_one_while_its_penalty_exceeds_the_multiplier():
    x0 = [1.9, -0.4]
    hard = solve_ocp(rail(), x0)
    # Behind gap, start and row of the first interval: gap and row of each other one, then the end.
    multiplier = np.abs(np.append(hard.lam_g[4], hard.lam_g[5:-1].reshape(-1, 3)[:, 2])).max()
    assert hard.solved
    assert multiplier > 0.1
    for solver in ("ipopt", "fatrop", "sqpmethod"):
        dear = solve_ocp(rail(linear_penalty=1.1 * multiplier), x0, solver=solver)
        cheap = solve_ocp(rail(linear_penalty=0.5 * multiplier), x0, solver=solver)
        assert dear.solved, dear.in_words
        assert cheap.solved, cheap.in_words
        np.testing.assert_allclose(dear.u, hard.u, atol=SAME_OPTIMUM)
        assert dear.violations == ()
        assert len(cheap.violations) == 1
    expected = rail_qp(x0, linear=0.5 * multiplier, quadratic=0.5e-2 * multiplier)
    np.testing.assert_allclose(cheap.u[:, 0], expected[:N], atol=SAME_OPTIMUM)
    at = np.flatnonzero(expected[N:] > 1e-6)
    spans = f"{at[0]}..{at[-1]}" if at.size > 1 else f"{at[0]}"
    said = f"speed at sample{'s' * (at.size > 1)} {spans} falls below its lower bound by up to"
    words = f"{said} {expected[N:].max():.3g}"
    assert equal_but_for_rounding(cheap.violations[0], words), cheap.violations
