"""Riccati equations on random matrices: residuals, costs of motions, limits, best of all gains."""

import numpy as np
import pytest
from scipy.linalg import expm, solve_discrete_lyapunov

import mbcasadi.errors as err
from mbcasadi.control.regulators.discrete import hold_matrices
from mbcasadi.control.regulators.riccati import (
    backward_riccati,
    regulator,
    sample_cost,
    sampled_noise,
    sampled_regulator,
    stationary_filter,
)
from mbcasadi.shapes import weight

SEEDS = range(4)
PERIOD = 0.05  # s
LONG = 3000  # ticks: all errors of the start have died out


def random_problem(seed):
    """Return A, B, Q, R, N of five states and two controls, the weight positive definite."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((7, 7))
    block = root @ root.T
    A, B = rng.standard_normal((5, 5)), rng.standard_normal((5, 2))
    return A, B, block[:5, :5], block[5:, 5:], block[:5, 5:]


def on_closed_loop(K, Q, R, N):
    """Return the weight of x where `u = -K x`."""
    return Q - N @ K - (N @ K).T + K.T @ R @ K


def tick_of(problem):
    A, B, Q, R, N = problem
    return sample_cost(A, B, Q, R, PERIOD, N)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cost_to_go_is_what_a_motion_costs(seed):
    A, B, Q, R, N = random_problem(seed)
    solution = regulator(A, B, Q, R, N)
    A_closed = A - B @ solution.K
    idle = np.zeros((5, 1))
    tick = sample_cost(A_closed, idle, on_closed_loop(solution.K, Q, R, N), np.eye(1), PERIOD)
    x, cost = np.ones(5), 0.0
    while np.linalg.norm(x) > 1e-10:
        cost += x @ tick.Q @ x
        x = tick.A @ x
    np.testing.assert_allclose(cost, np.ones(5) @ solution.S @ np.ones(5), rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_weights_of_a_tick_are_the_integral_of_the_cost(seed):
    A, B, Q, R, N = random_problem(seed)
    tick = tick_of((A, B, Q, R, N))
    F = np.zeros((7, 7))
    F[:5] = np.hstack([A, B])
    block, expected = np.block([[Q, N], [N.T, R]]), np.zeros((7, 7))
    for node, share in zip(*np.polynomial.legendre.leggauss(10), strict=True):
        flow = expm(F * PERIOD * (1 + node) / 2)
        expected += PERIOD / 2 * share * flow.T @ block @ flow
    solution = np.block([[tick.Q, tick.N], [tick.N.T, tick.R]])
    np.testing.assert_allclose(solution, expected, rtol=1e-11)
    step, push, _ = hold_matrices(A, B, np.zeros(5), PERIOD)
    np.testing.assert_allclose(np.hstack([tick.A, tick.B]), np.hstack([step, push]), rtol=1e-11)
    noise = sampled_noise(A.T, Q, PERIOD)
    np.testing.assert_allclose(sample_cost(A, 0 * B, Q, R, PERIOD).Q, noise, rtol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_other_gain_costs_less_than_that_of_the_sampled_regulator(seed):
    problem = random_problem(seed)
    A, B, Q, R, N = problem
    solution = sampled_regulator(A, B, Q, R, PERIOD, N)
    tick = tick_of(problem)

    def cost(K):
        of_a_tick = on_closed_loop(K, tick.Q, tick.R, tick.N)
        return np.trace(solve_discrete_lyapunov((tick.A - tick.B @ K).T, of_a_tick))

    np.testing.assert_allclose(cost(solution.K), np.trace(solution.S), rtol=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert cost(solution.K + 1e-2 * rng.standard_normal(solution.K.shape)) > cost(solution.K)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sampled_gain_tends_to_the_continuous_one_at_first_order(seed):
    A, B, Q, R, N = random_problem(seed)
    exact = regulator(A, B, Q, R, N).K
    periods = (1e-3, 1e-4)
    errors = [np.abs(sampled_regulator(A, B, Q, R, h, N).K - exact).max() for h in periods]
    assert 9 < errors[0] / errors[1] < 11


@pytest.mark.parametrize("seed", SEEDS)
def test_a_long_horizon_begins_with_the_gain_of_an_endless_one(seed):
    problem = random_problem(seed)
    A, B, Q, R, N = problem
    gains, costs = backward_riccati([tick_of(problem)] * LONG, np.zeros((5, 5)))
    solution = sampled_regulator(A, B, Q, R, PERIOD, N)
    assert len(gains) == len(costs) - 1 == LONG
    np.testing.assert_allclose(gains[0], solution.K, atol=1e-9 * np.abs(solution.K).max())
    assert np.abs(gains[-1] - solution.K).max() > 1e-2 * np.abs(solution.K).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_error_of_a_filter_has_the_covariance_that_it_reports(seed):
    rng = np.random.default_rng(seed)
    A, C = 0.7 * rng.standard_normal((4, 4)), rng.standard_normal((2, 4))
    W, V = np.eye(4), 0.3 * np.eye(2)
    solution = stationary_filter(A, C, W, V)
    correction = np.eye(4) - solution.L @ C
    after = correction @ solution.before @ correction.T + solution.L @ V @ solution.L.T
    np.testing.assert_allclose(solution.after, after, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(solution.before, A @ after @ A.T + W, rtol=1e-9, atol=1e-9)
    assert np.all(np.abs(solution.poles) < 1)


def test_weights_that_are_none_are_refused():
    with pytest.raises(err.ShapeError, match=r"Q has shape \(3,\), expected \(2, 2\)"):
        weight("Q", [1.0, 2.0, 3.0], 2)
    with pytest.raises(err.ShapeError, match="R holds NaN"):
        weight("R", np.nan, 2)
    with pytest.raises(err.ProblemError, match="Q is not symmetric"):
        weight("Q", [[1.0, 1.0], [0.0, 1.0]], 2)
    with pytest.raises(err.ProblemError, match=r"Q has the eigenvalue -1; expected none negative"):
        weight("Q", [[0.0, 1.0], [1.0, 0.0]], 2)
    with pytest.raises(err.ProblemError, match="R has the eigenvalue 0; expected all"):
        weight("R", [1.0, 0.0], 2, definite=True)


def test_a_system_that_cannot_be_stabilised_has_no_gain():
    A, B = np.diag([1.0, 2.0]), np.array([[1.0], [0.0]])
    with pytest.raises(err.ProblemError, match="no stabilising solution"):
        regulator(A, B, np.eye(2), np.eye(1))
    with pytest.raises(err.ProblemError, match="no stabilising solution"):
        sampled_regulator(A, B, np.eye(2), np.eye(1), PERIOD)
    with pytest.raises(err.ProblemError, match="no stationary filter"):
        stationary_filter(A, B.T, np.eye(2), np.eye(1))
