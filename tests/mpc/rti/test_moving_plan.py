"""Plans over intervals of given lengths, moved on by the time between two ticks."""

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import cart_pole

import mbcasadi as mb
from mbcasadi import errors, mpc
from mbcasadi.codegen import export_c
from mbcasadi.description.status import Status
from mbcasadi.mpc.rti.moving_plan import MovingPlan, Plan

TICK = 0.02
GROWING = TICK * 1.25 ** np.arange(8)
SAME = 1e-6  # of the largest control: the tolerance of all solutions is 1e-6
STEPS = {"Runge-Kutta": mpc.StepOptions(), "semi-implicit": mpc.SemiImplicitStep()}
SETPOINT = {"setpoint_q": [0.2, np.pi]}


def swing(period, step=STEPS["Runge-Kutta"], N=8, **cost):
    weights = {"Q": [3.0, 30.0, 0.1, 0.1], "R": [1e-2], "Q_end": [30.0, 300.0, 1.0, 1.0]}
    parts = [mpc.Cost(**weights, **cost), mpc.StageBounds(v=[[-2.0, 2.0], [-9.0, 9.0]])]
    return mpc.optimal_control_problem(cart_pole(limit=8.0), N, period, parts, step=step)


@pytest.fixture(scope="module")
def grown():
    """Return problems with intervals that grow, by integrator."""
    return {name: swing([*GROWING], step) for name, step in STEPS.items()}


@pytest.mark.parametrize("solver", ["daqp", "stagewise"])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.every(3)
def test_equal_lengths_as_data_give_the_controls_of_one_period(name, solver):
    laws = [
        mpc.real_time_iteration(swing(h, STEPS[name], N=5, S=[1e-2]), solver=solver, delay=1)
        for h in (0.05, [0.05] * 5)
    ]
    x, z = np.array([0.0, 0.3, 0.0, 0.0]), [law.controller.z0 for law in laws]
    for _ in range(5):
        refs = [law.reference(**SETPOINT) for law in laws]
        answers = [law.function(x[:2], x[2:], *at) for law, *at in zip(laws, refs, z, strict=True)]
        z = [answer[1] for answer in answers]
        assert [int(answer[2]) for answer in answers] == [Status.SOLVED] * 2
        np.testing.assert_allclose(float(answers[1][0]), float(answers[0][0]), atol=1e-8)
        x += 0.05 * np.array([x[2], x[3], 0.5, -1.0])


@pytest.mark.parametrize("solver", ["daqp", "stagewise"])
@pytest.mark.parametrize("name", STEPS)
def test_the_optimum_of_the_whole_problem_is_a_fixed_point(grown, name, solver):
    ocp, x0 = grown[name], np.array([0.0, 0.3, 0.0, 0.0])
    p = ocp.parameters(**SETPOINT)
    best = mpc.solve_ocp(ocp, x0, p)
    assert best.solved
    assert np.ptp(best.u) > 1
    law = mpc.real_time_iteration(ocp, best, solver=solver, shift=False)
    _, z, status, *_ = law.function(x0[:2], x0[2:], p.ravel(), law.controller.z0)
    x, u = law.trajectory(np.array(z).ravel())
    assert int(status) == Status.SOLVED
    np.testing.assert_allclose(u, best.u, atol=1e-5)
    np.testing.assert_allclose(x, best.x, atol=1e-5)


@pytest.mark.parametrize("solver", ["daqp", "stagewise"])
def test_what_is_left_of_an_optimal_plan_is_optimal(grown, solver):
    ocp, x = grown["Runge-Kutta"], np.array([0.0, 0.3, 0.0, 0.0])
    tick = TICK / 4
    p = ocp.parameters(**SETPOINT)
    best = mpc.solve_ocp(ocp, x, p)
    law = mpc.real_time_iteration(ocp, best, solver=solver, period=tick)
    assert law.period == tick
    z, lengths = law.controller.z0, GROWING.copy()
    for _ in range(4):  # all within the first interval: the samples stay where they are in time
        ref = law.reference(SETPOINT | {"step": [[h] for h in lengths]})
        u, z, status, *_ = law.function(x[:2], x[2:], ref, z)
        assert int(status) == Status.SOLVED
        np.testing.assert_allclose(float(u), best.u[0, 0], atol=1e-5)
        np.testing.assert_allclose(law.trajectory(np.array(z).ravel())[1], best.u, atol=1e-4)
        x = mpc.discrete_dynamics(ocp.system, tick)(x, u, []).full().ravel()
        lengths[0] -= tick


