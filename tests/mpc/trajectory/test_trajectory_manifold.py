"""Optimal trajectories of mechanisms with loops: closed, conservative, by any solver."""

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest
from support.problems import trajectory

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc

N = 24
CLOSED = 1e-9  # m and rad, along a prediction
OPTIMUM = 1e-6
STEP_ERROR = 1e-6  # of one step of order 4 at these lengths
TURN, LIMIT = 0.8, 30.0  # rad and N m of the crank


def crank_move(system, duration=(0.05, 1.0), path=None, **options):
    """Return the problem of a slider-crank from rest to rest, and a guess by inverse kinematics."""
    own = mpc.stage_symbols(system)
    s = np.linspace(0, 1, N + 1)
    turn = TURN * (s * s * (3 - 2 * s))[:, None]
    path = path or mpc.pose_path(system, own.q, own.q[0], 0.4 * s, turn)
    end = mpc.pin_independent_coordinates(system, own, path.q[-1])
    given = {"q0": path.q[0], "v0": np.zeros(3), "symbols": own, "end": end, "time_weight": 1.0}
    bounds = {"u_bounds": [[-LIMIT, LIMIT]]}
    problem = trajectory(system, N, duration, residual=5e-2 * own.u, **given, **bounds, **options)
    return problem, path


def pull(system, times, u):
    """Return the force (t, q, v) → (nv,) of controls between which it is straight."""

    def force(t, q, v):
        now = [np.interp(t, times, column) for column in np.transpose(u)]
        return (system.actuation(q) @ now).full().ravel()

    return force


@pytest.fixture(scope="module")
def moves():
    system = mb.read_mjcf(models.path("slider_crank"))
    problem, path = crank_move(system)
    guess = path.guess(problem)
    solvers = {
        name: mpc.trajectory_solver(problem, name) for name in ("ipopt", "fatrop", "sqpmethod")
    }
    return system, path, solvers, {name: one.solve(guess) for name, one in solvers.items()}


def test_all_solvers_find_one_trajectory(moves):
    _, _, _, solution = moves
    best = solution["ipopt"]
    assert np.abs(best.u).max() == pytest.approx(LIMIT, abs=OPTIMUM)  # the limit counts
    for name, one in solution.items():
        assert one.solved, (name, one.in_words)
        assert one.t[-1] == pytest.approx(best.t[-1], rel=OPTIMUM), name
        assert one.cost == pytest.approx(best.cost, rel=OPTIMUM), name
        np.testing.assert_allclose(one.q, best.q, atol=1e-5, err_msg=name)


def test_ipopt_takes_the_hessian_of_gauss_and_newton_too(moves):
    system, path, _, solution = moves
    problem, _ = crank_move(system)
    other = mpc.solve_trajectory(problem, path.guess(problem), hessian="gauss-newton")
    assert other.solved, other.in_words
    assert other.cost == pytest.approx(solution["ipopt"].cost, rel=OPTIMUM)


def test_the_loop_is_closed_at_and_between_samples(moves):
    system, _, _, solution = moves
    best = solution["ipopt"]
    assert best.trajectory.drift.max() < CLOSED
    assert best.trajectory.drift_velocity.max() < CLOSED
    q, v, _ = best.at(np.linspace(0, best.t[-1], 101))
    assert np.abs(system.constraint.map(101)(q.T).full()).max() < CLOSED
    A = system.constraint_jacobian
    assert max(np.abs(A(a).full() @ b).max() for a, b in zip(q, v, strict=True)) < 10 * CLOSED
    np.testing.assert_allclose(best.at(best.t[3:4])[0][0], best.q[3], atol=1e-12)


def test_energy_grows_by_the_work_of_the_motor(moves):
    _, _, _, solution = moves
    best = solution["ipopt"]
    work = best.u[:, 0] * np.diff(best.q[:, 0])
    energy = best.trajectory.energy
    assert np.ptp(energy) > 1.0
    np.testing.assert_allclose(np.diff(energy), work, atol=1e-5 * np.ptp(energy))


