"""Collocation: its method's conditions, its order on a motion, the optimum that shooting finds."""

import casadi as ca
import numpy as np
import pytest
from support.problems import problem

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.mpc.ocp.collocation import gauss
from mbcasadi.mpc.ocp.solution import rollout

TOP = """<mujoco><worldbody><body><joint type="ball"/><geom type="box" pos="0 0 -.2"
size=".05 .1 .2" mass="2"/></body></worldbody></mujoco>"""


ROOTS = 1e-13  # rounding of the roots of a polynomial of degree 4 and of powers up to the seventh


@pytest.mark.parametrize("points", [1, 2, 3, 4])
def test_gauss_method_integrates_polynomials_of_its_order(points):
    A, b, c = gauss(points)
    for k in range(2 * points):
        assert b @ c**k == pytest.approx(1 / (k + 1), abs=ROOTS)
    for k in range(points):
        np.testing.assert_allclose(A @ c**k, c ** (k + 1) / (k + 1), atol=ROOTS)


def pendulum():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    return mb.from_lagrangian(q, v, kinetic=v**2 / 2, potential=-9.81 * ca.cos(q), B=[[1]])


@pytest.mark.parametrize(("points", "order"), [(1, 2), (2, 4)])
def test_a_motion_without_control_is_found_with_the_methods_order(points, order):
    system, x0, errors = pendulum(), [1.0, 0.5], []
    exact = mb.simulate(system, x0[:1], x0[1:], 0.8, times=[0.0, 0.8])
    for N in (8, 16):
        ocp = mpc.optimal_control_problem(system, N, 0.8 / N, [mpc.Cost(R=1.0)])
        solution = mpc.solve_ocp(mpc.direct_collocation(ocp, system, points), x0)
        assert solution.solved, solution.in_words
        errors.append(abs(solution.x[-1, 0] - exact.q[-1, 0]))
    assert errors[1] > 1e-10
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


def test_a_turning_body_is_the_one_of_an_independent_integration():
    system = mb.read_mjcf(TOP)
    v0 = np.array([1.0, -2.0, 3.0])
    ocp = mpc.optimal_control_problem(system, 20, 0.02, [mpc.Cost(Q=1.0)])
    three = mpc.direct_collocation(ocp, system, 3)
    x0 = np.concatenate([system.tree.q0, v0])
    guess = mpc.collocation_guess(three, system, rollout(ocp, x0, ocp.parameters()))
    solution = mpc.solve_ocp(three, x0, guess=guess)
    exact = mb.simulate(system, system.tree.q0, v0, 0.4, times=[0.0, 0.4])
    assert solution.solved, solution.in_words
    np.testing.assert_allclose(solution.x[-1], [*exact.q[-1], *exact.v[-1]], atol=1e-7)


@pytest.mark.long
def test_a_four_bar_has_the_optimum_of_fine_shooting():
    system = mb.read_mjcf(models.path("pendulum_on_four_bar"))
    weights = [1, 0, 1, 0, 0.1, 0, 0.1, 0]
    given = {"Q": weights, "R": 0.1, "Q_end": 20 * np.array(weights), "u_bounds": [[-1.2, 1.2]]}
    x0 = np.append(system.tree.q0 + np.array([0, 0, 0.1, 0]), np.zeros(4))
    ocp = problem(system, 15, 0.02, **given)
    coarse, fine = (
        mpc.solve_ocp(problem(system, 15, 0.02, step=mpc.StepOptions(substeps=n), **given), x0)
        for n in (2, 4)
    )
    four = mpc.direct_collocation(ocp, system, 4)
    solution = mpc.solve_ocp(four, x0, guess=mpc.collocation_guess(four, system, fine))
    for one in (coarse, fine, solution):
        assert one.solved, one.in_words
    # Steps of order 4: halving them leaves a fifteenth of the change that it made.
    limit = fine.cost + (fine.cost - coarse.cost) / 15
    assert abs(fine.cost - limit) > 1e-7
    assert solution.cost == pytest.approx(limit, rel=5e-7)
    np.testing.assert_allclose(solution.u[:, :1], fine.u, atol=1e-4)
    phi = system.constraint.map(16)(solution.x[:, :4].T).full()
    assert np.abs(phi).max() < 1e-8


def test_a_row_that_moves_with_time_is_followed_inside_an_interval_too():
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    system = mb.from_lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, B=[[0], [1]], phi=q[0] - ca.sin(t), t=t
    )
    ocp = mpc.optimal_control_problem(system, 4, 0.25, [mpc.Cost(R=1.0)])
    for newton in (0, 2):
        solution = mpc.solve_ocp(mpc.direct_collocation(ocp, system, 3, newton), [0, 0, 1, 2])
        assert solution.solved, solution.in_words
        expected = [np.sin(1), 2, np.cos(1), 2]
        np.testing.assert_allclose(solution.x[-1], expected, atol=1e-7 if newton == 0 else 1e-12)


def test_what_collocation_cannot_take_is_refused():
    system = pendulum()
    ocp = mpc.optimal_control_problem(system, 3, 0.1, [mpc.Cost(R=1.0)])
    with pytest.raises(err.ProblemError, match="points = 0; expected 1 to 9"):
        mpc.direct_collocation(ocp, system, 0)
    with pytest.raises(err.ProblemError, match="expected those of"):
        mpc.direct_collocation(ocp, mb.read_mjcf(TOP))
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    masked = mb.from_lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, phi=q[0] - q[1]).with_mask()
    with pytest.raises(err.ProblemError, match="switched by a mask"):
        mpc.direct_collocation(
            mpc.optimal_control_problem(masked, 3, 0.1, [mpc.Cost(Q=1.0)]), masked
        )
