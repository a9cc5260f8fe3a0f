"""Soft rows and rates in whole problems: what is out of reach, and collocation beside shooting."""

import casadi as ca
import numpy as np
import pytest
from support.mpc_mechanisms import balance, cart_pole, coupled_carts, sliding_mass
from support.problems import problem

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import FrameTask, PostureTask
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.constraints import describe_violations, row_set
from mbcasadi.qp.rows import Bounded

SOLVERS = ("ipopt", "sqpmethod", "fatrop")
SAME_OPTIMUM = 1e-6
SAME_STEP = 2e-4  # of methods of order 4, one explicit and one implicit, 20 steps of 0.04 s


def out_of_reach():
    """Return a mass of 1 kg that is asked to stand 9 m away after half a second of 1 N."""
    system = sliding_mass(1.0)
    s = mpc.stage_symbols(system)
    goal = Bounded(s.q, 9.001, 9.001, linear_penalty=50.0, name="goal", at_end=True)
    slow = Bounded(s.v, upper=0.3, quadratic_penalty=1e-3, name="slow")
    return mpc.optimal_control_problem(
        system, 5, 0.1, [mpc.Cost(R=1e-3), slow, goal, mpc.StageBounds(u=[[-1, 1]])], symbols=s
    )


def test_what_is_out_of_reach_is_named_with_what_it_misses():
    ocp = out_of_reach()
    said = (
        "slow at sample 4 exceeds its upper bound by up to 0.1",
        "goal at sample 5 falls below its lower bound by up to 8.88",  # 9.001 - ½ 0.5²
    )
    for name in SOLVERS:
        solution = mpc.solve_ocp(ocp, [0, 0], solver=name)
        assert solution.solved, (name, solution.in_words)
        np.testing.assert_allclose(solution.u, 1.0, atol=SAME_OPTIMUM)
        assert solution.violations == said, name
    rti = mpc.real_time_iteration(ocp, shift=False)
    _, z, status, *_ = rti.function(0, 0, ocp.parameters().ravel(), rti.controller.z0)
    assert int(status) == 0
    assert rti.violations(z) == said
    best = mpc.solve_ocp(ocp, [0, 0])
    miss, price = 8.876, 50.0 + 0.5 * 0.5 * 8.876  # ρ₂ is a hundredth of ρ₁
    cost = 0.1 * 1e-3 * 5 / 2 + 1e-3 * 0.1**2 / 2 + miss * price
    assert best.cost == pytest.approx(cost, rel=1e-6)


def test_a_row_of_the_users_knows_which_rows_are_on_at_each_sample():
    """Two carts, coupled from sample 3 on; the push is limited to 1 N alone, 0.3 N together."""
    system = coupled_carts()
    s = mpc.stage_symbols(system)
    weak = [
        Bounded(s.u + 0.7 * s.mask, upper=1.0, name="push"),
        Bounded(s.u - 0.7 * s.mask, lower=-1.0, name="pull"),
    ]
    far = ca.vertcat(s.q[0] - 50)
    given = {"R": 1e-6, "terminal": far, "path": weak, "u_bounds": [[-9, 9]], "closing": 1.0}
    ocp = problem(system, 6, 0.1, symbols=s, **given)
    on = (np.arange(7) >= 3)[:, None].astype(float)
    solution = mpc.solve_ocp(ocp, np.zeros(4), ocp.parameters(mask=on))
    assert solution.solved, solution.in_words
    np.testing.assert_allclose(solution.u[:, 0], [1, 1, 1, 0.3, 0.3, 0.3], atol=SAME_OPTIMUM)
    speeds = solution.x[:, 2:]
    np.testing.assert_allclose(speeds[3], [0.3, 0.0], atol=1e-6)
    # 1 kg at 0.3 m/s is joined to 3 kg at rest, then pushed by 0.3 N for 0.3 s
    np.testing.assert_allclose(speeds[-1], 0.3 / 4 + 0.3 * 0.3 / 4, atol=1e-6)


def test_the_name_of_a_slice_of_the_systems_own_is_refused_for_a_parameter():
    with pytest.raises(ProblemError, match=r"'mask': 'carts' has a mask of its own .* symbol"):
        mpc.stage_symbols(coupled_carts(), mask=1)
    assert mpc.stage_symbols(sliding_mass(), mask=2).parameters["mask"].numel() == 2
    moving = ca.SX.sym("t")
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    timed = mb.from_lagrangian(q, v, kinetic=v**2, B=[[1]], phi=q - ca.sin(moving), t=moving)
    assert mpc.stage_symbols(timed).t.numel() == 1
    with pytest.raises(ProblemError, match="'t': 'lagrangian' has a t of its own"):
        mpc.stage_symbols(timed, t=1)
    s = mpc.stage_symbols(coupled_carts(), **{"posture.q": 2})
    with pytest.raises(ProblemError, match=r"two slices of the parameters are named 'posture\.q'"):
        mpc.optimal_control_problem(coupled_carts(), 3, 0.1, [PostureTask()], symbols=s)


