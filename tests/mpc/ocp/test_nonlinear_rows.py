"""Soft rows and rates in whole problems: what is out of reach, and collocation beside shooting."""

import numpy as np
import pytest
from support.mpc_mechanisms import cart_pole, sliding_mass

from mbcasadi.mpc.ocp.collocation import collocation_guess, direct_collocation
from mbcasadi.mpc.ocp.constraints import describe_violations, row_set
from mbcasadi.mpc.ocp.make_problem import optimal_control_problem
from mbcasadi.mpc.ocp.solution import initial_guess
from mbcasadi.mpc.ocp.solver import solve
from mbcasadi.mpc.ocp.stage import Bounded, stage_symbols
from mbcasadi.mpc.rti.controller import real_time_iteration

SOLVERS = ("ipopt", "sqpmethod", "fatrop")
SAME_OPTIMUM = 1e-6
SAME_STEP = 2e-4  # of methods of order 4, one explicit and one implicit, 20 steps of 0.04 s


def out_of_reach():
    """Return a mass of 1 kg that is asked to stand 9 m away after half a second of 1 N."""
    system = sliding_mass(1.0)
    s = stage_symbols(system)
    goal = Bounded(s.q, 9.001, 9.001, linear_penalty=50.0, name="goal")
    slow = Bounded(s.v, upper=0.3, quadratic_penalty=1e-3, name="slow")
    return optimal_control_problem(
        system, 5, 0.1, R=1e-3, symbols=s, u_bounds=[[-1, 1]], end=[goal], path=[slow]
    )


def test_what_is_out_of_reach_is_named_with_what_it_misses():
    ocp = out_of_reach()
    said = (
        "slow at sample 4 exceeds its upper bound by up to 0.1",
        "goal at sample 5 falls below its lower bound by up to 8.88",  # 9.001 - ½ 0.5²
    )
    for name in SOLVERS:
        solution = solve(ocp, [0, 0], solver=name)
        assert solution.solved, (name, solution.in_words)
        np.testing.assert_allclose(solution.u, 1.0, atol=SAME_OPTIMUM)
        assert solution.violations == said, name
    rti = real_time_iteration(ocp, shift=False)
    _, z, status, *_ = rti.function(0, 0, ocp.parameters().ravel(), rti.controller.z0)
    assert int(status) == 0
    assert rti.violations(z) == said
    best = solve(ocp, [0, 0])
    miss, price = 8.876, 50.0 + 0.5 * 0.5 * 8.876  # ρ₂ is a hundredth of ρ₁
    cost = 0.1 * 1e-3 * 5 / 2 + 1e-3 * 0.1**2 / 2 + miss * price
    assert best.cost == pytest.approx(cost, rel=1e-6)


def test_collocation_has_rates_and_soft_rows_as_shooting_has():
    system = cart_pole(upright=True)
    s = stage_symbols(system)
    price = {"linear_penalty": 0.4, "quadratic_penalty": 1.0}
    ocp = optimal_control_problem(
        system,
        20,
        0.04,
        Q=[1, 10, 0.1, 0.1],
        R=0.01,
        Q_end=[40, 200, 10, 10],
        S=0.01,
        du_bounds=[[-3, 3]],
        symbols=s,
        path=[Bounded(s.v[0], -0.3, 0.4, name="speed", **price)],
    )
    x0 = [0.2, 0.15, 0.0, 0.0, -1.0]
    shot = solve(ocp, x0)
    other = direct_collocation(ocp, system)
    solution = solve(other, x0, guess=collocation_guess(other, system, shot))
    assert shot.solved, shot.in_words
    assert solution.solved, solution.in_words
    np.testing.assert_allclose(solution.x, shot.x, atol=SAME_STEP)
    change = np.diff(solution.u[:, 0], prepend=-1.0)
    np.testing.assert_allclose(solution.x[1:, 4], solution.u[:, 0], atol=SAME_OPTIMUM)
    assert np.abs(change).max() == pytest.approx(3.0, abs=SAME_OPTIMUM)
    assert [one[:5] for one in solution.violations] == ["speed"]
    assert [one[:5] for one in shot.violations] == ["speed"]


def test_a_guess_comes_with_the_slacks_that_it_needs():
    rows = row_set(
        np.array([[-1.0, 2.0], [0.0, np.inf], [-1, 1], [0, 5]]),
        np.array([[3.0, 1.0], [0.0, 2.0], [np.inf, np.inf]]),
    )
    assert (rows.m, rows.k, rows.signed) == (5, 2, [0])
    y = np.array([[2.5, -0.25, 3, 3], [-1.75, 4, 0, 0], [0, 1, 0, 9]])
    np.testing.assert_allclose(rows.least_slacks(y), [[0.5, -0.25], [0.75, 0], [0, 0]])
    held = y @ rows.T.T + rows.least_slacks(y) @ rows.W.T
    missed = np.maximum(held - rows.bounds[:, 1], rows.bounds[:, 0] - held).max(axis=1)
    np.testing.assert_allclose(missed, [2, 0, 4], atol=1e-12)  # the hard rows' own


def test_samples_in_a_row_are_said_as_one():
    y = np.array([0, 2, 2.5, 0, -3, 0, 2])[:, None]
    assert describe_violations(["x"], np.array([[-1.0, 1.0]]), y, 3, 1e-6) == [
        "x at samples 4..5, 9 exceeds its upper bound by up to 1.5",
        "x at sample 7 falls below its lower bound by up to 2",
    ]


def test_a_guess_of_hard_rows_serves_soft_ones_too():
    ocp = out_of_reach()
    solution = solve(ocp, [0, 0], guess=initial_guess(ocp, np.zeros((6, 2)), np.zeros((5, 1))))
    assert solution.solved
    assert solve(ocp, [0, 0], guess=solution).iterations <= solution.iterations
