"""What tracks a trajectory sees the trajectory: windows, impulses, laps, linear systems."""

import casadi as ca
import numpy as np
import pytest
from support.problems import trajectory

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.control.laws import LawOptions
from mbcasadi.control.regulators import trajectory_lqr

STEPS, WINDOW, PERIOD = 20, 12, 0.01  # intervals; samples, s
HOLD = 0.6  # s, the duration of the move
EXACT = 1e-12
STEP_ERROR = 1e-5  # rad and rad/s, a step of 0.03 s beside three of 0.01 s, of order 4


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(models.path("five_bar"))


@pytest.fixture(scope="module")
def move(system):
    own = mpc.stage_symbols(system)
    tool = system.frame("tool").pose(own.q)[0][[0, 2]]
    s = np.linspace(0, 1, STEPS + 1)
    path = mpc.pose_path(
        system, own.q, tool, HOLD * s, np.linspace([-0.1, 0.7], [0.1, 0.75], len(s))
    )
    end = mpc.pin_independent_coordinates(system, own, path.q[-1])
    given = {"residual": own.u, "end": end, "q0": path.q[0], "v0": np.zeros(4), "symbols": own}
    problem = trajectory(system, STEPS, (HOLD, HOLD), **given)
    solution = mpc.solve_trajectory(problem, path.guess(problem))
    assert solution.solved, solution.in_words
    return solution


@pytest.fixture(scope="module")
def lap(system):
    """Return a swing between two heights in a period of its own."""
    own = mpc.stage_symbols(system)
    tool = system.frame("tool").pose(own.q)[0][[0, 2]]
    turn = np.linspace(0, 2 * np.pi, STEPS + 1)
    circle = np.column_stack([0.08 * np.sin(turn), 0.7 + 0.05 * np.cos(turn)])
    path = mpc.pose_path(system, own.q, tool, 0.8 * turn / turn[-1], circle)
    goals = mpc.stage_symbols(system, goal=2)
    away = ca.substitute(tool, own.q, goals.q) - goals.parameters["goal"]
    cost = {"residual": ca.vertcat(30 * away, 0.05 * goals.u), "time_weight": 0.5}
    problem = trajectory(system, STEPS, (0.4, 1.2), periodic=np.zeros(4), symbols=goals, **cost)
    solution = mpc.solve_trajectory(
        problem, path.guess(problem), problem.ocp.parameters(goal=circle)
    )
    assert solution.solved, solution.in_words
    return solution


@pytest.fixture(scope="module")
def follow(system):
    weight = np.repeat([10.0, 0.1], 4)
    return mpc.optimal_control_problem(
        system, WINDOW, PERIOD, [mpc.Cost(Q=weight, R=0.01, Q_end=weight)]
    )


def setpoints(ref, ocp):
    """Return q, v, u of each sample of a reference."""
    return np.hsplit(ref.reshape(ocp.horizon + 1, ocp.np_), [4, 8])


def test_a_window_shows_where_the_motion_will_be(move, follow):
    reference = mpc.reference_from_trajectory(move, follow, delay=2, start=0.1)
    q, v, u = setpoints(reference(0.25), follow)
    times = 0.15 + PERIOD * (2 + np.arange(WINDOW + 1))
    expected = move.at(times)
    np.testing.assert_allclose(q, expected[0], atol=EXACT)
    np.testing.assert_allclose(v, expected[1], atol=EXACT)
    # 0.03 s between samples of the trajectory: ticks lie within them.
    np.testing.assert_allclose(u, expected[2], atol=1e-9)
    assert np.ptp(q, axis=0).max() > 1e-3


def test_before_and_after_the_motion_its_ends_are_held(move, follow):
    reference = mpc.reference_from_trajectory(move, follow, start=1.0)
    q, v, _ = setpoints(reference(0.0), follow)
    np.testing.assert_allclose(q, np.tile(move.q[0], (WINDOW + 1, 1)), atol=EXACT)
    assert not v.any()
    q, v, u = setpoints(reference(1.0 + HOLD + 0.5), follow)
    np.testing.assert_allclose(q, np.tile(move.q[-1], (WINDOW + 1, 1)), atol=EXACT)
    assert not v.any()
    system = move.problem.system
    motion = mb.forward_dynamics(system, derivatives=False)
    rest = motion(q[0], np.zeros(4), system.actuation(q[0]) @ u[0])[0]  # torques that hold it
    np.testing.assert_allclose(rest.full(), 0, atol=1e-8)
    assert np.abs(u).max() > 0.1


def test_ticks_that_do_not_fit_keep_the_impulse(move, system):
    period = 0.0137
    other = mpc.optimal_control_problem(system, 1, period, [mpc.Cost(Q=np.ones(8), R=1.0)])
    reference = mpc.reference_from_trajectory(move, other)
    ticks = int(HOLD / period)
    u = np.array([setpoints(reference(k * period), other)[2][0] for k in range(ticks)])
    end = ticks * period
    k = np.searchsorted(move.t, end) - 1
    whole = np.diff(move.t)[:k] @ move.u[:k] + (end - move.t[k]) * move.u[k]
    np.testing.assert_allclose(period * u.sum(axis=0), whole, atol=1e-9)


def test_the_first_guess_is_a_motion_of_the_window(move, follow):
    guess = mpc.tracking_guess(move, follow, t=0.1)
    step = follow.dynamics.map(WINDOW)
    x_next = step(guess.x[:-1].T, guess.u.T, guess.p[:-1].T).full().T
    np.testing.assert_allclose(x_next, guess.x[1:], atol=STEP_ERROR)
    assert np.abs(guess.x[1:] - guess.x[:-1]).max() > 1e-2


