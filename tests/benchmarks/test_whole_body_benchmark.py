"""The suite of whole bodies judges plans by the nonlinear problem, and compares equal problems."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mbcasadi as mb
from bench import whole_body_beside, whole_body_cases, whole_body_programs
from bench.tick_cases import QUADRUPED
from bench.whole_body_cases import Record, Trot
from bench.whole_body_residual import Judge, Plan
from mbcasadi.errors import SolverError
from mbcasadi.mpc import Cost, SemiImplicitStep, optimal_control_problem

CART_POLE = """
<mujoco>
  <worldbody>
    <body name="cart">
      <joint name="cart" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/>
      <body name="pole">
        <joint name="pole" axis="0 1 0"/><geom pos="0 0 .5" size=".05" mass=".3"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="cart" ctrlrange="-2 2"/></actuator>
</mujoco>
"""
CONVERGED, WRONG = 1e-5, 1e-2


@pytest.fixture(scope="module")
def converged(tmp_path_factory):
    """Return a judge, and a plan of a cart-pole whose force is at its bound."""
    system = mb.read_mjcf(CART_POLE)
    cost = Cost(Q=[20, 20, 1, 1], R=[1e-2], Q_end=[100, 100, 10, 10])
    ocp = optimal_control_problem(system, 6, 0.05, [cost], step=SemiImplicitStep())
    law = mb.mpc.real_time_iteration(ocp, solver="stagewise", shift=False)
    folder = tmp_path_factory.mktemp("judge")
    loaded = mb.export_c(law, folder / "c").load(flags=("-O0",))
    x0, p, z = np.array([0.5, 0.1, 0.0, 0.0]), ocp.parameters(), law.controller.z0
    for _ in range(12):
        z = loaded(x0[:2], x0[2:], p.ravel(), z)[1]
    z = np.array(z).ravel()
    x, u = law.trajectory(z)
    rows = z[x.size + u.size + 1 :][: u.size]
    return Judge(ocp, folder), Plan(x0, p, x, u, rows.reshape(6, 1))


def test_a_converged_plan_at_a_bound_has_no_residual(converged):
    judge, plan = converged
    assert np.abs(plan.u).max() == pytest.approx(2.0, abs=1e-6)
    assert np.abs(plan.rows).max() > 0.05
    assert judge.residuals(plan).largest < CONVERGED


@pytest.mark.parametrize("part", ["x", "u", "rows", "sign"])
def test_what_is_wrong_in_a_plan_is_a_residual(converged, part):
    judge, plan = converged
    if part == "x":
        other = replace(plan, x=plan.x + 0.01)
        assert judge.residuals(other).gap > WRONG
    elif part == "u":
        other = replace(plan, u=1.2 * plan.u)
        assert judge.residuals(other).violation > WRONG
        assert judge.residuals(other).gap > WRONG
    else:
        other = replace(plan, rows=None if part == "rows" else -plan.rows)
        assert judge.residuals(other).stationarity > 0.1


def test_feet_swing_in_pairs_and_are_on_the_ground_where_the_mask_has_them():
    trot = Trot(QUADRUPED, 2 * whole_body_cases.STRIDE)
    x, heights, on = trot.samples(whole_body_cases.STILL)
    lifted = heights > trot.ground + 1e-9
    np.testing.assert_array_equal(lifted, on == 0)
    np.testing.assert_array_equal(on[:, 0], on[:, 3])
    np.testing.assert_array_equal(on[:, 1], on[:, 2])
    assert not np.any(lifted[:, 0] & lifted[:, 1])
    assert lifted[:, 0].any()
    assert lifted[:, 1].any()
    assert x[-1, 0] - x[0, 0] == pytest.approx(
        whole_body_cases.SPEED * whole_body_cases.PERIOD * trot.intervals
    )
    assert np.all(trot.samples(0)[2][: whole_body_cases.STILL] == 1)


def test_another_problem_of_a_peer_is_refused():
    cost, motion, both = np.ones(1), np.ones((1, 2, 1)), np.array([True])
    trot = SimpleNamespace(
        intervals=2,
        ocp=SimpleNamespace(
            nx=1, nu=1, horizon=2,
            dynamics=SimpleNamespace(map=lambda _: lambda *_: np.ones((1, 2))),
        ),
        parameters=lambda _: np.zeros((3, 1)),
    )  # fmt: skip
    record = Record(np.zeros(1), {"z": np.zeros((1, 5))}, np.zeros(1))
    solver = SimpleNamespace(trot=trot)
    found = SimpleNamespace(motion=motion, cost=np.ones((1, 3)))
    gaps = whole_body_beside.differences(solver, record, found, cost, both)
    assert set(gaps.values()) == {0.0}
    moved = SimpleNamespace(motion=motion + 1e-6, cost=found.cost)
    with pytest.raises(SolverError, match="next states differ by"):
        whole_body_beside.differences(solver, record, moved, cost, both)
    dearer = SimpleNamespace(motion=motion, cost=1.01 * found.cost)
    with pytest.raises(SolverError, match=r"costs differ by.*another problem"):
        whole_body_beside.differences(solver, record, dearer, cost, both)
    with pytest.raises(SolverError, match="no tick at which both converge"):
        whole_body_beside.differences(solver, record, found, cost, ~both)


def test_the_time_to_a_residual_is_the_sum_of_its_iterations():
    seconds = np.array([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(whole_body_beside.total(seconds, np.array([2, 4])), [3.0, np.inf])
    small, large = SimpleNamespace(largest=1e-4, cost=1.0), SimpleNamespace(largest=1.0, cost=2.0)
    judge = SimpleNamespace(residuals=lambda plan: plan)
    count, cost = whole_body_beside.reached(judge, [[large, large], [large, small]])
    np.testing.assert_array_equal(count, [3, 2])
    np.testing.assert_array_equal(cost, [2.0, 1.0])


def test_times_to_a_residual_are_medians_where_both_reach_it_and_name_the_shares():
    first = np.ones(4)
    mine, theirs = (
        (first, np.array([1.0, 2.0, 3.0, np.inf])),
        (first, np.array([4.0, 4.0, np.inf, 1.0])),
    )
    one, residual = whole_body_beside._rows("trot", mine, "peer", theirs)
    assert (one["ours"], one["peer_time"]) == (1.0, 1.0)
    assert (residual["ours"], residual["peer_time"]) == (1.5, 4.0)
    assert residual["quantity"].endswith("(each in 75 % and 75 % of the ticks)")
    never = (first, np.full(4, np.inf))
    assert len(whole_body_beside._rows("trot", mine, "peer", never)) == 1


@pytest.mark.long
def test_multipliers_go_to_a_peer_by_joints_and_return_by_controls(tmp_path, stub_peers):
    trot = Trot(QUADRUPED, 2)
    nx, nu, nv, N = trot.ocp.nx, trot.ocp.nu, trot.system.nv, trot.intervals
    rng = np.random.default_rng(0)
    x = np.tile(trot.still, (1, N + 1))
    z = np.hstack([x, rng.standard_normal((1, N * nu))])
    inputs = {"q": x[:, : nx - nv], "v": x[:, nx - nv : nx], "z": z}
    rows = rng.standard_normal((1, N, nu + len(trot.ocp.path_bounds)))
    program = whole_body_programs.ALIGATOR.build(tmp_path)
    np.save(tmp_path / "expected.npy", np.zeros(N * nx))
    record = Record(np.zeros(1), inputs, np.zeros(1))
    found = whole_body_programs.run_program(program, trot, record, rows, 1, 1)
    landing = len(trot.case.feet)  # rows that peers do not have
    assert np.abs(rows[..., nu : nu + landing]).min() > 0
    rows[..., nu : nu + landing] = 0.0
    np.testing.assert_allclose(found.rows[:, 0], rows, atol=1e-15)
    plan = found.plan(trot, record, 0, 0)
    np.testing.assert_allclose(plan.u.ravel(), z[0, (N + 1) * nx :])
    np.testing.assert_allclose(plan.rows, rows[0], atol=1e-15)
    joints = whole_body_programs.of_joints(trot)
    np.testing.assert_allclose(joints @ joints.T, np.eye(nu))  # a permutation
    with (tmp_path / "trot.ticks").open("rb") as ticks:
        numbers = np.fromfile(ticks)[nx * (N + 2) + N * nu :][: nu + 4 * landing]
    np.testing.assert_allclose(numbers[:nu], joints @ rows[0, 0, :nu])
    np.testing.assert_allclose(numbers[nu:], rows[0, 0, nu + landing :])