def test_a_simulation_with_fine_steps_agrees(moves):
    system, _, _, solution = moves
    best = solution["ipopt"]
    for k, (start, end) in enumerate(pairwise(best.t)):
        force = pull(system, [0.0], best.u[k : k + 1])
        run = mb.simulate(system, best.q[k], best.v[k], end - start, force=force)
        np.testing.assert_allclose(run.q[-1], best.q[k + 1], atol=STEP_ERROR, err_msg=str(k))


def test_the_lagrangian_is_flat_in_every_direction(moves):
    _, _, solvers, solution = moves
    program, answer = solvers["ipopt"].solver.program, solution["ipopt"].ocp_solution
    value = ca.Function("value", [program.w, program.parameters], [program.f, program.g])
    w = program.pack(answer.x, answer.u, answer.p)
    p = np.concatenate([np.zeros(program.ocp.nx), answer.p.ravel()])

    def lagrangian(point):
        f, g = value(point, p)
        return float(f) + float(ca.dot(g, answer.lam_g)) + float(answer.lam_w @ point)

    rng = np.random.default_rng(0)
    h = 1e-5
    for d in rng.standard_normal((5, w.size)):
        assert abs(lagrangian(w + h * d) - lagrangian(w - h * d)) / (2 * h) < 1e-5


@pytest.mark.long
def test_the_duration_is_optimal_among_fixed_ones(moves):
    system, path, _, solution = moves
    best = solution["ipopt"]
    for share in (0.97, 1.03):
        T = share * best.t[-1]
        problem, _ = crank_move(system, (T, T))
        other = mpc.solve_trajectory(problem, path.guess(problem))
        assert other.solved, other.in_words
        assert other.t[-1] == pytest.approx(T, rel=OPTIMUM)
        assert best.cost * (1 + 1e-5) < other.cost < best.cost * 1.01


def test_collocation_finds_the_same_trajectory_by_its_order(moves):
    system, path, _, solution = moves
    best, miss = solution["ipopt"], {}
    for points in (1, 2):
        problem, _ = crank_move(system, points=points)
        other = mpc.solve_trajectory(problem, path.guess(problem))
        assert other.solved, other.in_words
        assert other.u.shape == best.u.shape
        assert other.trajectory.drift.max() < CLOSED
        miss[points] = np.abs(other.q - best.q).max()
    assert 1e-5 < miss[1] < 1e-3  # order 2
    assert miss[2] < 1e-2 * miss[1]  # order 4


def test_a_mechanism_whose_rows_can_be_switched_moves_the_same_way(moves):
    system, path, _, solution = moves
    best = solution["ipopt"]
    masked = system.with_mask()
    problem, _ = crank_move(masked, path=path)
    other = mpc.solve_trajectory(problem, path.guess(problem))
    assert other.solved, other.in_words
    assert other.cost == pytest.approx(best.cost, rel=OPTIMUM)
    np.testing.assert_allclose(other.at([0.2])[0], best.at([0.2])[0], atol=1e-5)


def test_a_crank_that_nothing_brakes_turns_for_ever_through_singular_poses():
    system = mb.read_mjcf(models.path("slider_crank"))
    own, first = mpc.stage_symbols(system), np.zeros(system.nv)
    first[0] = 12.0
    q0 = mb.assemble(system, system.tree.q0)
    A = np.array(system.constraint_jacobian(q0))
    first = first - np.linalg.pinv(A, 1e-9) @ (A @ first)
    free = mb.simulate(system, q0, first, 2.5)
    T = float(np.interp(2 * np.pi, free.q[:, 0] - q0[0], free.t))
    n = 40
    samples = mb.simulate(system, q0, first, T, times=np.linspace(0, T, n + 1))
    rows = [mpc.Bounded(own.q[0], q0[0], q0[0]), mpc.Bounded(own.v[0], *free.v[0, [0, 0]])]
    start = {"start": rows, "periodic": [2 * np.pi, np.nan, np.nan], "near": q0}
    problem = trajectory(system, n, (0.5 * T, 2 * T), residual=own.u, symbols=own, **start)
    guess = mpc.trajectory_guess(problem, samples.q, samples.v, durations=1.02 * T)
    solution = mpc.solve_trajectory(problem, guess)
    assert solution.solved, solution.in_words
    assert solution.cost < 1e-4
    assert solution.t[-1] == pytest.approx(T, rel=1e-3)
    assert solution.q[-1, 0] - solution.q[0, 0] == pytest.approx(2 * np.pi, abs=1e-8)
    again = solution.at([0.3 * T, 0.3 * T + solution.t[-1]], "repeat")[0]
    np.testing.assert_allclose(again[1, 0] - again[0, 0], 2 * np.pi, atol=1e-7)
    assert solution.trajectory.drift.max() < CLOSED


