"""Trajectory problems refuse what makes no sense, and say what would."""

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import sliding_mass
from support.problems import trajectory

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc

N = 10


def problem_of(system, horizon=N, duration=(0.1, 3.0), **options):
    own = options.pop("symbols", mpc.stage_symbols(system))
    return trajectory(system, horizon, duration, symbols=own, **({"time_weight": 1.0} | options))


@pytest.fixture(scope="module")
def mass():
    return sliding_mass(ctrl_range=[[-3, 3]])


@pytest.fixture(scope="module")
def five_bar():
    return mb.read_mjcf(models.path("five_bar"))


@pytest.mark.parametrize(("options", "message"), [
    ({"duration": (0.0, 1.0)}, "0 < T_min <= T_max"),
    ({"duration": (2.0, 1.0)}, "0 < T_min <= T_max"),
    ({"duration": (1.0, np.inf)}, "0 < T_min <= T_max"),
    ({"duration": (np.nan, 1.0)}, "0 < T_min <= T_max"),
    ({"horizon": 0}, "horizon = .*whole number"), ({"horizon": 2.5}, "horizon = .*whole number"),
    ({"phases": (10, 0), "duration": [(1, 2), (1, 2)]}, "horizon = .*whole number"),
    ({"time_weight": -1.0}, "weight = -1.0; expected a finite number, not negative"),
    ({"rate_weight": np.nan}, "weight = nan"), ({"time_weight": 0.0}, "no cost"),
    ({"v0": [1.0]}, "v0 without q0"), ({"periodic": [np.nan]}, "finite growth of at least one"),
    ({"points": 10}, "points = 10; expected 0 to 9"),
    ({"u_rates": [[2.0, 1.0]]}, r"rate\[0\] is 2.0 to 1.0: empty"),
    ({"u_bounds": [[2.0, 1.0]]}, r"u\[0\] is 2.0 to 1.0: empty"),
])  # fmt: skip
def test_nonsense_is_refused_in_words(mass, options, message):
    with pytest.raises(err.ProblemError, match=message):
        problem_of(mass, **options)


@pytest.mark.parametrize(("options", "message"), [
    ({"phases": (4, 4)}, r"expected bounds \(2,\), or \(2, 2\), a row for each phase"),
    ({"duration": [(1, 2), (1, 2)]}, r"expected bounds \(2,\), or \(1, 2\)"),
    ({"q0": [0.0, 1.0]}, "q0 has shape"), ({"q0": [np.nan]}, "q0 holds NaN"),
    ({"start": [mpc.Bounded(ca.SX.sym("x"))]}, "start rows depend on x"),
])  # fmt: skip
def test_shapes_are_checked(mass, options, message):
    with pytest.raises(err.ShapeError, match=message):
        problem_of(mass, **options)


def test_constraints_with_a_clock_are_refused():
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    system = mb.from_lagrangian(q, v, kinetic=ca.sumsqr(v), B=np.eye(2), phi=q[0] - ca.sin(t), t=t)
    with pytest.raises(err.ProblemError, match="move with a clock"):
        problem_of(system)


def test_more_start_rows_than_coordinates_are_refused(mass):
    own = mpc.stage_symbols(mass)
    with pytest.raises(err.ProblemError, match="3 rows at the start"):
        problem_of(mass, symbols=own, q0=[0.0], v0=[0.0], start=[mpc.Bounded(own.q, 0, 0)])


def test_rows_that_contradict_each_other_are_named(mass):
    own = mpc.stage_symbols(mass)
    end = [
        mpc.Bounded(own.q, 1.0, 1.0),
        mpc.Bounded(own.v, 0.0, 0.0),
        mpc.Bounded(2 * own.q, 3.0, 3.0),
    ]
    problem = problem_of(mass, symbols=own, q0=[0.0], v0=[0.0], end=end)
    guess = mpc.trajectory_guess(problem, np.linspace(0, 1, N + 1)[:, None])
    np.testing.assert_allclose(guess.x[:, 1], 1 / guess.x[:, 2])  # v = 1 / T
    with pytest.raises(err.ProblemError, match=r"end\[.\] repeat or contradict"):
        mpc.solve_trajectory(problem, guess)


@pytest.mark.long
def test_a_pose_by_all_its_coordinates_repeats_what_the_loop_says(five_bar):
    own, q = mpc.stage_symbols(five_bar), five_bar.tree.q0
    still = {"q0": q, "v0": np.zeros(4), "symbols": own, "horizon": 4}
    whole = [mpc.Bounded(own.q - q, 0, 0), mpc.Bounded(own.v, 0, 0)]
    guess = np.tile(q, (5, 1))
    problem = problem_of(five_bar, end=whole, **still)
    with pytest.raises(err.ProblemError, match=r"16 rows of start and end.*12 of them"):
        mpc.solve_trajectory(problem, mpc.trajectory_guess(problem, guess))
    problem = problem_of(five_bar, periodic=np.zeros(4), **still)
    with pytest.raises(err.ProblemError, match=r"repeat or contradict.*pin_independent"):
        mpc.solve_trajectory(problem, mpc.trajectory_guess(problem, guess))
    problem = problem_of(five_bar, end=mpc.pin_independent_coordinates(five_bar, own, q), **still)
    assert mpc.solve_trajectory(problem, mpc.trajectory_guess(problem, guess)).durations.shape == (
        1,
    )


