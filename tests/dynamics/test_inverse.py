"""Inverse dynamics as the inverse of forward dynamics, actuators and constraints included."""

import mujoco
import numpy as np
import pytest
from dynamics_states import consistent_state, the_case

from mbcasadi.dynamics import constrained_inverse_dynamics, forward_dynamics, inverse_dynamics

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


def test_a_motion_that_no_actuator_can_give_leaves_a_residual():
    robot = the_case("quadruped")  # free in the air: the base cannot be pushed
    q = robot.system.tree.q0
    a = np.zeros(18)
    out = constrained_inverse_dynamics(robot.system)(q=q, v=np.zeros(18), a=a)
    weight = robot.model.body_mass.sum() * 9.81
    np.testing.assert_allclose(np.linalg.norm(out["residual"].full()[:3]), weight, rtol=1e-6)
