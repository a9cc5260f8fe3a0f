"""Riccati equations and kernels of linear models on random matrices, rank-deficient ones too."""

import numpy as np
import pytest
import quadprog
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm, solve_discrete_lyapunov
from support.refusals import refused

import mbcasadi.errors as err
from mbcasadi.control.regulators import DescriptorForm, reduce_descriptor
from mbcasadi.control.regulators.discrete import hold_matrices
from mbcasadi.control.regulators.loads import LoadLimits, loads
from mbcasadi.control.regulators.riccati import (
    backward_riccati,
    regulator,
    sample_cost,
    sampled_noise,
    sampled_regulator,
    stationary_filter,
)
from mbcasadi.control.regulators.tangent import null_basis, pseudo_inverse
from mbcasadi.errors import ShapeError
from mbcasadi.shapes import weight

SEEDS = range(4)
PERIOD = 0.05  # s
LONG = 3000  # ticks: all errors of the start have died out

NO_LIMITS = LoadLimits(np.zeros((0, 9)), np.zeros(0))


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
    assert_allclose(cost, np.ones(5) @ solution.S @ np.ones(5), rtol=1e-9)


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
    assert_allclose(solution, expected, rtol=1e-11)
    step, push, _ = hold_matrices(A, B, np.zeros(5), PERIOD)
    assert_allclose(np.hstack([tick.A, tick.B]), np.hstack([step, push]), rtol=1e-11)
    noise = sampled_noise(A.T, Q, PERIOD)
    assert_allclose(sample_cost(A, 0 * B, Q, R, PERIOD).Q, noise, rtol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_other_gain_costs_less_than_that_of_the_sampled_regulator(seed):
    problem = random_problem(seed)
    A, B, Q, R, N = problem
    solution = sampled_regulator(A, B, Q, R, PERIOD, N)
    tick = tick_of(problem)

    def cost(K):
        of_a_tick = on_closed_loop(K, tick.Q, tick.R, tick.N)
        return np.trace(solve_discrete_lyapunov((tick.A - tick.B @ K).T, of_a_tick))

    assert_allclose(cost(solution.K), np.trace(solution.S), rtol=1e-9)
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
    assert_allclose(gains[0], solution.K, atol=1e-9 * np.abs(solution.K).max())
    assert np.abs(gains[-1] - solution.K).max() > 1e-2 * np.abs(solution.K).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_error_of_a_filter_has_the_covariance_that_it_reports(seed):
    rng = np.random.default_rng(seed)
    A, C = 0.7 * rng.standard_normal((4, 4)), rng.standard_normal((2, 4))
    W, V = np.eye(4), 0.3 * np.eye(2)
    solution = stationary_filter(A, C, W, V)
    correction = np.eye(4) - solution.L @ C
    after = correction @ solution.before @ correction.T + solution.L @ V @ solution.L.T
    assert_allclose(solution.after, after, rtol=1e-9, atol=1e-12)
    assert_allclose(solution.before, A @ after @ A.T + W, rtol=1e-9, atol=1e-9)
    assert np.all(np.abs(solution.poles) < 1)


def test_weights_that_are_none_are_refused():
    with pytest.raises(err.ShapeError, match=r"Q has shape \(3,\), expected \(2, 2\)"):
        weight("Q", [1.0, 2.0, 3.0], 2)
    refused(err.ShapeError, "R holds NaN", lambda: weight("R", np.nan, 2))
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


ROUNDING = 1e-12
MANY = range(12)


def deficient(rng, rows, columns):
    """Return a matrix whose last rows are combinations of the others, or zero."""
    A = rng.standard_normal((rows, columns))
    A[rows // 2] = 0
    A[rows // 2 + 1 :] = rng.standard_normal((rows - rows // 2 - 1, rows // 2)) @ A[: rows // 2]
    return A


@pytest.mark.parametrize("seed", MANY)
def test_a_null_basis_is_orthonormal_complete_and_nearest(seed):
    rng = np.random.default_rng(seed)
    A = deficient(rng, 6, 8)
    like = np.linalg.qr(rng.standard_normal((8, 5)))[0]
    for Z in (null_basis(A, 1e-9), null_basis(A, 1e-9, like)):
        assert Z.shape == (8, 8 - np.linalg.matrix_rank(A))
        assert_allclose(A @ Z, 0, atol=ROUNDING * 10)
        assert_allclose(Z.T @ Z, np.eye(5), atol=ROUNDING)
    turn = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    assert np.linalg.norm(Z - like) <= np.linalg.norm(Z @ turn - like)
    here = null_basis(A, 1e-9)
    there = null_basis(A + 1e-6 * (A @ rng.standard_normal((8, 8))), 1e-9, here)
    assert np.abs(here - there).max() < 1e-4
    assert_allclose(pseudo_inverse(A, 1e-9), np.linalg.pinv(A, 1e-9), atol=1e-10)


def test_a_null_basis_of_nothing_is_the_coordinates_themselves():
    assert_array_equal(null_basis(np.zeros((0, 3)), 1e-9), np.eye(3))
    assert_allclose(null_basis(np.array([[0.0, 2.0, 0.0]]), 1e-9), np.eye(3)[:, [0, 2]])
    assert null_basis(np.eye(3), 1e-9).shape == (3, 0)


def problem(seed):
    """Return E, g, limits of a random balance with more forces than needed, two of them alike."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((6, 9))
    E[:, 8] = E[:, 7]
    E[5] = E[0] - E[1]
    y = rng.uniform(-1, 1, 9)
    bounds = np.vstack([np.eye(9)[:5], -np.eye(9)[:5]])
    return E, E @ y, LoadLimits(bounds, np.full(10, 1.05)), rng


@pytest.mark.parametrize("seed", MANY)
def test_loads_without_limits_are_the_least_controls_then_the_least_reactions(seed):
    E, g, _, rng = problem(seed)
    nu = 5
    solution = loads(E, g, NO_LIMITS, nu)
    assert solution.balanced
    assert solution.feasible
    assert_allclose(E @ solution.y, g, atol=1e-10)
    N = np.linalg.svd(E)[2][5:].T
    for _ in range(20):
        other = solution.y + N @ rng.standard_normal(N.shape[1])
        assert np.linalg.norm(other[:nu]) >= np.linalg.norm(solution.y[:nu]) - ROUNDING
    inner = N @ np.linalg.svd(N[:nu])[2][np.linalg.matrix_rank(N[:nu]) :].T  # controls untouched
    assert_allclose(inner.T @ solution.y, 0, atol=1e-10)


@pytest.mark.parametrize("seed", MANY)
def test_loads_within_limits_are_those_of_a_solver_of_quadratic_programs(seed):
    E, g, _, _ = problem(seed)
    free = loads(E, g, NO_LIMITS, 5)
    most = 0.97 * np.abs(free.y[:5]).max()  # the limit binds
    limits = LoadLimits(np.vstack([np.eye(9)[:5], -np.eye(9)[:5]]), np.full(10, most))
    solution, weight = loads(E, g, limits, 5), np.diag([1.0] * 5 + [1e-8] * 4)
    rows, ends = np.vstack([E[:5], -limits.G]), np.concatenate([g[:5], -limits.d])
    least = quadprog.solve_qp(weight, np.zeros(9), rows.T, ends, 5)[0]
    assert solution.feasible
    assert np.abs(free.y[:5]).max() > 0.1
    assert_allclose(E @ solution.y, g, atol=1e-9)
    assert np.abs(solution.y[:5]).max() <= most * (1 + 1e-8)
    assert_allclose(solution.y[:5], least[:5], atol=1e-6)


def test_loads_report_what_cannot_be_balanced_and_what_limits_forbid():
    E, g, _, _ = problem(0)
    stray = loads(E, g + np.eye(6)[0], NO_LIMITS, 5)
    assert not stray.balanced
    assert_allclose(E.T @ stray.unbalanced, 0, atol=1e-10)
    forbidden = loads(E, g, LoadLimits(np.vstack([np.eye(9), -np.eye(9)]), np.full(18, 1e-3)), 5)
    assert forbidden.balanced
    assert not forbidden.feasible


def edge_of_the_limits(rng):
    """Return E, y and G such that `G x <= G y, E x = E y` leave x = y alone.

    On the plane null(E) the rows of G are three unit vectors that add to zero.
    """
    basis, y = np.linalg.qr(rng.standard_normal((6, 6)))[0], rng.uniform(-1, 1, 6)
    angles = rng.uniform(0, np.pi) + np.arange(3) * 2 * np.pi / 3
    on_plane = np.column_stack([np.cos(angles), np.sin(angles)])
    return basis[:4], y, on_plane @ basis[4:] + rng.standard_normal((3, 4)) @ basis[:4]


def test_rounding_does_not_decide_whether_the_edge_of_the_limits_holds():
    rng = np.random.default_rng(5)
    for _ in range(40):
        E, y, G = edge_of_the_limits(rng)
        for size, feasible in ((1e-15, True), (1e-12, True), (1e-7, False)):
            closer = G @ y - size * rng.uniform(0.5, 1.0, 3)
            found = loads(E, E @ y, LoadLimits(G, closer), 6)
            assert found.feasible == feasible, size
            if feasible:
                assert_allclose(E @ found.y, E @ y, atol=ROUNDING)
                assert_allclose(found.y, y, atol=2e-8)  # limits hold to 1e-9


@pytest.mark.parametrize("seed", MANY)
def test_the_reduction_keeps_the_constraint_and_the_motion(seed):
    rng, n = np.random.default_rng(seed), 8
    G, root = deficient(rng, 6, n), rng.standard_normal((n, n))
    S = np.linalg.inv(root @ root.T + np.eye(n)) @ G.T
    parts = rng.standard_normal((n, n)), rng.standard_normal((n, 2)), rng.standard_normal(n)
    full = DescriptorForm(dfdx=parts[0], dfdu=parts[1], S=S, G=G, c=parts[2])
    solution = reduce_descriptor(full)
    z, u = rng.standard_normal(solution.N.shape[1]), rng.standard_normal(2)
    free = full.dfdx @ solution.N @ z + full.dfdu @ u + full.c
    rate = free - S @ np.linalg.pinv(G @ S, 1e-9) @ G @ free  # with its multipliers
    assert_allclose(G @ rate, 0, atol=1e-8)
    x_dot = solution.N @ (solution.dfdz @ z + solution.dfdu @ u + solution.c)
    assert_allclose(x_dot, rate, atol=1e-8)
    skew = solution.N @ rng.standard_normal((len(z), len(z)))  # any basis of the same space
    T, other = np.linalg.pinv(solution.N) @ skew, reduce_descriptor(full, basis=skew)
    assert_allclose(T @ other.dfdz, solution.dfdz @ T, atol=1e-6 * np.linalg.cond(T))
    refused(ShapeError, "G N = 0", lambda: reduce_descriptor(full, basis=np.eye(n)))
