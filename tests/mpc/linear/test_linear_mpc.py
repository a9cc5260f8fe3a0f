"""Linear MPC: laws of the condensed QP, independent solvers, generated C, MuJoCo as the plant."""

from functools import partial

import casadi as ca
import numpy as np
import pytest
import quadprog
from support.linear_mpc_cases import CASES, HORIZON, MODEL, PERIOD, STILL, controller_of, options_of

from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control.regulators import equilibrium, linearize
from mbcasadi.mpc import (
    LinearModel,
    LinearOptions,
    Noise,
    deviation_output,
    linear_mpc,
    lti_mpc,
    offset_free_lti,
)
from mbcasadi.system import read_mjcf
from mbcasadi.validation import validate

SOLVER_TOL = 1e-7  # independent solver, residuals of 1e-10
BARRIER = 3e-6  # ten times √1e-13, how near ipopt's barrier lets u come to a bound that just counts
COUNT = 1000


def reference_solution(mpc, theta):
    """Return y of the condensed QP by quadprog, or None where it is infeasible."""
    c = mpc.condensed
    offset = c.D @ theta + c.c_0
    low, high = c.lower - offset, c.upper - offset
    rows = [c.C[np.isfinite(low)], -c.C[np.isfinite(high)]]
    ends = [low[np.isfinite(low)], -high[np.isfinite(high)]]
    try:
        return quadprog.solve_qp(
            c.H, -(c.G @ theta + c.g_0), np.vstack(rows).T, np.concatenate(ends)
        )[0]
    except ValueError:
        return None


