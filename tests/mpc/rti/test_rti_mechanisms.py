"""Real-time iterations of mechanisms: scheduled contacts, tasks, rotations, plans for reports."""

import casadi as ca
import numpy as np
import pytest
from support.linear_mpc_cases import row_values
from support.mpc_mechanisms import balance, sliding_mass
from support.problems import problem
from twins import topology_switch

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.control import PostureTask
from mbcasadi.mpc.ocp.solution import rollout
from mbcasadi.simulation import InitialConditions

SAME_MOTION = 1e-6  # of 224 steps of order 4, and of adaptive ones
SAME_OPTIMUM = 1e-5
BALL = """<mujoco><worldbody><body pos="0 0 1"><joint name="hip" type="ball" damping=".05"/>
<geom type="box" pos=".02 0 -.3" size=".1 .2 .15" mass="1"/></body></worldbody>
<actuator><motor joint="hip" gear="1 0 0" ctrlrange="-1 1"/>
<motor joint="hip" gear="0 1 0" ctrlrange="-1 1"/></actuator></mujoco>"""


def repeat_ticks(rti, x, p, ticks=40):
    """Return z, u and status after ticks at one state, with the same pending controls."""
    nq, z = rti.ocp.state.numel_in("q"), rti.controller.z0.copy()
    pending = slice(sum(rti.memory.sizes[:2]), sum(rti.memory.sizes[:3]))
    for _ in range(ticks):
        z[pending] = rti.controller.z0[pending]
        u, z, status, *_ = row_values(rti.function(x[:nq], x[nq:], p.ravel(), z))
    return z, u, int(status[0])


def test_a_scheduled_contact_is_planned_with_its_impact_as_it_is_simulated():
    """Two pendulums are driven to latch one period before they would fall together."""
    system = topology_switch.system().with_mask([0, 0])
    joints = topology_switch.points(q := ca.SX.sym("q", 4))
    gap = ca.Function("gap", [q], [joints[2] - joints[5]])
    latch = mb.Event("latch", lambda _, q, __: gap(q)[0], direction=1, mask=[1, 1])
    at_rest = np.append(topology_switch.APART, np.zeros(4))
    fall = mb.simulate(system, at_rest[:4], at_rest[4:], 1.0, events=[latch])
    T, N, lands = fall.events[0].time / 10, 14, 9
    s = mpc.stage_symbols(system, lands=1)
    met = mpc.Bounded(s.parameters["lands"] * gap(s.q), 0, 0, name="gap")
    given = {"R": 1.0, "terminal": s.v, "path": [met], "step": mpc.StepOptions(substeps=16)}
    ocp = problem(system, N, T, symbols=s, **given)
    sample = np.arange(N + 1)[:, None]
    p = ocp.parameters(mask=np.repeat(sample >= lands, 2, axis=1), lands=sample == lands)
    rti = mpc.real_time_iteration(ocp, rollout(ocp, at_rest, ocp.parameters()), shift=False)
    z, _, status = repeat_ticks(rti, at_rest, p)
    x, u = rti.trajectory(z)
    assert status == 0
    assert np.abs(u).max() > 0.1
    assert np.abs(np.diff(gap.map(N + 1)(x[:, :4].T).full())[:, lands - 1]).max() > 0.01
    now, jump = at_rest, 0.0
    for k in range(N):
        events = [mb.Switch("latch", 0.0, [1, 1])] if k == lands else []
        mask = [0, 0] if k <= lands else [1, 1]
        force = [u[k, 0], 0.0, u[k, 1], 0.0]
        given = {"force": lambda *_, f=force: f, "events": events, "rtol": 1e-11, "atol": 1e-13}
        start = InitialConditions(mask=mask)
        run = mb.simulate(system, now[:4], now[4:], T, initial=start, **given)
        jump = max([jump, *(np.abs(e.v_after - e.v_before).max() for e in run.events)])
        now = np.append(run.q[-1], run.v[-1])
        np.testing.assert_allclose(x[k + 1], now, atol=SAME_MOTION, err_msg=f"sample {k + 1}")
    assert jump > 1.0


