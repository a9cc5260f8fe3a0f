"""Laws within limits on systems with a mask, with servos, and without any limit."""

import numpy as np
import pytest
from a10_motions import system_of
from tool_motions import place_of, tool

import mbcasadi as mb
from mbcasadi.control import PostureTask
from mbcasadi.control.laws import computed_torque, gravity_compensated_pd, within_limits

SERVOS = """<mujoco><worldbody><body pos="0 0 1">
  <joint name="first" axis="0 1 0" damping="0.1"/>
  <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02" mass="2"/>
  <body pos="0.4 0 0"><joint name="second" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1"/></body>
</body></worldbody><actuator>
  <position joint="first" kp="80" kv="4" ctrlrange="-1 1" forcerange="-14 14"/>
  <position joint="second" kp="40" kv="2" ctrlrange="-1 1"/>
</actuator></mujoco>"""
PLAIN = SERVOS.replace(' ctrlrange="-1 1"', "").replace(' forcerange="-14 14"', "")


def outputs_of_both(law, wrapped, *values):
    inner = law.function(*values, law.controller.z0)
    other = wrapped.function(*values, wrapped.controller.z0)
    return [[np.array(x).ravel() for x in each] for each in (inner, other)]


@pytest.mark.parametrize("on", [1.0, 0.0])
def test_a_mask_switches_the_loop_in_law_and_qp_alike(on):
    """With the loop open the robot is two arms with a passive joint each: it cannot follow."""
    system = system_of("five_bar").with_mask()
    law = computed_torque(system, tool("five_bar", kp=400.0))
    wrapped = within_limits(law)
    place, q, v = place_of("five_bar", system.tree.q0), system.tree.q0, np.zeros(4)
    near, far = (
        law.reference(tool_position=place + np.array(way)) for way in ([0.02, 0.02], [0.2, 0.12])
    )
    own, other = outputs_of_both(law, wrapped, q, v, near, [on])
    assert own[2] == other[2] == (0 if on else 2)
    if on:
        np.testing.assert_array_equal(other[0], own[0])
    own, other = outputs_of_both(law, wrapped, q, v, far, [on])
    assert own[2] == other[2] == (1 if on else 2)
    A = on * system_of("five_bar").constraint_jacobian(q).full()
    M, B = system.mass_matrix(q).full(), system.actuation(q).full()
    h = system.bias_force(q, v).full() - system.passive_force(q, v).full()
    a_desired = np.array(law.desired(q, v, far, [on], [])[0])

    def miss(u):
        pivots = np.block([[M, -A.T], [A, np.zeros((3, 3))]])
        right = np.vstack([B @ u[:, None] - h, np.zeros((3, 1))])
        gap = np.linalg.lstsq(pivots, right, rcond=None)[0][:4] - a_desired
        return (gap.T @ M @ gap).item()

    assert miss(other[0]) < miss(own[0])
    for step in (0.02, -0.02):  # N m, of the motor that is not at its limit
        assert miss(other[0] + [0.0, step]) > miss(other[0])


def test_the_ranges_of_servos_are_those_of_their_set_points_and_forces():
    system = mb.read_mjcf(SERVOS)
    law = computed_torque(system, PostureTask(kp=50.0))
    wrapped = within_limits(law)
    q, v = np.array([0.1, -0.2]), np.array([0.3, 0.1])
    near, far = law.reference(posture_q=q + 0.05), law.reference(posture_q=q - [0.9, 0.0])
    own, other = outputs_of_both(law, wrapped, q, v, near)
    assert own[2] == other[2] == 0
    np.testing.assert_array_equal(other[0], own[0])
    own, other = outputs_of_both(law, wrapped, q, v, far)
    force = system.actuator_force(q, v, other[0]).full().ravel()
    unclipped = 80.0 * (other[0][0] - q[0]) - 4.0 * v[0]
    assert other[2] == 1
    assert abs(force[0]) == pytest.approx(14.0, abs=1e-6)
    assert unclipped == pytest.approx(force[0], abs=1e-6)  # nothing is left for MuJoCo to clip


def test_without_limits_the_wrap_changes_nothing():
    system = mb.read_mjcf(PLAIN)
    law = gravity_compensated_pd(system, PostureTask(), stiffness=30.0, damping=3.0)
    wrapped = within_limits(law)
    assert wrapped.controller.stages.m == 0
    rng = np.random.default_rng(1)
    for _ in range(10):
        q, v = rng.standard_normal((2, 2))
        own, other = outputs_of_both(
            law, wrapped, q, v, law.reference(posture_q=5 * rng.standard_normal(2))
        )
        assert own[2] == other[2] == 0
        np.testing.assert_array_equal(other[0], own[0])