def draws(mpc, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x0 = np.array([2.0, 0.9]) * rng.standard_normal(2)
        ref = 0.5 * rng.standard_normal(mpc.function.numel_in("ref"))
        last = 0.5 * rng.standard_normal(1 if mpc.problem.has_rates else 0)
        yield x0, ref, last


def cost_of_rollout(mpc, x0, ref, last, moves):
    """Return the cost as the sum over a simulated motion, by its definition."""
    problem, x = mpc.problem, np.array(x0)
    r, s = ref[:-1].reshape(-1, 2), ref[-1:]
    total, before = 0.0, last
    for k, move in enumerate(problem.blocks):
        u = moves[move : move + 1]
        total += (u - s) @ problem.R @ (u - s) / 2
        if problem.has_rates:
            total += (u - before) @ problem.S @ (u - before) / 2
        before = u
        x = MODEL.A @ x + MODEL.B @ u + MODEL.drift
        gap = x - (r[k] if problem.preview else r[0])
        total += gap @ (problem.P if k == HORIZON - 1 else problem.Q) @ gap / 2
    return total


@pytest.mark.parametrize("case", ["bounded", "rates", "blocks", "preview"])
def test_the_condensed_cost_is_that_of_the_predicted_motion(case):
    mpc = controller_of(case)
    c, rng = mpc.condensed, np.random.default_rng(1)
    for x0, ref, last in draws(mpc, 5):
        theta = np.concatenate([x0, ref, last])
        y, y1 = rng.standard_normal((2, mpc.problem.moves))

        def condensed_cost(y, theta=theta):
            return y @ c.H @ y / 2 + (c.G @ theta + c.g_0) @ y

        actual = condensed_cost(y1) - condensed_cost(y)
        expected = cost_of_rollout(mpc, x0, ref, last, y1) - cost_of_rollout(mpc, x0, ref, last, y)
        assert abs(actual - expected) < 1e-10 * (1 + abs(expected))
        assert abs(expected) > 1e-3


@pytest.mark.parametrize("case", [case for case in CASES if case != "delay"])
def test_every_solution_is_that_of_an_independent_solver_and_infeasibility_is_reported(case):
    mpc = controller_of(case)
    x0, ref, last = (np.array(part).T for part in zip(*draws(mpc, COUNT), strict=True))
    rows = mpc.condensed.C.shape[0]
    z = np.tile(mpc.controller.z0[:, None], (1, COUNT))
    z[: rows + len(last)] = np.vstack([np.zeros((rows, COUNT)), last])
    answers, _, status, *_ = (np.array(x) for x in mpc.function.map(COUNT)(x0, ref, z))
    solved = infeasible = bound = 0
    for k, theta in enumerate(np.vstack([x0, ref, last]).T):
        y, u = reference_solution(mpc, theta), answers[0, k]
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
    mpc = controller_of()
    P, R, A, B = mpc.problem.P, mpc.problem.R, MODEL.A, MODEL.B
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    still = lti_mpc(STILL, options_of())
    for x0, _, _ in draws(mpc, 5):
        u = np.array(still.function(x0, np.zeros(3), [])[0]).ravel()
        np.testing.assert_allclose(u, -K @ x0, atol=1e-10)


def test_implicit_and_explicit_forms_have_one_solution():
    """States as unknowns with equality rows, solved by an interior point: the same to 1e-7."""
    mpc = controller_of("bounded")
    problem, N = mpc.problem, HORIZON
    opti = ca.Opti()
    X, U = opti.variable(2, N + 1), opti.variable(1, N)
    start, goal = opti.parameter(2), opti.parameter(3)
    cost = 0
    opti.subject_to(X[:, 0] == start)
    for k in range(N):
        opti.subject_to(X[:, k + 1] == MODEL.A @ X[:, k] + MODEL.B @ U[:, k] + MODEL.drift)
        weight = problem.P if k == N - 1 else problem.Q
        cost += ca.bilin(weight, X[:, k + 1] - goal[:2], X[:, k + 1] - goal[:2]) / 2
        cost += problem.R[0, 0] * (U[:, k] - goal[2]) ** 2 / 2
        opti.subject_to(opti.bounded(-1, U[:, k], 1))
        opti.subject_to(opti.bounded(-0.5, X[1, k + 1], 0.6))
    opti.minimize(cost)
    silent = {"print_level": 0, "sb": "yes", "tol": 1e-13, "mu_target": 1e-13}
    opti.solver("ipopt", {"ipopt": silent, "print_time": False})
    compared = 0
    for x0, ref, _ in draws(mpc, 30, seed=4):
        u, _, status, *_ = (np.array(x).ravel() for x in mpc.function(x0, ref, mpc.controller.z0))
        if status != 0:
            continue
        opti.set_value(start, x0)
        opti.set_value(goal, ref)
        explicit = np.array(opti.solve().value(U)).ravel()
        np.testing.assert_allclose(u, explicit[:1], atol=BARRIER)
        compared += 1
    assert compared > 10


def test_a_soft_bound_is_violated_only_where_it_must_be():
    mpc = controller_of("soft")
    near = mpc.function([0.0, 0.0], [0.25, 0.0, 0.0], mpc.controller.z0)
    assert float(near[2]) == 0
    y = reference_solution(mpc, np.array([0.0, 0.0, 0.25, 0.0, 0.0]))
    np.testing.assert_allclose(y[HORIZON:], 0, atol=1e-6)
    held = [row for row, z in zip(mpc.condensed.names, mpc.controller.z0, strict=False) if z]
    assert held == [row for row in mpc.condensed.names if "slack" in row]  # at first no slack
    beyond = reference_solution(mpc, np.array([1.0, 0.0, 0.25, 0.0, 0.0]))
    assert beyond[HORIZON] > 0.6  # it starts 0.7 beyond the bound
    assert float(mpc.function([1.0, 0.0], [0.25, 0.0, 0.0], mpc.controller.z0)[2]) == 0


def estimating():
    return offset_free_lti(
        MODEL,
        options_of(u_bounds=[[-1.0, 1.0]], du_bounds=[[-0.3, 0.3]]),
        [[1.0, 0.0]],
        noise=Noise(disturbance=10.0),
        gate=None,
    )


IN_C = {case: partial(controller_of, case) for case in ("rates", "soft", "delay")}


@pytest.mark.parametrize("case", [*IN_C, "offset-free"])
def test_the_c_equals_the_function_bad_input_included(case, tmp_path):
    mpc = estimating() if case == "offset-free" else IN_C[case]()
    program = export_c(mpc, tmp_path / "c").load()
    z, rows = mpc.controller.z0.copy(), len(mpc.condensed.names)
    for k, (x0, ref, last) in enumerate(draws(mpc, 100, seed=7)):
        x0[0] = np.nan if k % 20 == 19 else x0[0]
        z[rows : rows + len(last)] = last  # a past away from bounds: no row just touches
        one = [np.array(x).ravel() for x in mpc.function(x0, ref, z)]
        other = [np.array(x).ravel() for x in program(x0, ref, z)]
        for name, a, b in zip(("u", "z_next", "status"), one, other, strict=False):
            np.testing.assert_allclose(b, a, atol=1e-9, err_msg=f"{case} {k} {name}")
        assert (one[2] == 3) == (k % 20 == 19)
        assert abs(one[0][0]) <= 1
        assert np.all(np.isfinite(one[1]))
        z = one[1]
    assert program(np.zeros(2), np.zeros_like(ref), np.full(z.size, np.nan))[2] == (
        0 if case == "soft" else 3
    )


def test_matrices_that_vary_along_the_horizon_are_predicted_with():
    rng = np.random.default_rng(3)
    A = np.eye(2) + 0.1 * rng.standard_normal((HORIZON, 2, 2))
    B = rng.standard_normal((HORIZON, 2, 1))
    mpc = lti_mpc(
        LinearModel.of(A, B, PERIOD), LinearOptions(HORIZON, [1.0, 1.0], 1.0, P=[1.0, 1.0])
    )
    c, x0, y = mpc.condensed, rng.standard_normal(2), rng.standard_normal(HORIZON)
    theta = np.concatenate([x0, np.zeros(3)])

    def cost(y):
        x, total = x0, 0.0
        for k in range(HORIZON):
            total += y[k] ** 2 / 2
            x = A[k] @ x + B[k] @ y[k : k + 1]
            total += x @ x / 2
        return total

    actual = y @ c.H @ y / 2 + (c.G @ theta + c.g_0) @ y
    assert abs(actual - (cost(y) - cost(0 * y))) < 1e-9 * abs(actual)


def test_a_cart_pole_with_redundant_rows_is_held_in_mujoco():
    path = models.path("cart_pole")
    system = read_mjcf(path)
    rest = equilibrium(system)
    linear = linearize(system, rest.q, np.zeros(system.nv), rest.u)
    mpc = linear_mpc(
        linear,
        LinearOptions(
            30,
            np.ones(2 * system.nv),
            0.01,
            period=0.02,
            outputs=[deviation_output(linear, "rail", np.eye(2 * system.nv)[0], -0.6, 0.6)],
            u_bounds=[[-12.0, 12.0]],
            delay=1,
        ),
    )
    start = np.array(system.integrate(rest.q, 0.1 * np.ones(system.nv))).ravel()
    report = validate(
        mpc,
        path,
        4.0,
        reference=mpc.reference(setpoint_q=rest.q, setpoint_u=rest.u),
        q0=start,
        perturb={"mass": 0.1},
        delay=1,
    )
    recording = report.runs[0].recording
    assert np.abs(recording.q[0]).max() > 0.05
    assert np.abs(recording.q[-1] - rest.q).max() < 0.02
    assert np.abs(recording.u).max() <= 12.0
