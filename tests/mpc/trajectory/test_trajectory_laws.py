"""Optimal trajectories against closed forms: time, effort, rates, phases, periods, turns."""

import casadi as ca
import numpy as np
import pytest
from support import mpc_mechanisms as mechanisms
from support.problems import trajectory

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import mpc

OPTIMUM = 1e-6  # residuals of answers that count; solvers stop at 1e-9
N = 20
MASS, PULL, WAY = 2.0, 3.0, 1.2  # kg, N, m
SOLVERS = ("ipopt", "fatrop", "sqpmethod")

BALL = """<mujoco model="ball"><option gravity="0 0 0"/><worldbody><body>
  <joint name="ball" type="ball"/><geom type="box" size="0.3 0.2 0.1" mass="3"/></body></worldbody>
  <actuator><motor joint="ball" gear="1 0 0" ctrlrange="-1 1"/>
    <motor joint="ball" gear="0 1 0" ctrlrange="-1 1"/>
    <motor joint="ball" gear="0 0 1" ctrlrange="-1 1"/></actuator></mujoco>"""


def sliding_mass(low=-PULL, high=PULL):
    return mechanisms.sliding_mass(MASS, ctrl_range=[[low, high]])


def rest_to_rest(system, horizon=N, duration=(0.2, 5.0), start=None, **options):
    """Return the solution of a mass that moves from rest to rest by `WAY`, from a straight guess.

    `options` are parts by name; functions among them take the symbols of the problem.
    """
    own = mpc.stage_symbols(system)
    options = {name: part(own) if callable(part) else part for name, part in options.items()}
    start = {"q0": [0.0], "v0": [0.0]} if start is None else start(own)
    end, solver = (
        mpc.pin_independent_coordinates(system, own, [WAY]),
        options.pop("solver", "ipopt"),
    )
    given = {"symbols": own, "end": end} | start | options
    problem = trajectory(system, horizon, duration, **given)
    guess = mpc.trajectory_guess(problem, np.linspace(0, WAY, horizon + 1)[:, None])
    return mpc.solve_trajectory(problem, guess, solver=solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_fastest_way_is_full_force_and_full_brake(solver):
    solution = rest_to_rest(sliding_mass(), time_weight=1.0, solver=solver)
    assert solution.solved, solution.in_words
    assert solution.t[-1] == pytest.approx(2 * np.sqrt(WAY * MASS / PULL), rel=OPTIMUM)
    np.testing.assert_allclose(solution.u.ravel(), np.repeat([PULL, -PULL], N // 2), atol=1e-4)


def test_the_price_of_the_way_is_the_multiplier_of_its_row():
    solution = rest_to_rest(sliding_mass(), time_weight=1.0)
    lam = solution.ocp_solution.lam_g[-2]  # of the last position; the last one is of the velocity
    # T = 2 sqrt(d m / F), so dT/dd = sqrt(m / (F d)).
    assert abs(lam) == pytest.approx(np.sqrt(MASS / (PULL * WAY)), rel=1e-5)


def test_time_and_effort_meet_where_their_closed_form_says():
    weight, price, wide = 2.0, 0.7, sliding_mass(-100.0, 100.0)
    given = {"time_weight": weight, "residual": lambda own: np.sqrt(price) * own.u}
    solution = rest_to_rest(wide, duration=(0.1, 20.0), **given)
    # Held over N intervals, u falls linearly; ½ p ∫ u² = 6 p (m d)² / T³ · N² / (N² - 1).
    E = 6 * price * (MASS * WAY) ** 2 * N**2 / (N**2 - 1)
    T = (3 * E / weight) ** 0.25
    assert solution.solved
    assert solution.t[-1] == pytest.approx(T, rel=OPTIMUM)
    assert solution.cost == pytest.approx(weight * T + E / T**3, rel=OPTIMUM)
    bends = np.diff(solution.u.ravel(), 2)
    assert np.abs(bends).max() < 1e-6 * np.abs(solution.u).max()


def test_with_bounded_rates_the_force_falls_as_fast_as_it_may():
    rate = 4.0
    wide = sliding_mass(-100.0, 100.0)
    solution = rest_to_rest(wide, time_weight=1.0, u_rates=[[-rate, rate]])
    jerk = rate / MASS
    T = (12 * WAY / (jerk * (1 - 1 / N**2))) ** (1 / 3)
    assert solution.solved, solution.in_words
    assert solution.t[-1] == pytest.approx(T, rel=OPTIMUM)
    slopes = np.diff(solution.u.ravel()) / np.diff(solution.t[:-1])
    np.testing.assert_allclose(slopes, -rate, rtol=1e-5)


def test_a_weight_of_rates_makes_them_smaller():
    free = rest_to_rest(sliding_mass(), time_weight=1.0)
    calm = rest_to_rest(sliding_mass(), time_weight=1.0, rate_weight=1e-3)
    assert calm.solved
    jump = [np.abs(np.diff(one.u.ravel())).max() for one in (free, calm)]
    assert jump[1] < 0.5 * jump[0]
    assert calm.t[-1] > free.t[-1]


def test_a_soft_limit_of_speed_is_violated_at_a_low_price_only():
    limit, solution = 1.0, {}
    for price in (0.0, 1e-4, 10.0):

        def speed(own, price=price):
            return [mpc.Bounded(own.v, -9.0, limit, price, name="speed")]

        solution[price] = rest_to_rest(sliding_mass(), path=speed, time_weight=1.0)
        assert solution[price].solved, solution[price].in_words
    hard, cheap, dear = (solution[price] for price in (0.0, 1e-4, 10.0))
    assert hard.v.max() == pytest.approx(limit, abs=OPTIMUM)
    assert dear.v.max() == pytest.approx(limit, abs=OPTIMUM)
    assert dear.t[-1] == pytest.approx(hard.t[-1], rel=OPTIMUM)
    assert cheap.v.max() > 1.3
    assert "speed at sample" in cheap.ocp_solution.violations[0]


def test_two_phases_put_the_switch_where_it_belongs():
    push, brake = 4.0, 1.0  # N
    given = {"duration": [(0.05, 5.0)] * 2, "phases": (1, 1), "time_weight": 1.0}
    solution = rest_to_rest(sliding_mass(-brake, push), 2, **given)
    T = np.sqrt(2 * WAY * MASS * (1 / push + 1 / brake))
    assert solution.solved, solution.in_words
    assert solution.t[-1] == pytest.approx(T, rel=OPTIMUM)
    np.testing.assert_allclose(solution.durations, T * np.array([0.2, 0.8]), rtol=1e-4)
    np.testing.assert_allclose(solution.u.ravel(), [push, -brake], atol=1e-3)


def test_an_oscillator_swings_in_its_own_period_without_effort():
    stiffness = 18.0
    omega = np.sqrt(stiffness / MASS)
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    energies = {"kinetic": MASS * v**2 / 2, "potential": stiffness * q**2 / 2}
    system = mb.from_lagrangian(q, v, **energies, B=[[1]])
    own = mpc.stage_symbols(system)
    start = {"v0": [0.0], "start": [mpc.Bounded(own.q, 1.0, 1.0)], "periodic": [0.0]}
    given = {"residual": own.u, "symbols": own, "step": mpc.StepOptions(substeps=2)}
    problem = trajectory(system, 60, (1.0, 3.0), **start, **given)
    turn = np.linspace(0, 2 * np.pi, 61)[:, None]
    solution = mpc.solve_trajectory(
        problem, mpc.trajectory_guess(problem, np.cos(turn), durations=1.9)
    )
    assert solution.solved
    assert solution.t[-1] == pytest.approx(2 * np.pi / omega, rel=1e-6)  # of the step: (ω h)⁴ / 120
    assert solution.cost < 1e-12
    np.testing.assert_allclose(solution.q[-1], solution.q[0], atol=1e-9)
    np.testing.assert_allclose(solution.v[-1], solution.v[0], atol=1e-9)
    np.testing.assert_allclose(solution.q, np.cos(turn), atol=1e-4)


def test_a_duration_with_equal_bounds_is_fixed_and_has_a_price():
    T, price, wide = 1.5, 0.5, sliding_mass(-100.0, 100.0)
    fixed, bounded = (
        rest_to_rest(wide, duration=ends, residual=lambda own: np.sqrt(price) * own.u)
        for ends in ((T, T), (0.3, T))
    )
    E = 6 * price * (MASS * WAY) ** 2 * N**2 / (N**2 - 1)
    for actual in (fixed, bounded):
        assert actual.solved, actual.in_words
        assert actual.t[-1] == pytest.approx(T, rel=OPTIMUM)
        assert actual.cost == pytest.approx(E / T**3, rel=OPTIMUM)


def test_a_ball_joint_turns_about_one_axis_in_least_time():
    system, angle = mb.read_mjcf(BALL), 2.0
    inertia = 3.0 * (0.6**2 + 0.4**2) / 12
    turned = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    own = mpc.stage_symbols(system)
    end = mpc.pin_independent_coordinates(system, own, turned)
    given = {"residual": 1e-4 * own.u, "end": end, "time_weight": 1.0, "symbols": own}
    problem = trajectory(system, N, (0.1, 3.0), q0=[1, 0, 0, 0], v0=np.zeros(3), **given)
    half = np.linspace(0, angle / 2, N + 1)
    zero = np.zeros(N + 1)
    path = np.column_stack([np.cos(half), zero, zero, np.sin(half)])
    solution = mpc.solve_trajectory(problem, mpc.trajectory_guess(problem, path))
    assert solution.solved, solution.in_words
    # The bound is that of a turn about z alone; torques about x and y can help by a little.
    T = 2 * np.sqrt(angle * inertia)
    assert solution.t[-1] <= T * (1 + OPTIMUM)
    assert solution.t[-1] > 0.9 * T
    np.testing.assert_allclose(np.linalg.norm(solution.q, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(solution.q[-1], turned, atol=1e-7)
    middle = solution.at([solution.t[-1] / 3])[0]
    assert np.linalg.norm(middle) == pytest.approx(1.0, abs=1e-12)


def test_a_bound_of_the_start_that_presses_is_met():
    def near(own):
        return {"v0": [0.0], "start": [mpc.Bounded(own.q, -0.3, 0.4)]}

    solution = rest_to_rest(sliding_mass(), start=near, time_weight=1.0)
    assert solution.solved, solution.in_words
    assert solution.q[0, 0] == pytest.approx(0.4, abs=OPTIMUM)
    assert solution.t[-1] == pytest.approx(2 * np.sqrt((WAY - 0.4) * MASS / PULL), rel=OPTIMUM)


def test_a_goal_out_of_reach_is_called_so():
    solution = rest_to_rest(sliding_mass(), duration=(0.2, 0.5), time_weight=1.0)
    assert not solution.solved
    assert solution.ocp_solution.violation > 1e-3
    with pytest.raises(err.ProblemError, match="before the start"):
        solution.at([-0.1])