def test_references_of_tasks_hold_the_initial_pose_unless_they_are_given():
    ball = mb.read_mjcf(
        "<mujoco><worldbody><body><joint name='hip' type='ball'/><geom size='.1' pos='0 0 1'/>"
        "<site name='tip' pos='0 0 2' euler='0 0 90'/></body></worldbody><actuator>"
        "<motor joint='hip' gear='1 0 0'/></actuator></mujoco>"
    )
    ocp = mpc.optimal_control_problem(
        ball, 3, 0.1, [mpc.Cost(R=1.0), PostureTask(("hip",)), FrameTask("tip")]
    )
    p = dict(zip([slot.name for slot in ocp.slots], slots_of(ocp), strict=True))
    np.testing.assert_array_equal(p["posture.q"], np.tile([1, 0, 0, 0], (4, 1)))
    np.testing.assert_allclose(p["tip.position"], np.tile([0, 0, 2], (4, 1)))
    half = np.sqrt(0.5)
    np.testing.assert_allclose(p["tip.quaternion"], np.tile([half, 0, 0, half], (4, 1)))


def slots_of(ocp):
    """Return the slices of the nominal parameters, (N + 1, size) each."""
    return np.split(ocp.parameters(), np.cumsum([slot.size for slot in ocp.slots])[:-1], axis=1)


def test_collocation_has_rates_and_soft_rows_as_shooting_has():
    system = cart_pole(upright=True)
    s = mpc.stage_symbols(system)
    price = {"linear_penalty": 0.4, "quadratic_penalty": 1.0}
    speed = mpc.Bounded(s.v[0], -0.3, 0.4, name="speed", **price)
    ocp = balance(system=system, S=0.01, path=[speed], du_bounds=[[-3, 3]], symbols=s)
    x0 = [0.2, 0.15, 0.0, 0.0, -1.0]
    shot = mpc.solve_ocp(ocp, x0)
    other = mpc.direct_collocation(ocp, system)
    solution = mpc.solve_ocp(other, x0, guess=mpc.collocation_guess(other, system, shot))
    assert shot.solved, shot.in_words
    assert solution.solved, solution.in_words
    np.testing.assert_allclose(solution.x, shot.x, atol=SAME_STEP)
    change = np.diff(solution.u[:, 0], prepend=-1.0)
    np.testing.assert_allclose(solution.x[1:, 4], solution.u[:, 0], atol=SAME_OPTIMUM)
    assert np.abs(change).max() == pytest.approx(3.0, abs=SAME_OPTIMUM)
    assert [one[:5] for one in solution.violations] == ["speed"]
    assert [one[:5] for one in shot.violations] == ["speed"]


def test_a_guess_comes_with_the_slacks_that_it_needs():
    rows = row_set(
        np.array([[-1.0, 2.0], [0.0, np.inf], [-1, 1], [0, 5]]),
        np.array([[3.0, 1.0], [0.0, 2.0], [np.inf, np.inf]]),
    )
    assert (rows.m, rows.k, rows.signed) == (5, 2, [0])
    y = np.array([[2.5, -0.25, 3, 3], [-1.75, 4, 0, 0], [0, 1, 0, 9]])
    np.testing.assert_allclose(rows.least_slacks(y), [[0.5, -0.25], [0.75, 0], [0, 0]])
    held = y @ rows.T.T + rows.least_slacks(y) @ rows.W.T
    missed = np.maximum(held - rows.bounds[:, 1], rows.bounds[:, 0] - held).max(axis=1)
    np.testing.assert_allclose(missed, [2, 0, 4], atol=1e-12)  # the hard rows' own


def test_samples_in_a_row_are_said_as_one():
    y = np.array([0, 2, 2.5, 0, -3, 0, 2])[:, None]
    assert describe_violations(["x"], np.array([[-1.0, 1.0]]), y, 3, 1e-6) == [
        "x at samples 4..5, 9 exceeds its upper bound by up to 1.5",
        "x at sample 7 falls below its lower bound by up to 2",
    ]


def test_a_guess_of_hard_rows_serves_soft_ones_too():
    ocp = out_of_reach()
    solution = mpc.solve_ocp(
        ocp, [0, 0], guess=mpc.initial_guess(ocp, np.zeros((6, 2)), np.zeros((5, 1)))
    )
    assert solution.solved
    assert mpc.solve_ocp(ocp, [0, 0], guess=solution).iterations <= solution.iterations
