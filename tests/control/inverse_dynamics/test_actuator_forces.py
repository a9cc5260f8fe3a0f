"""Weights on actuator forces and their changes; limits of rate, torque-speed line and power."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.refusals import refused

from mbcasadi import read_mjcf
from mbcasadi.control import ActuatorLimits, InverseDynamicsQP, PostureTask
from mbcasadi.errors import ProblemError, UnknownNameError

INERTIA, PERIOD = 0.1, 0.001
HINGE = f"""
<mujoco><option gravity="0 0 0" timestep="{PERIOD}"/><worldbody><body>
<joint name="hinge" axis="0 1 0" armature="{INERTIA}"/><geom size="0.001" mass="1e-9"/></body>
</worldbody><actuator><motor name="left" joint="hinge" ctrlrange="-50 50"/>%s</actuator></mujoco>
"""
ONE = HINGE.replace('mass="1e-9"', 'mass="1e-6"') % ""
TWO = HINGE.replace('mass="1e-9"', 'mass="1e-6"') % '<motor name="right" joint="hinge"/>'
ROUNDING = 1e-6


def controller_of(xml=ONE, **options):
    options = {"torque_weight": 1e-12} | options
    return InverseDynamicsQP(read_mjcf(xml), [PostureTask(kp=400.0)], period=PERIOD, **options)


def run(controller, xml, ticks, goal, *, bad=()):
    """Return speeds, MuJoCo's actuator forces and status of a loop towards a goal."""
    model = mujoco.MjModel.from_xml_string(xml)
    data, z, rows = mujoco.MjData(model), controller.z0, []
    for k in range(ticks):
        q, v = np.array(data.qpos), np.array(data.qvel)
        measured = np.full_like(q, np.nan) if k in bad else q
        ref = controller.reference_at(np.full(model.nq, goal(k)))
        u, z, status = (
            np.array(x).ravel() for x in controller.function(measured, v, ref, np.zeros(0), z)[:3]
        )
        data.ctrl[:] = u
        mujoco.mj_forward(model, data)
        rows.append((v[0], *data.actuator_force, status[0]))
        mujoco.mj_step(model, data)
    return np.array(rows)


def test_a_change_costs_what_the_formula_says():
    weight, a = 0.5, 20.0
    controller = controller_of(torque_rate_weight=weight)
    ref = controller.reference_at(np.zeros(1))
    ref[controller.reference_slices["posture.a"]] = a
    p, z = 0.0, controller.z0
    for _ in range(5):
        # The least of ½ (p/I - a)² + ½ weight/I² (p - p_last)².
        p = (INERTIA * a + weight * p) / (1 + weight)
        solution = controller.solve(np.zeros(1), np.zeros(1), ref, z=z)
        z = solution.z_next
        assert solution.p[0] == pytest.approx(p, rel=1e-4)
    assert p == pytest.approx(INERTIA * a, rel=0.01)


def test_redundant_motors_share_by_their_weights_and_references():
    controller = controller_of(TWO, torque_weight=(1e-6, 3e-6), torque_reference=True)
    ref = controller.reference_at(np.zeros(1))
    ref[controller.reference_slices["posture.a"]] = 40.0
    p = controller.solve(np.zeros(1), np.zeros(1), ref).p
    assert_allclose(p, [3.0, 1.0], rtol=1e-4)
    ref[controller.reference_slices["torque"]] = 8.0, -3.0
    p = controller.solve(np.zeros(1), np.zeros(1), ref).p
    assert_allclose(p, [8.0 - 0.75, -3.0 - 0.25], rtol=1e-4)


def jump(k):
    return 1.0 if k % 400 < 200 else -1.0


def test_the_rate_holds_from_tick_to_tick():
    rate = 500.0
    rows = run(controller_of(actuator_limits=ActuatorLimits(rate=rate)), ONE, 800, jump)
    free = run(controller_of(), ONE, 800, jump)
    assert np.abs(np.diff(free[:, 1])).max() > 20 * rate * PERIOD
    change = np.abs(np.diff(rows[:, 1]))
    assert change.max() <= rate * PERIOD * (1 + ROUNDING)
    assert np.sum(change > 0.99 * rate * PERIOD) > 20
    assert set(rows[:, 2]) == {0}


def test_the_safe_output_keeps_the_rate_too():
    rate, bad = 500.0, range(30, 90)
    limited = controller_of(actuator_limits=ActuatorLimits(rate=rate))
    rows = run(limited, ONE, 200, lambda _: 1.0, bad=bad)
    assert set(rows[list(bad), 2]) == {3}
    assert np.abs(np.diff(rows[:, 1])).max() <= rate * PERIOD * (1 + ROUNDING)
    free = run(controller_of(), ONE, 200, lambda _: 1.0, bad=bad)
    assert np.abs(np.diff(free[30:, 1])).max() > 2 * rate * PERIOD


def test_force_and_speed_stay_under_the_line_and_power():
    stall, top, power = 30.0, 8.0, 45.0
    line = ActuatorLimits(stall_force=stall, no_load_speed=top)
    rows = run(controller_of(actuator_limits=line), ONE, 800, jump)
    speed, force = rows[:, 0], rows[:, 1]
    assert np.all(force <= stall * (1 - speed / top) + ROUNDING * stall)
    assert np.all(force >= -stall * (1 + speed / top) - ROUNDING * stall)
    assert np.abs(force).max() == pytest.approx(stall)
    assert np.sum(np.abs(force - stall * (1 - speed / top)) < ROUNDING * stall) > 5
    rows = run(controller_of(actuator_limits=ActuatorLimits(power=power)), ONE, 800, jump)
    given = rows[:, 0] * rows[:, 1]
    assert given.max() == pytest.approx(power, rel=ROUNDING)
    free = run(controller_of(), ONE, 800, jump)
    assert (free[:, 0] * free[:, 1]).max() > 2 * power
    assert np.abs(free[:, 1]).max() > stall


def test_limits_that_exclude_each_other_leave_the_models_range_first():
    limits = ActuatorLimits(rate=1.0, stall_force=30.0, no_load_speed=8.0, power=45.0)
    controller = controller_of(actuator_limits=limits)
    ref = controller.reference_at(np.ones(1))
    first = controller.solve(np.zeros(1), np.zeros(1), ref)
    assert first.status == 0
    assert first.p[0] == pytest.approx(30.0)
    # Faster than without load: the line asks for braking, at most with the stall force.
    for speed, braking in ((12.0, -15.0), (40.0, -30.0)):
        second = controller.solve(np.zeros(1), np.full(1, speed), ref, z=first.z_next)
        assert second.status == 0
        assert second.p[0] == pytest.approx(braking)


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        ({}, ProblemError, "limit nothing"),
        ({"rate": -1.0}, ProblemError, "rate = -1.0; expected a positive number"),
        ({"rate": (1.0, 2.0)}, ProblemError, "one for each of left"),
        ({"stall_force": 3.0}, ProblemError, "both ends"),
        ({"actuators": ("lift",), "rate": 1.0}, UnknownNameError, "lift"),
    ],
)
def test_wrong_limits_are_refused(limits, error, message):
    refused(error, message, lambda: controller_of(actuator_limits=ActuatorLimits(**limits)))


@pytest.mark.parametrize("weight", [{"torque_weight": (1.0, 2.0)}, {"torque_rate_weight": -1.0}])
def test_wrong_weights_are_refused(weight):
    refused(ProblemError, "left", lambda: controller_of(**weight))
