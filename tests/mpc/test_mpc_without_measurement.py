"""Predictive controllers hold the robot where it is when its measurement fails."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import mpc

SERVO_ARM = """<mujoco><option timestep="0.002"/>
  <worldbody>
    <body><joint name="shoulder" axis="0 1 0" damping="2" armature=".1"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
      <body pos=".4 0 0"><joint name="elbow" axis="0 1 0" damping="1" armature=".05"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body></body>
  </worldbody>
  <actuator>
    <position name="shoulder" joint="shoulder" kp="300" kv="20" ctrlrange="-3 3"/>
    <motor name="elbow" joint="elbow" ctrlrange="-20 20"/>
  </actuator></mujoco>"""
POSE = np.array([0.6, -0.9])
PERIOD = 0.01
FIRST = 20  # tick at which the measurement fails


@pytest.fixture(scope="module")
def arm():
    return mb.read_mjcf(SERVO_ARM), mujoco.MjModel.from_xml_string(SERVO_ARM)


def fails(controller, ref, arm, ticks):
    """Return MuJoCo's forces and positions of each tick; the measurement is NaN from FIRST on."""
    data, f = mujoco.MjData(arm[1]), controller.function
    data.qpos[:], z, force, q = POSE, controller.z0, [], []
    for k in range(FIRST + ticks):
        measured = data.qpos.copy() if k < FIRST else np.full(2, np.nan)
        u, z, status, *_ = f(measured, data.qvel, ref, z)
        assert int(status) == (0 if k < FIRST else 3)
        data.ctrl[:] = np.array(u).ravel()
        mujoco.mj_step(arm[1], data, round(PERIOD / arm[1].opt.timestep))
        force.append(data.actuator_force.copy())
        q.append(data.qpos.copy())
    return np.array(force), np.array(q)


@pytest.mark.parametrize("form", ["condensed", "sparse"])
def test_linear_mpc_holds_servos_and_motors_where_they_are(arm, form):
    linear = mb.linearize(arm[0], mb.equilibrium(arm[0], POSE))
    np.testing.assert_allclose(linear.q, POSE, atol=1e-6)
    law = mpc.linear_mpc(
        linear, mpc.LinearOptions(8, np.repeat([10.0, 0.1], 2), 1e-3, period=PERIOD, form=form)
    )
    ref = law.reference(setpoint_q=linear.q, setpoint_u=linear.u)
    force, q = fails(law.controller, ref, arm, 20)
    before = force[FIRST - 1]
    assert np.abs(before).max() > 5  # N m
    assert np.abs(force[FIRST:] - before).max() < 0.01 * np.abs(before).max()
    assert np.abs(q - POSE).max() < 1e-3  # rad


def test_a_real_time_iteration_follows_its_plan_and_then_holds(arm):
    ocp = mpc.optimal_control_problem(arm[0], 5, PERIOD, [mpc.Cost(Q=[10, 10, 0.1, 0.1], R=1e-4)])
    held = mb.equilibrium(arm[0], POSE)
    p = ocp.parameters(setpoint_q=POSE, setpoint_u=held.u)
    rti = mpc.real_time_iteration(ocp)
    force, q = fails(rti.controller, p.ravel(), arm, 20)
    before = force[FIRST - 1]
    assert np.abs(before).max() > 5  # N m
    assert np.abs(force[FIRST:] - before).max() < 0.05 * np.abs(before).max()
    assert np.abs(q[FIRST:] - q[FIRST - 1]).max() < 5e-3  # rad; its plan has 5 intervals
    assert np.abs(q[-1] - q[-2]).max() < 1e-4  # at rest


def test_without_a_mechanism_the_last_command_is_used_while_it_is_young():
    model = mpc.LinearModel.of([[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.1]], 5e-3)
    law = mpc.lti_mpc(model, mpc.LinearOptions(10, [1.0, 0.1], 0.1, u_bounds=[[-1.0, 2.0]]))
    u, z, *_ = law.function([0.3, 0.0], np.zeros(3), law.controller.z0)
    controls = []
    for _ in range(4):
        again, z, status, *_ = law.function([np.nan, 0.0], np.zeros(3), z)
        assert int(status) == 3
        controls.append(float(again))
    assert abs(float(u)) > 0.1
    np.testing.assert_allclose(controls, [float(u), float(u), 0.0, 0.0])