def test_a_guess_holds_the_control_before_where_its_changes_cost(move, system):
    weight = np.repeat([10.0, 0.1], 4)
    ocp = mpc.optimal_control_problem(system, WINDOW, PERIOD, [mpc.Cost(Q=weight, R=0.01, S=0.1)])
    guess = mpc.tracking_guess(move, ocp, t=0.1)
    np.testing.assert_allclose(guess.x[1:, 8:], guess.u, atol=EXACT)
    law = mpc.real_time_iteration(ocp, guess)
    ref = mpc.reference_from_trajectory(move, ocp)(0.0)
    answer = law.function(move.q[0], move.v[0], ref, law.controller.z0)
    assert float(answer[2]) == 0


def test_the_end_itself_is_the_last_sample(lap, move):
    at_end = lap.at([lap.t[-1]])
    np.testing.assert_allclose(at_end[1][0], lap.v[-1], atol=1e-9)
    assert np.abs(lap.v[-1]).max() > 0.1
    q, v, u = move.at([HOLD, HOLD + 1e-9, HOLD + 1])
    np.testing.assert_allclose(q, np.tile(move.q[-1], (3, 1)), atol=EXACT)
    np.testing.assert_allclose(u[1:], np.tile(move.rest_control, (2, 1)), atol=EXACT)
    assert np.abs(u[0] - move.u[-1]).max() < EXACT
    assert not v[1:].any()


def test_laps_follow_each_other(lap, follow, system):
    T = lap.t[-1]
    reference = mpc.reference_from_trajectory(lap, follow, beyond="repeat")
    for t in (0.03, T - 0.02):
        now, later = (setpoints(reference(t + n * T), follow) for n in (0, 3))
        for one, other in zip(now, later, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    along = mpc.linearize_trajectory(lap, PERIOD, 2)
    assert len(along) == int(np.ceil(2 * T / PERIOD)) + 1
    q, _, _ = lap.at([PERIOD * 40], "repeat")
    np.testing.assert_allclose(along[40].q, q[0], atol=1e-9)


def test_the_law_along_the_trajectory_gives_its_controls_on_it(move):
    along = mpc.linearize_trajectory(move, PERIOD)
    law = trajectory_lqr(
        along, np.repeat([100.0, 1.0], 4), 0.01, Q_end=np.ones(8), options=LawOptions(period=PERIOD)
    )
    z = law.controller.z0
    for k in range(len(along) - 1):
        q, v, _ = move.at([k * PERIOD])
        u, z, *_ = law.function(q[0], v[0], np.zeros(0), z)
        np.testing.assert_allclose(u.full().ravel(), along[k].u, atol=1e-7, err_msg=str(k))


def test_linear_mpc_along_the_trajectory_is_the_nonlinear_one_near_it(move, follow, system):
    weight = np.repeat([10.0, 0.1], 4)
    law = mpc.trajectory_mpc(move, WINDOW, PERIOD, mpc.Cost(weight, 0.01))
    rti = mpc.real_time_iteration(follow, mpc.tracking_guess(move, follow))
    refs = (
        mpc.time_varying_model(move, law.ocp)(0.0),
        mpc.reference_from_trajectory(move, follow)(0.0),
    )
    gaps = {}
    for size in (0.0, 1e-3, 1e-2):
        q = mb.assemble(system, move.q[0] + size * np.array([1.0, 0, 0, 0]))
        answers = [
            one.function(q, move.v[0], ref, one.controller.z0)
            for one, ref in zip((law, rti), refs, strict=True)
        ]
        assert [float(one[2]) for one in answers] == [0.0, 0.0]
        u = [one[0].full().ravel() for one in answers]
        assert size == 0 or np.abs(u[0] - move.u[0]).max() > 10 * size
        gaps[size] = np.abs(u[0] - u[1]).max()
    assert gaps[0.0] < 1e-8
    assert gaps[1e-3] < 1e-5
    assert gaps[1e-2] < 1e-3  # one step of Gauss and Newton from the same guess


def test_its_model_is_the_step_and_the_slopes_of_the_trajectory(move, system):
    law = mpc.trajectory_mpc(move, WINDOW, PERIOD, mpc.Cost(np.ones(8), 1.0))
    rows = mpc.time_varying_model(move, law.ocp, delay=3)(0.05).reshape(WINDOW + 1, law.ocp.np_)
    x, x_next, u, A, _ = np.split(rows[2], [8, 16, 18, 18 + 64])
    q, v, _ = move.at([0.05 + 5 * PERIOD])
    np.testing.assert_allclose(x, np.concatenate([q[0], v[0]]), atol=EXACT)
    step = mpc.discrete_dynamics(system, PERIOD)
    np.testing.assert_allclose(step(x, u, []).full().ravel(), x_next, atol=1e-10)
    d = 1e-6 * np.random.default_rng(0).standard_normal(8)
    moved = step(x + d, u, []) - step(x - d, u, [])
    np.testing.assert_allclose(A.reshape(8, 8).T @ d, moved.full().ravel() / 2, atol=1e-11)


def test_linear_mpc_along_a_trajectory_refuses_what_it_cannot_do(move):
    with pytest.raises(err.ProblemError, match=r"horizon = 0\.5"):
        mpc.trajectory_mpc(move, 0.5, PERIOD, mpc.Cost(np.ones(8), 1.0))
    with pytest.raises(err.ProblemError, match="R"):
        mpc.trajectory_mpc(move, 5, PERIOD, mpc.Cost(np.ones(8), -1.0))
    with pytest.raises(err.ProblemError, match="not periodic"):
        mpc.trajectory_mpc(move, 5, PERIOD, mpc.Cost(np.ones(8), 1.0), beyond="repeat")
