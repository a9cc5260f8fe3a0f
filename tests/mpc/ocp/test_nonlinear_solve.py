"""Optimal control problems: references of other kinds, solvers beside each other, bad input."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import UPRIGHT, cart_pole, coupled_carts, sliding_mass, swing_up
from support.peer_qp import MassOnRail, solve_qp
from support.problems import problem as problem_of

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.control import PostureTask
from mbcasadi.mpc.ocp.solution import rollout
from mbcasadi.qp.rows import Bounded

OPTIMUM = 1e-6  # solvers stop at residuals of 1e-8 to 1e-9
CLOSED = 1e-8  # m, along a prediction
INSIDE = 1e-6  # Fatrop widens bounds by 1e-8 of their size
SOLVERS = ("ipopt", "sqpmethod", "fatrop")


@pytest.fixture(scope="module")
def swings():
    ocp, p, guess = swing_up(rail=0.5)
    solution = {name: mpc.ocp_solver(ocp, name).solve(np.zeros(4), p, guess) for name in SOLVERS}
    return ocp, solution


def test_a_cart_pole_swings_up_to_one_optimum_by_all_solvers(swings):
    _, actual = swings
    best = actual["ipopt"]
    assert best.solved
    np.testing.assert_allclose(best.x[-1], UPRIGHT, atol=0.05)
    for name, one in actual.items():
        assert one.solved, (name, one.in_words)
        assert abs(one.cost - best.cost) < OPTIMUM * best.cost, name
        np.testing.assert_allclose(one.x, best.x, atol=10 * OPTIMUM, err_msg=name)
        assert np.abs(one.u).max() == pytest.approx(12.0, abs=INSIDE)  # the limit counts
        assert np.abs(one.x[:, 0]).max() == pytest.approx(0.5, abs=INSIDE)  # the rail too


def test_the_cost_and_the_motion_of_a_solution_are_those_of_its_definition(swings):
    ocp, actual = swings
    one = actual["sqpmethod"]
    x, total = one.x[0], 0.0
    for k, u in enumerate(one.u):
        away = np.append(one.x[k] - UPRIGHT, u)
        total += 0.04 * away**2 @ [0.1, 1, 0.01, 0.01, 0.05] / 2
        x = ocp.dynamics(one.x[k], u, one.p[k]).full().ravel()
        np.testing.assert_allclose(one.x[k + 1], x, atol=1e-8)
    away = one.x[-1] - UPRIGHT
    assert total + away**2 @ [200, 200, 20, 20] / 2 == pytest.approx(one.cost, rel=1e-9)


def test_a_quadratic_problem_has_the_solution_of_an_independent_qp():
    ocp = problem_of(sliding_mass(), 12, 0.1, **MassOnRail.weights, u_bounds=[[-4, 3]])
    x0, peer = np.array([1.5, 0.4]), MassOnRail([1.5, 0.4], goal=0.2)
    expected, _ = solve_qp(peer.H, peer.g, peer.forces(-4, 3))
    assert np.isclose(expected, -4.0).any()
    for name in SOLVERS:
        solution = mpc.solve_ocp(ocp, x0, ocp.parameters(setpoint_q=0.2), solver=name)
        assert solution.solved, solution.in_words
        np.testing.assert_allclose(solution.u[:, 0], expected, atol=OPTIMUM, err_msg=name)


@pytest.fixture(scope="module")
def four_bar():
    return mb.read_mjcf(models.path("pendulum_on_four_bar"))


@pytest.mark.long
def test_a_pendulum_on_a_four_bar_is_caught_within_torque_limits(four_bar):
    limit = 1.5
    cost = {"Q": [1, 0, 1, 0, 0.1, 0, 0.1, 0], "R": 0.1, "Q_end": [50, 0, 50, 0, 5, 0, 5, 0]}
    ocp = problem_of(four_bar, 30, 0.02, **cost, u_bounds=[[-limit, limit]])
    x0 = np.append(four_bar.tree.q0 + np.array([0, 0, 0.1, 0]), np.zeros(4))
    solution = {name: mpc.solve_ocp(ocp, x0, solver=name) for name in SOLVERS}
    best = solution["ipopt"]
    for name, one in solution.items():
        assert one.solved, (name, one.in_words)
        assert abs(one.cost - best.cost) < OPTIMUM * best.cost, name
        np.testing.assert_allclose(one.u, best.u, atol=100 * OPTIMUM, err_msg=name)
        assert np.abs(one.u).max() == pytest.approx(limit, abs=INSIDE)
    phi = four_bar.constraint.map(31)(best.x[:, :4].T).full()
    psi = four_bar.constraint_rate.map(31)(best.x[:, :4].T, best.x[:, 4:].T).full()
    assert np.abs(phi).max() < CLOSED
    assert np.abs(psi).max() < CLOSED
    lean = best.x[:, :3].sum(axis=1)
    fallen = rollout(ocp, x0, ocp.parameters()).x[:, :3].sum(axis=1)
    assert abs(lean[-1]) < 0.6 * lean[0]
    assert abs(fallen[-1]) > 2 * lean[0]
    warm = mpc.solve_ocp(ocp, x0, guess=best, solver="sqpmethod")
    assert warm.iterations <= 3


def test_a_model_with_force_ranges_keeps_them():
    model = """<mujoco><worldbody><body><joint name="a" type="slide"/><geom size=".1" mass="1"/>
    </body></worldbody><actuator><position joint="a" kp="50" forcerange="-2 2"/></actuator>
    </mujoco>"""
    system = mb.read_mjcf(model)
    ocp = mpc.optimal_control_problem(system, 20, 0.05, [mpc.Cost(Q=[10, 0.1], R=1e-3)])
    solution = mpc.solve_ocp(ocp, [0, 0], ocp.parameters(setpoint_q=1.0))
    force = 50 * (solution.u[:, 0] - solution.x[:-1, 0])
    assert solution.solved, solution.in_words
    assert np.abs(force).max() == pytest.approx(2.0, abs=INSIDE)


def test_rows_along_the_way_at_the_end_and_own_residuals_are_what_they_say():
    system = sliding_mass(1.0)
    s = mpc.stage_symbols(system, goal=1)
    stand = Bounded(ca.vertcat(s.q - s.parameters["goal"], s.v), 0, 0)
    given = {"residual": s.u, "path": [Bounded(s.v * s.v, upper=1.0)], "end": [stand]}
    ocp = problem_of(system, 20, 0.1, symbols=s, **given)
    solution = mpc.solve_ocp(ocp, [0, 0], ocp.parameters(goal=1.5))
    assert solution.solved, solution.in_words
    np.testing.assert_allclose(solution.x[-1], [1.5, 0], atol=INSIDE)
    assert np.abs(solution.x[:, 1]).max() == pytest.approx(1.0, abs=INSIDE)


@pytest.mark.long
def test_the_task_of_an_inverse_dynamics_controller_is_followed(four_bar):
    task = PostureTask(joints=("crank",), kp=1.0, kd=0.0, weight=100.0)
    ocp = mpc.optimal_control_problem(
        four_bar, 15, 0.02, [mpc.Cost(R=0.01), task, mpc.StageBounds(v=None)]
    )
    x0 = np.append(four_bar.tree.q0, np.zeros(4))
    solution = mpc.solve_ocp(ocp, x0, ocp.parameters(posture_q=0.1))
    assert solution.solved, solution.in_words
    assert solution.x[-1, 0] == pytest.approx(0.1, abs=0.02)


def test_a_schedule_of_contacts_couples_two_carts_when_it_says_so():
    given = {"Q": [0, 1, 0, 1], "R": 0.01, "Q_end": [0, 10, 0, 10]}
    ocp = problem_of(coupled_carts(), 20, 0.1, **given)
    mask = np.arange(21)[:, None] >= 8
    p = ocp.parameters(mask=mask, setpoint_q=[0.0, 1.0])
    solution = mpc.solve_ocp(ocp, np.zeros(4), p)
    assert solution.solved, solution.in_words
    assert np.abs(solution.x[:9, 1]).max() < 1e-9
    np.testing.assert_allclose(solution.x[9:, 0], solution.x[9:, 1], atol=1e-9)
    assert solution.x[-1, 1] > 0.3


def test_what_cannot_be_reached_is_not_reported_as_solved():
    system = sliding_mass(1.0)
    s = mpc.stage_symbols(system)
    given = {"end": [Bounded(s.q, 9.0, 9.0)], "u_bounds": [[-1, 1]], "symbols": s}
    ocp = problem_of(system, 5, 0.1, R=1.0, **given)
    for name in SOLVERS:
        solution = mpc.solve_ocp(ocp, [0, 0], solver=name)
        assert solution.status in {2, 4}, (name, solution.in_words)
        assert max(solution.violation, solution.gap) > 0.1
    assert mpc.solve_ocp(ocp, [0, 0], solver="ipopt").status == 2


def test_a_solution_of_too_few_iterations_is_not_accepted():
    ocp, p, guess = swing_up(rail=0.5)
    solution = mpc.ocp_solver(ocp, "ipopt", options={"ipopt.max_iter": 4}).solve(
        np.zeros(4), p, guess
    )
    assert not solution.solved
    assert solution.gap > 1e-3


def problem(**given):
    return problem_of(**({"system": cart_pole(), "horizon": 5, "period": 0.1} | given))


FOREIGN = ca.SX.sym("foreign")
BAD = {
    "horizon": ({"horizon": 0, "R": 1}, "horizon = 0; expected a whole number"),
    "half": ({"horizon": 2.5, "R": 1}, "horizon = 2.5"),
    "period": ({"period": -0.1, "R": 1}, "period = -0.1; expected a positive"),
    "indefinite": ({"Q": [1, 1, -1, 1]}, "Q has the eigenvalue -1; expected none negative"),
    "asymmetric": ({"Q": np.triu(np.ones((4, 4)))}, "Q is not symmetric"),
    "shape": ({"R": [1, 1]}, r"R has shape \(2,\), expected"),
    "nothing": ({}, "no cost"),
    "empty": ({"R": 1, "u_bounds": [[1, -1]]}, r"u\[0\] is 1.0 to -1.0: empty"),
    "outside": ({"R": 1, "u_bounds": [[13, 14]]}, "ctrlrange.* empty"),
    "foreign": ({"residual": FOREIGN}, "residual depends on foreign"),
    "rows": ({"R": 1, "path": [Bounded(FOREIGN, 2, 1)]}, r"path\[0\]\[0\] is 2.0 to 1.0: empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_problem_that_makes_no_sense_is_refused(case):
    given, message = BAD[case]
    with pytest.raises(err.MbcasadiError, match=message):
        problem(**given)


def test_bad_numbers_and_names_are_refused_where_they_enter():
    ocp = problem(Q=1.0, R=1.0)
    with pytest.raises(err.ShapeError, match="x0 holds NaN"):
        mpc.solve_ocp(ocp, [0, np.nan, 0, 0])
    with pytest.raises(err.ShapeError, match=r"x0 has shape \(3,\), expected \(4,\)"):
        mpc.solve_ocp(ocp, [0, 0, 0])
    with pytest.raises(err.ProblemError, match="schedule of setpoint_q has 9 samples; expected 5"):
        ocp.parameters(setpoint_q=np.zeros((9, 2)))
    with pytest.raises(err.ShapeError, match="setpoint_q holds NaN"):
        ocp.parameters(setpoint_q=[0, np.nan])
    with pytest.raises(err.UnknownNameError, match=r"'setpoint.q', 'setpoint.v', 'setpoint.u'"):
        ocp.parameters(goal=0)
    with pytest.raises(err.SolverError, match="'sqpmethod', 'ipopt', 'fatrop'"):
        mpc.solve_ocp(ocp, np.zeros(4), solver="magic")
    with pytest.raises(err.SolverError, match="'exact'"):
        mpc.solve_ocp(ocp, np.zeros(4), solver="fatrop", hessian="gauss-newton")
    with pytest.raises(err.ShapeError, match="guess of u"):
        mpc.initial_guess(ocp, np.zeros((6, 4)), np.zeros((6, 1)))
    longer = problem(Q=1.0, R=1.0, horizon=6)
    found = "guess has 34 unknowns and 28 rows, expected 29 and 24"
    with pytest.raises(err.ShapeError, match=found):
        mpc.solve_ocp(ocp, np.zeros(4), guess=rollout(longer, np.zeros(4), longer.parameters()))
    with pytest.raises(err.ShapeError, match="p has shape"):
        mpc.solve_ocp(ocp, np.zeros(4), np.zeros((2, 2)))
    assert replace(ocp, nominal=None).parameters().shape == (6, 5)
