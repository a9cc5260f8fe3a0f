"""Inverse dynamics as the inverse of forward dynamics, actuators and constraints included."""

import mujoco
import numpy as np
import pytest
from dynamics_states import consistent_state, the_case

from mbcasadi.dynamics import constrained_inverse_dynamics, forward_dynamics, inverse_dynamics
from mbcasadi.system import read_mjcf

TOL = 1e-9  # relative to the largest torque


def test_inverse_dynamics_of_a_tree_is_mujocos():
    robot = the_case("quadruped")
    rng = np.random.default_rng(61)
    data = mujoco.MjData(robot.model)
    for _ in range(5):
        q = robot.system.integrate(robot.system.tree.q0, rng.standard_normal(18)).full().ravel()
        v, a = rng.standard_normal((2, 18))
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(robot.model, data)
        expected = data.qfrc_inverse + data.qfrc_constraint
        found = inverse_dynamics(robot.system)(q, v, a).full().ravel()
        np.testing.assert_allclose(found, expected, atol=TOL * np.abs(expected).max())


@pytest.mark.parametrize("name", ["four_bar", "spatial_loop", "arm_gripper"])
def test_controls_of_constrained_inverse_dynamics_reproduce_the_motion(name):
    system = the_case(name).system
    fd, inverse = forward_dynamics(system), constrained_inverse_dynamics(system)
    rng = np.random.default_rng(62)
    for _ in range(5):
        q, v = consistent_state(the_case(name), rng)
        B, f_0 = system.actuation(q).full(), system.actuator_bias(q, v).full().ravel()
        u = rng.standard_normal(system.nu)
        motion = fd(q=q, v=v, f=B @ u + f_0)
        out = inverse(q=q, v=v, a=motion["a"])
        size = max(1, np.abs(out["f_c"].full()).max())
        assert np.abs(out["residual"].full()).max() < TOL * size
        again = fd(q=q, v=v, f=B @ out["u"].full().ravel() + f_0)
        np.testing.assert_allclose(again["a"], motion["a"], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(out["lam"], again["lam"], atol=1e-8 * size)
        assert np.linalg.norm(out["u"].full()) <= np.linalg.norm(u) * (1 + TOL)


SERVO_LOOP = """
<mujoco>
  <worldbody>
    <body><joint name="a" axis="0 1 0" damping=".2"/><geom size=".1" pos=".3 0 0" mass="1"/>
      <body pos=".6 0 0"><joint name="b" axis="0 1 0" stiffness="3"/>
        <geom size=".1" pos=".2 0 .1" mass=".7"/></body></body>
  </worldbody>
  <equality><joint joint1="b" joint2="a" polycoef="0 .5 0 0 0"/></equality>
  <actuator><position joint="a" kp="40" kv="3"/><motor joint="b" gear="2"/></actuator>
</mujoco>"""


def test_the_bias_of_a_servo_is_part_of_what_the_controls_find():
    """Redundant actuation: of all controls that give a motion, those of least torques."""
    system = read_mjcf(SERVO_LOOP)
    q, v, a = np.array([0.4, 0.2]), np.array([1.0, 0.5]), np.array([-2.0, -1.0])
    assert np.abs(system.actuator_bias(q, v).full()).max() > 1
    u = constrained_inverse_dynamics(system)(q=q, v=v, a=a)["u"].full().ravel()
    f = system.actuator_force(q=q, v=v, u=u)["f_actuator"]
    found = forward_dynamics(system, derivatives=False)(q=q, v=v, f=f)["a"].full().ravel()
    np.testing.assert_allclose(found, a, atol=TOL)
    # controls that do nothing but load the gear: Bᵀ along the row of the coupling
    idle = np.linalg.svd(np.array([[1.0, 0.5]]) @ system.actuation(q).full())[2][1]
    torques = np.array([40.0, 2.0])  # of a unit of each control
    assert abs(u @ (torques**2 * idle)) < TOL * 40.0
    plain = constrained_inverse_dynamics(system, control_metric=np.ones(2))(q=q, v=v, a=a)["u"]
    assert abs(plain.full().ravel() @ idle) < TOL


def test_a_motion_that_no_actuator_can_give_leaves_a_residual():
    robot = the_case("quadruped")  # free in the air: the base cannot be pushed
    q = robot.system.tree.q0
    a = np.zeros(18)
    out = constrained_inverse_dynamics(robot.system)(q=q, v=np.zeros(18), a=a)
    weight = robot.model.body_mass.sum() * 9.81
    np.testing.assert_allclose(np.linalg.norm(out["residual"].full()[:3]), weight, rtol=1e-6)
