"""Rates, rows of path and end, hard and soft: an independent QP, other solvers."""

import numpy as np
import pytest
from support.linear_mpc_cases import row_values
from support.mpc_mechanisms import balance, sliding_mass
from support.pages import equal_but_for_rounding
from support.peer_qp import MassOnRail, solve_qp
from support.problems import problem

from mbcasadi import mpc

SAME_QP = 1e-7
SAME_OPTIMUM = 1e-5  # of ipopt at residuals of 1e-9, in a flat valley
N, T, WEIGHTS = MassOnRail.N, MassOnRail.T, MassOnRail.weights


def test_bounded_and_weighted_changes_of_the_control_are_those_of_an_independent_qp():
    bounds = {"du_bounds": [[-1.0, 0.5]], "u_bounds": [[-4, 3]]}
    ocp = problem(sliding_mass(), N, T, **WEIGHTS, S=0.3, **bounds)
    x0, last = np.array([1.5, 0.4]), -0.5
    peer, D = MassOnRail(x0), np.eye(N) - np.eye(N, k=-1)
    first = np.eye(N)[0] * last
    rows = peer.forces(-4, 3), (D, first - 1.0, first + 0.5)
    expected, _ = solve_qp(peer.H + 0.3 * D.T @ D, peer.g - 0.3 * D.T @ first, *rows)
    change = np.diff(expected, prepend=last)
    assert np.isclose(change, -1.0).any()
    assert np.isclose(change, 0.5).any()
    for solver in ("ipopt", "fatrop", "sqpmethod"):
        solution = mpc.solve_ocp(ocp, [*x0, last], solver=solver)
        assert solution.solved, solution.in_words
        np.testing.assert_allclose(solution.u[:, 0], expected, atol=SAME_OPTIMUM, err_msg=solver)
    rti = mpc.real_time_iteration(ocp, shift=False)
    start = rti.z_from(
        mpc.initial_guess(ocp, np.zeros((N + 1, 3)), np.zeros((N, 1))), pending=[[last]]
    )
    u, z, status, *_ = row_values(rti.function(*x0, ocp.parameters().ravel(), start))
    assert status == 0
    np.testing.assert_allclose(rti.trajectory(z)[1][:, 0], expected, atol=SAME_QP)
    np.testing.assert_allclose(u, expected[:1], atol=SAME_QP)


@pytest.mark.parametrize("delay", [0, 2])
def test_a_closed_loop_keeps_the_rates_whatever_is_measured(delay):
    ocp = balance(Q_end=None, du_bounds=[[-1.5, 1.5]])
    rti, rng = mpc.real_time_iteration(ocp, delay=delay), np.random.default_rng(0)
    plan = mpc.initial_guess(ocp, np.zeros((21, 5)), np.full((20, 1), 8.0))
    z, controls, statuses = rti.z_from(plan), [0.0], []
    for k in range(30):
        x = 0.3 * rng.standard_normal(4)
        x[0] = np.nan if k % 7 == 0 else x[0]  # at first too, where the plan is far away
        u, z, status, *_ = row_values(rti.function(x[:2], x[2:], ocp.parameters().ravel(), z))
        controls.append(u[0])
        statuses.append(int(status[0]))
    assert {0, 3} == set(statuses)
    changes = np.abs(np.diff(controls))
    assert changes.max() == pytest.approx(1.5, abs=SAME_QP)


def rail(**speed):
    """Return the mass, which ends at rest at zero, with a bounded speed; hard unless priced."""
    system = sliding_mass()
    s = mpc.stage_symbols(system)
    speed = mpc.Bounded(s.v + 0.1 * s.u, -0.9, 1.2, name="speed", **speed)
    rows = {"path": [speed], "end": [mpc.Bounded(s.v, 0, 0, name="stop")]}
    return problem(system, N, T, **WEIGHTS, **rows, symbols=s, u_bounds=[[-4, 3]])


def rail_qp(x0, linear=None, quadratic=0.0):
    """Return the forces of `rail` and its slacks by quadprog; None where it is infeasible."""
    peer, k = MassOnRail(x0), 0 if linear is None else N
    G, free, none = peer.G, peer.free, np.full(N, np.inf)
    pushes, slacks = np.eye(N + k)[:N], np.eye(N + k)[N:]
    speed = G[:N, 1] @ pushes + 0.1 * pushes
    give = slacks if k else 0.0
    rows = [
        (pushes, np.full(N, -4.0), np.full(N, 3.0)),
        (speed - give, -none, 1.2 - free[:N, 1]),
        (speed + give, -0.9 - free[:N, 1], none),
        (G[N:, 1] @ pushes, -free[N:, 1], -free[N:, 1]),
        (slacks, np.zeros(k), none[:k]),
    ]
    cost = pushes.T @ peer.H @ pushes + quadratic * slacks.T @ slacks
    return solve_qp(cost, np.append(peer.g, np.full(k, linear or 0.0)), *rows)[0]


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
    rti = mpc.real_time_iteration(ocp, shift=False)
    ref, actual = ocp.parameters().ravel(), {0: 0, 2: 0}
    missed = []
    for x0 in rng.uniform([-2.5, -2.0], [2.5, 2.0], (60, 2)):
        guess = mpc.initial_guess(ocp, rng.standard_normal((N + 1, 2)), rng.standard_normal((N, 1)))
        _, z, status, *_ = row_values(rti.function(*x0, ref, rti.z_from(guess)))
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
    hard = mpc.solve_ocp(rail(), x0)
    # Behind gap, start and row of the first interval: gap and row of each other one, then the end.
    multiplier = np.abs(np.append(hard.lam_g[4], hard.lam_g[5:-1].reshape(-1, 3)[:, 2])).max()
    assert hard.solved
    assert multiplier > 0.1
    for solver in ("ipopt", "fatrop", "sqpmethod"):
        dear = mpc.solve_ocp(rail(linear_penalty=1.1 * multiplier), x0, solver=solver)
        cheap = mpc.solve_ocp(rail(linear_penalty=0.5 * multiplier), x0, solver=solver)
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