@pytest.mark.long
def test_tasks_are_costs_and_the_plan_has_the_names_of_the_joints():
    system = mb.read_mjcf(models.path("pendulum_on_four_bar"))
    task = PostureTask(joints=("crank",), kp=1.0, kd=0.0, weight=100.0)
    ocp = mpc.optimal_control_problem(
        system, 15, 0.02, [mpc.Cost(R=0.01), task, mpc.StageBounds(u=[[-2, 2]], du=[[-0.6, 0.6]])]
    )
    p, x0 = ocp.parameters(posture_q=0.1), np.append(system.tree.q0, np.zeros(4))
    rti = mpc.real_time_iteration(ocp, delay=1, shift=False, pending=[[0.0]])
    z, u, status = repeat_ticks(rti, x0, p)
    assert status == 0
    start = ocp.dynamics(np.append(x0, 0.0), 0.0, p[0]).full().ravel()
    best = mpc.solve_ocp(ocp, start, p)
    assert best.solved, best.in_words
    z[sum(rti.memory.sizes[:2])] = 0.0
    given = {"q": x0[:4], "v": x0[4:], "ref": p.ravel(), "z": z}
    answer = rti.function(**given)
    plan = rti.controller.prediction(**given, u=answer["u"], z_next=answer["z_next"])
    np.testing.assert_allclose(plan["x"].full().T, best.x, atol=SAME_OPTIMUM)
    np.testing.assert_allclose(plan["u"].full().T, best.u, atol=100 * SAME_OPTIMUM)  # flat cost
    np.testing.assert_allclose(plan["x"].full()[:, 0], start, atol=1e-12)
    joints = [joint.name for joint in system.tree.joints]
    motor = system.actuator_names[0]
    rows = [*(f"q.{j}" for j in joints), *(f"v.{j}" for j in joints), f"u_last.{motor}"]
    assert list(rti.controller.prediction_rows) == rows
    assert rti.controller.delay == 1
    limits = rti.controller.limits
    assert limits.signal.components == (f"du.{motor}",)
    value = limits.value(q=x0[:4], v=x0[4:], ref=p.ravel(), u=u, u_last=0.0)["value"]
    assert float(value) == pytest.approx(u[0])


def test_a_shifted_plan_begins_where_the_control_acts_and_keeps_its_motion():
    ocp = balance(Q_end=None)
    rti, x = mpc.real_time_iteration(ocp, delay=2), np.array([0.1, 0.05, 0.0, 0.0])
    z, ref, pending = rti.controller.z0, ocp.parameters().ravel(), [0.0, 0.0]
    for _ in range(25):
        begun = z
        u, z, status, *_ = row_values(rti.function(x[:2], x[2:], ref, z))
        plan = rti.controller.prediction(q=x[:2], v=x[2:], ref=ref, z=begun, z_next=z, u=u)
        pending.append(u[0])
        both = ocp.dynamics.mapaccum(2)
        reached = both(x, ca.DM(pending[-3:-1]).T, ocp.parameters()[:2].T).full()
        np.testing.assert_allclose(plan["x"].full()[:, 0], reached[:, -1], atol=1e-12)
        x = reached[:, 0]
        assert status == 0
    motion = ocp.dynamics.mapaccum(20)(reached[:, -1], plan["u"], ocp.parameters()[:-1].T)
    np.testing.assert_allclose(plan["x"].full()[:, 1:], motion.full(), atol=SAME_OPTIMUM)


def test_a_ball_joint_is_led_to_the_optimum_of_the_whole_problem():
    system = mb.read_mjcf(BALL)
    ocp = mpc.optimal_control_problem(
        system, 15, 0.04, [mpc.Cost(Q=[4, 4, 0, 0.1, 0.1, 0.1], R=0.05, Q_end=[20, 20, 0, 1, 1, 1])]
    )
    q0 = system.integrate(system.tree.q0, [0.5, -0.7, 0.3]).full().ravel()
    x0 = np.append(q0, [0.5, 0.2, -0.4])
    best = mpc.solve_ocp(ocp, x0)
    assert best.solved, best.in_words
    rti = mpc.real_time_iteration(ocp, shift=False)
    turned = 2 * np.arccos(q0 @ np.ravel(system.tree.q0))  # rad, from the setpoint
    _, error = rti.controller.monitor(q0, ocp.parameters().ravel())
    assert np.linalg.norm(error.full()) == pytest.approx(turned, rel=1e-12)
    assert rti.controller.monitors[1].units == ("rad",) * 3
    _, u, status = repeat_ticks(rti, x0, ocp.parameters(), 60)
    assert status == 0
    np.testing.assert_allclose(u, best.u[0], atol=SAME_OPTIMUM)
    assert np.abs(best.u).max() == pytest.approx(1.0, abs=SAME_OPTIMUM)


def test_a_control_that_costs_nothing_is_refused():
    ocp = mpc.optimal_control_problem(
        sliding_mass(), 5, 0.1, [mpc.Cost(Q=[0, 0], residual=ca.SX(1))]
    )
    with pytest.raises(err.ProblemError, match="'ocp' leaves some control without cost"):
        mpc.real_time_iteration(ocp)
    fine = mpc.optimal_control_problem(sliding_mass(), 5, 0.1, [mpc.Cost(Q=[1, 1], Q_end=[1, 1])])
    assert mpc.real_time_iteration(fine).controller.z0.size
    guess = mpc.initial_guess(fine, np.zeros((6, 2)), np.zeros((5, 1)))
    assert mpc.real_time_iteration(fine, guess).controller.delay == 0
