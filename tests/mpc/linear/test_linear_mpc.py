"""Linear MPC: laws of the condensed QP, independent solvers, MuJoCo as the plant."""

import casadi as ca
import numpy as np
import pytest
from support import linear_mpc_cases as cases
from support.peer_qp import condensed_solution

from mbcasadi import models, mpc

SOLVER_TOL = 1e-7  # independent solver, residuals of 1e-10
BARRIER = 3e-6  # ten times √1e-13, how near ipopt's barrier lets u come to a bound that just counts
COUNT = 1000


def draws(law, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x0 = np.array([2.0, 0.9]) * rng.standard_normal(2)
        ref = 0.5 * rng.standard_normal(law.function.numel_in("ref"))
        last = 0.5 * rng.standard_normal(1 if law.problem.has_rates else 0)
        yield x0, ref, last


def cost_of_rollout(law, x0, ref, last, moves):
    """Return the cost as the sum over a simulated motion, by its definition."""
    problem, x = law.problem, np.array(x0)
    r, s = ref[:-1].reshape(-1, 2), ref[-1:]
    total, before = 0.0, last
    for k, move in enumerate(problem.blocks):
        u = moves[move : move + 1]
        total += (u - s) @ problem.R @ (u - s) / 2
        if problem.has_rates:
            total += (u - before) @ problem.S @ (u - before) / 2
        before = u
        x = cases.advance(x, u)
        gap = x - (r[k] if problem.preview else r[0])
        total += gap @ (problem.P if k == cases.HORIZON - 1 else problem.Q) @ gap / 2
    return total


@pytest.mark.parametrize("case", ["bounded", "rates", "blocks", "preview"])
def test_the_condensed_cost_is_that_of_the_predicted_motion(case):
    law = cases.controller_of(case)
    c, rng = law.condensed, np.random.default_rng(1)
    for x0, ref, last in draws(law, 5):
        theta = np.concatenate([x0, ref, last])
        y, y1 = rng.standard_normal((2, law.problem.moves))

        def condensed_cost(y, theta=theta):
            return y @ c.H @ y / 2 + (c.G @ theta + c.g_0) @ y

        actual = condensed_cost(y1) - condensed_cost(y)
        expected = cost_of_rollout(law, x0, ref, last, y1) - cost_of_rollout(law, x0, ref, last, y)
        assert abs(actual - expected) < 1e-10 * (1 + abs(expected))
        assert abs(expected) > 1e-3


@pytest.mark.parametrize("case", [case for case in cases.CASES if case != "delay"])
def test_every_solution_is_that_of_an_independent_solver_and_infeasibility_is_reported(case):
    law = cases.controller_of(case)
    x0, ref, last = (np.array(part).T for part in zip(*draws(law, COUNT), strict=True))
    rows = law.condensed.C.shape[0]
    z = np.tile(law.controller.z0[:, None], (1, COUNT))
    z[: rows + len(last)] = np.vstack([np.zeros((rows, COUNT)), last])
    answers, _, status, *_ = (np.array(x) for x in law.function.map(COUNT)(x0, ref, z))
    solved = infeasible = bound = 0
    for k, theta in enumerate(np.vstack([x0, ref, last]).T):
        (y, _), u = condensed_solution(law.condensed, theta), answers[0, k]
        if y is None:
            assert status[0, k] == 2, f"{case}: infeasible, status {status[0, k]}"
            infeasible += 1
            continue
        assert status[0, k] == 0
        solved += 1
        bound += abs(y[0]) > 0.39
        assert abs(u - y[0]) < SOLVER_TOL
    assert solved > COUNT / (8 if case == "ended" else 3)
    assert bound > COUNT / 30
    assert (infeasible > COUNT / 30) == (case in ("bounded", "blocks", "ended"))


def test_without_bounds_it_is_the_linear_quadratic_regulator():
    law = cases.controller_of()
    P, R, A, B = law.problem.P, law.problem.R, cases.MODEL.A, cases.MODEL.B
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    still = mpc.lti_mpc(cases.STILL, cases.options_of())
    for x0, _, _ in draws(law, 5):
        u = np.array(still.function(x0, np.zeros(3), [])[0]).ravel()
        np.testing.assert_allclose(u, -K @ x0, atol=1e-10)


def test_implicit_and_explicit_forms_have_one_solution():
    """States as unknowns with equality rows, solved by an interior point: the same to 1e-7."""
    law = cases.controller_of("bounded")
    problem, N = law.problem, cases.HORIZON
    opti = ca.Opti()
    X, U = opti.variable(2, N + 1), opti.variable(1, N)
    start, goal = opti.parameter(2), opti.parameter(3)
    cost = 0
    opti.subject_to(X[:, 0] == start)
    for k in range(N):
        opti.subject_to(
            X[:, k + 1] == cases.MODEL.A @ X[:, k] + cases.MODEL.B @ U[:, k] + cases.MODEL.drift
        )
        weight = problem.P if k == N - 1 else problem.Q
        cost += ca.bilin(weight, X[:, k + 1] - goal[:2], X[:, k + 1] - goal[:2]) / 2
        cost += problem.R[0, 0] * (U[:, k] - goal[2]) ** 2 / 2
        opti.subject_to(opti.bounded(-1, U[:, k], 1))
        opti.subject_to(opti.bounded(-0.5, X[1, k + 1], 0.6))
    opti.minimize(cost)
    silent = {"print_level": 0, "sb": "yes", "tol": 1e-13, "mu_target": 1e-13}
    opti.solver("ipopt", {"ipopt": silent, "print_time": False})
    compared = 0
    for x0, ref, _ in draws(law, 30, seed=4):
        u, _, status, *_ = (np.array(x).ravel() for x in law.function(x0, ref, law.controller.z0))
        if status != 0:
            continue
        opti.set_value(start, x0)
        opti.set_value(goal, ref)
        explicit = np.array(opti.solve().value(U)).ravel()
        np.testing.assert_allclose(u, explicit[:1], atol=BARRIER)
        compared += 1
    assert compared > 10


def test_a_soft_bound_is_violated_only_where_it_must_be():
    law = cases.controller_of("soft")
    near = law.function([0.0, 0.0], [0.25, 0.0, 0.0], law.controller.z0)
    assert float(near[2]) == 0
    y, _ = condensed_solution(law.condensed, np.array([0.0, 0.0, 0.25, 0.0, 0.0]))
    np.testing.assert_allclose(y[cases.HORIZON :], 0, atol=1e-6)
    held = [row for row, z in zip(law.condensed.names, law.controller.z0, strict=False) if z]
    assert held == [row for row in law.condensed.names if "slack" in row]  # at first no slack
    beyond, _ = condensed_solution(law.condensed, np.array([1.0, 0.0, 0.25, 0.0, 0.0]))
    assert beyond[cases.HORIZON] > 0.6  # it starts 0.7 beyond the bound
    assert float(law.function([1.0, 0.0], [0.25, 0.0, 0.0], law.controller.z0)[2]) == 0


def test_matrices_that_vary_along_the_horizon_are_predicted_with():
    rng = np.random.default_rng(3)
    A = np.eye(2) + 0.1 * rng.standard_normal((cases.HORIZON, 2, 2))
    B = rng.standard_normal((cases.HORIZON, 2, 1))
    options = mpc.LinearOptions(cases.HORIZON, [1.0, 1.0], 1.0, P=[1.0, 1.0])
    law = mpc.lti_mpc(mpc.LinearModel.of(A, B, cases.PERIOD), options)
    c, x0, y = law.condensed, rng.standard_normal(2), rng.standard_normal(cases.HORIZON)
    theta = np.concatenate([x0, np.zeros(3)])

    def cost(y):
        x, total = x0, 0.0
        for k in range(cases.HORIZON):
            total += y[k] ** 2 / 2
            x = A[k] @ x + B[k] @ y[k : k + 1]
            total += x @ x / 2
        return total

    actual = y @ c.H @ y / 2 + (c.G @ theta + c.g_0) @ y
    assert abs(actual - (cost(y) - cost(0 * y))) < 1e-9 * abs(actual)


def test_a_cart_pole_with_redundant_rows_is_held_in_mujoco():
    linear, path = cases.at_rest("cart_pole"), models.path("cart_pole")
    rail = mpc.deviation_output(linear, "rail", np.eye(2 * linear.system.nv)[0], -0.6, 0.6)
    options = {"outputs": [rail], "u_bounds": [[-12.0, 12.0]], "delay": 1, "period": 0.02}
    law = cases.mechanism_mpc(linear, 30, 0.01, Q=(1.0, 1.0), **options)
    start = np.array(linear.system.integrate(linear.q, np.full(linear.system.nv, 0.1))).ravel()
    recording = cases.recorded(law, linear, path, 4.0, q0=start, perturb={"mass": 0.1}, delay=1)
    assert np.abs(recording.q[0]).max() > 0.05
    assert np.abs(recording.q[-1] - linear.q).max() < 0.02
    assert np.abs(recording.u).max() <= 12.0