def test_the_measure_of_actuation_is_a_sine_of_the_outer_links():
    system = mb.read_mjcf(models.path("five_bar"))
    q = ca.SX.sym("q", 4)
    measure = ca.Function("measure", [q], [mpc.actuation_measure(system, q, system.tree.q0)])
    pin, left, right = (
        system.frame(name, kind).pose
        for name, kind in (("tool", "site"), ("left_distal", "body"), ("right_distal", "body"))
    )

    def sine(at):
        a, b = ((pin(at)[0] - one(at)[0]).full().ravel()[[0, 2]] for one in (left, right))
        return (a[0] * b[1] - a[1] * b[0]) / 0.4**2

    rng = np.random.default_rng(1)
    home = sine(system.tree.q0)
    for dq in 0.3 * rng.standard_normal((5, 4)):
        at = mb.assemble(system, system.tree.q0 + dq)
        assert float(measure(at)) == pytest.approx(sine(at) / home, abs=1e-9)


def test_the_measure_vanishes_where_no_torque_holds_a_parallel_robot():
    system = mb.read_mjcf(models.path("planar_3rrr"))
    q = ca.SX.sym("q", 9)
    measure = ca.Function("measure", [q], [mpc.actuation_measure(system, q, system.tree.q0)])
    turns = np.linspace(0, 1.2, 13)
    expected = np.column_stack([0 * turns, 0 * turns, turns])
    path = mpc.pose_path(system, q, q[6:9], turns + 1, expected)
    solution = measure.map(len(turns))(path.q.T).full().ravel()
    A, B = system.constraint_jacobian, system.actuation
    both = [np.vstack([A(one).full(), B(one).full().T]) for one in path.q]
    least = [np.linalg.svd(one)[1][8] for one in both]  # the last of 9 that are not always zero
    assert solution[0] == pytest.approx(1.0, abs=1e-12)
    assert np.corrcoef(np.abs(solution), least)[0, 1] > 0.9
    k = int(np.argmin(np.abs(solution)))
    assert k == int(np.argmin(least))


def test_a_wanted_pose_out_of_reach_says_when_and_by_how_much():
    system = mb.read_mjcf(models.path("five_bar"))
    own = mpc.stage_symbols(system)
    tool = system.frame("tool").pose(own.q)[0][[0, 2]]
    way = np.linspace([0, 0.8], [0, 1.4], 5)
    message = r"at 1 s, is out of reach.*residual found is 0\.05"
    with pytest.raises(err.AssemblyError, match=message):
        mpc.pose_path(system, own.q, tool, np.arange(5.0), way)


@pytest.mark.long
def test_a_path_of_poses_is_closed_and_its_torques_carry_it():
    system = mb.read_mjcf(models.path("five_bar"))
    own = mpc.stage_symbols(system)
    tool = system.frame("tool").pose(own.q)[0][[0, 2]]
    t = np.linspace(0, 1, 201)
    way = np.column_stack([0.1 * np.sin(t * 4), 0.75 + 0.05 * np.cos(t * 4)])
    path = mpc.pose_path(system, own.q, tool, t, way)
    assert np.abs(system.constraint.map(201)(path.q.T).full()).max() < CLOSED
    at = system.frame("tool").pose.map(201)(path.q.T)[0].full()[[0, 2]].T
    np.testing.assert_allclose(at, way, atol=CLOSED)
    assert path.missing.max() < 1e-9
    start = 50
    force = pull(system, t - t[start], path.u)
    run = mb.simulate(system, path.q[start], path.v[start], 0.25, force=force)
    np.testing.assert_allclose(run.q[-1], path.q[100], atol=1e-3)  # differences: 0.005 s apart