def test_c_is_the_function_for_lengths_that_change_and_for_bad_ones(grown, tmp_path):
    law = mpc.real_time_iteration(grown["semi-implicit"], delay=1, solver="stagewise")
    in_c = export_c(law, tmp_path / "c").load()
    rng, x, z = np.random.default_rng(0), np.array([0.0, 0.3, 0.0, 0.0]), [law.controller.z0] * 2
    for k in range(6):
        lengths = GROWING * rng.uniform(0.7, 1.4, 8)
        lengths[3] *= -1 if k == 4 else 1
        ref = law.reference(**SETPOINT).reshape(9, -1)
        ref[:-1, -1] = lengths
        given = [
            (f(x[:2], x[2:], ref.ravel(), at))
            for f, at in zip((law.function, in_c), z, strict=True)
        ]
        z = [answer[1] for answer in given]
        assert [int(a[2]) for a in given] == [Status.BAD_INPUT if k == 4 else Status.SOLVED] * 2
        np.testing.assert_allclose(float(given[1][0]), float(given[0][0]), atol=8 * SAME)
        x += TICK * np.array([x[2], x[3], 0.5, -1.0])


def test_a_wild_memory_gives_a_finite_control(grown):
    law, rng = (
        mpc.real_time_iteration(grown["semi-implicit"], solver="stagewise"),
        np.random.default_rng(1),
    )
    ref = law.reference(**SETPOINT)
    for size in (1.0, 1e6, 1e-30, np.nan):
        z = size * rng.standard_normal(law.controller.z0.size)
        u, z_next, *_ = law.function([0, 0.3], [0, 0], ref, z)
        assert np.all(np.isfinite(np.append(np.array(u).ravel(), np.array(z_next).ravel())))
        assert abs(float(u)) <= 8.0


def test_states_are_interpolated_along_rotations():
    box = mb.read_mjcf(
        """<mujoco><worldbody><body><freejoint/><geom type="box" size=".1 .2 .3" mass="1"/><site
        name="s"/></body></worldbody><actuator><motor name="m" site="s" gear="0 0 0 0 0 1"/>
        </actuator></mujoco>"""
    )
    cost = mpc.Cost(Q=[1.0] * 12, R=[1.0])
    ocp = mpc.optimal_control_problem(box, 3, [0.1, 0.2, 0.3], [cost], step=mpc.SemiImplicitStep())
    rate, v = np.array([0.3, -0.2, 0.1, 2.0, -3.0, 1.0]), np.zeros(6)
    at = [np.array(box.integrate(ocp.rest[:7], rate * t)).ravel() for t in (0, 0.1, 0.3, 0.6)]
    X = np.array([[*q, *(v + k)] for k, q in enumerate(at)]).T
    plan = Plan(ocp, ca.MX(np.array([0, 0.1, 0.3, 0.6])), ca.MX(X), ca.MX(np.array([[1.0, 2, 3]])))
    times = np.array([0.0, 0.05, 0.1, 0.25, 0.6, 0.9])
    x = ca.evalf(plan.states(ca.MX(times))).full()
    for t, column in zip(np.minimum(times, 0.6), x.T, strict=True):
        np.testing.assert_allclose(
            column[:7], np.array(box.integrate(ocp.rest[:7], rate * t)).ravel(), atol=1e-9
        )
    np.testing.assert_allclose(x[7], [0, 0.5, 1, 1.75, 3, 3], atol=1e-12)
    np.testing.assert_allclose(
        ca.evalf(plan.controls(ca.MX(times))).full().ravel(), [1, 1, 2, 2, 3, 3]
    )


def test_multipliers_follow_their_intervals_and_their_lengths():
    ocp = swing([0.1, 0.2, 0.3], N=3)
    rows = np.array([[0, 2, 4], [1, 3, 5]])  # two kinds, sample by sample; one more of the end
    lam, P = np.array([1.0, -1, 2, -2, 3, -3, 9]), ocp.parameters(step=[[0.05], [0.25], [0.3]]).T
    before = np.concatenate([[0.1, 0.2, 0.3, 0.1], np.zeros(4)])
    X, U = np.zeros((4, 4)), np.array([[5.0, 6.0, 7.0]])
    for multipliers in (True, False):
        moving = MovingPlan(ocp, 0.1, rows, multipliers)
        plan = ca.MX(X), ca.MX(U), ca.MX(lam)
        _, u, moved = (
            ca.evalf(each).full()
            for each in moving.guess(plan, ca.MX(before), ca.MX(P), ca.MX(0, 1))
        )
        np.testing.assert_allclose(u.ravel(), [6, 6, 7])
        if multipliers:
            expected = [2 * 0.25, -2 * 0.25, 2 * 1.25, -2 * 1.25, 3, -3, 9]
        else:
            expected = [2, -2, 2, -2, 3, -3, 9]
        np.testing.assert_allclose(moved.ravel(), expected)


def test_another_period_needs_given_lengths():
    with pytest.raises(errors.ProblemError, match=r"all intervals of 'ocp' are of 0.05 s"):
        mpc.real_time_iteration(swing(0.05), period=0.01)