def test_a_state_off_the_manifold_is_no_end(five_bar):
    symbols, q = mpc.stage_symbols(five_bar), five_bar.tree.q0 + 0.1 * np.eye(4)[0]
    with pytest.raises(err.ProblemError, match="open by"):
        mpc.pin_independent_coordinates(five_bar, symbols, q)


def test_guesses_and_schedules_must_fit(mass):
    problem = problem_of(mass, q0=[0.0], v0=[0.0])
    way = np.linspace(0, 1, N + 1)[:, None]
    with pytest.raises(err.ShapeError, match=r"guess of q has shape \(11, 2\)"):
        mpc.trajectory_guess(problem, np.hstack([way, way]))
    with pytest.raises(err.ShapeError, match="guess of u has shape"):
        mpc.trajectory_guess(problem, way, u=np.zeros((N + 1, 1)))
    with pytest.raises(err.ProblemError, match="1 positive numbers"):
        mpc.trajectory_guess(problem, way, durations=[1.0, 2.0])
    with pytest.raises(err.ShapeError, match="finite"):
        mpc.trajectory_guess(problem, way * np.nan)
    own = mpc.stage_symbols(mass, goal=1)
    problem = problem_of(mass, symbols=own, residual=own.q - own.parameters["goal"])
    with pytest.raises(err.ProblemError, match="schedule of goal has 14 samples; expected 10 or"):
        problem.ocp.parameters(goal=np.zeros((14, 1)))
    path = mpc.pose_path(mass, own.q, own.q, [0, 1, 2], way[:3], q0=[0.0])
    with pytest.raises(err.ProblemError, match="the path has 3 samples; expected 11"):
        path.guess(problem)


def test_paths_and_references_are_checked(mass):
    own = mpc.stage_symbols(mass)
    with pytest.raises(err.ProblemError, match="each later than the one before"):
        mpc.pose_path(mass, own.q, own.q, [0, 1, 1], np.zeros((3, 1)), q0=[0.0])
    with pytest.raises(err.ShapeError, match=r"targets has shape \(3, 2\)"):
        mpc.pose_path(mass, own.q, own.q, [0, 1, 2], np.zeros((3, 2)), q0=[0.0])
    with pytest.raises(err.ProblemError, match="no initial pose"):
        mpc.pose_path(mass, own.q, own.q, [0, 1], np.zeros((2, 1)))
    end = mpc.pin_independent_coordinates(mass, own, [1.0])
    problem = problem_of(mass, symbols=own, q0=[0.0], v0=[0.0], end=end)
    guess = mpc.trajectory_guess(problem, np.linspace(0, 1, N + 1)[:, None])
    solution = mpc.solve_trajectory(problem, guess)
    with pytest.raises(err.UnknownNameError, match="'hold', 'repeat'"):
        solution.at([0.0], "stop")
    with pytest.raises(err.ProblemError, match="not periodic"):
        solution.at([0.0], "repeat")
    with pytest.raises(err.ShapeError, match="times"):
        solution.at([np.nan])
    with pytest.raises(err.ProblemError, match="laps = 2"):
        mpc.linearize_trajectory(solution, 0.01, 2)
    bare = mpc.optimal_control_problem(mass, 5, 0.1, [mpc.Cost(residual=own.u)], symbols=own)
    with pytest.raises(err.ProblemError, match=r"no setpoint\.q"):
        mpc.reference_from_trajectory(solution, bare)


def test_a_measure_needs_a_motor_for_each_freedom(five_bar):
    other = mb.read_mjcf(models.path("pendulum_on_four_bar"))
    with pytest.raises(err.ProblemError, match="1 motors for 2 freedoms"):
        mpc.actuation_measure(other, ca.SX.sym("q", 4), other.tree.q0)
    with pytest.raises(err.ShapeError, match="q has shape"):
        mpc.actuation_measure(five_bar, ca.SX.sym("q", 3), five_bar.tree.q0)
    q = ca.SX.sym("q", 4)
    tool = five_bar.frame("tool").pose(q)[0][[0, 2]]
    path = mpc.pose_path(five_bar, q, tool, [0, 1, 2], [[0, 0.8], [0, 0.6], [0, 0.4]])
    with pytest.raises(err.ProblemError, match="is an actuation singularity"):
        mpc.actuation_measure(five_bar, q, path.q[-1])
