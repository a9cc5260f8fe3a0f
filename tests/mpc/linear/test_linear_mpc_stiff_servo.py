"""Accelerations as unknowns where a servo is stiff and a link light: the same control."""

from dataclasses import replace

import numpy as np

import mbcasadi as mb
from mbcasadi.mpc import LinearOptions, linear_mpc

# Poles from 4 to 2e5 1/s: an angle of 0.02 rad is an acceleration of 1e4 rad/s².
ARM = """
<mujoco model="servo_arm">
  <worldbody>
    <body>
      <joint name="upper" axis="0 1 0"/>
      <inertial pos="0 0 0.3" mass="3" diaginertia="0.1 0.1 0.01"/>
      <body pos="0 0 0.6">
        <joint name="wrist" axis="0 1 0"/>
        <inertial pos="0 0 0.03" mass="0.3" diaginertia="1e-3 1e-3 1e-3"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position joint="upper" kp="2000" kv="200"/>
    <position joint="wrist" kp="2000" kv="200"/>
  </actuator>
</mujoco>
"""
ONE_SOLUTION = 1e-8


def test_large_accelerations_hide_no_error_of_the_controls():
    system = mb.read_mjcf(ARM)
    linear = mb.linearize(system, np.zeros(2), None, np.zeros(2))
    assert np.abs(np.linalg.eigvals(linear.dfdx)).max() > 1e5
    weights = [10, 10, 0.1, 0.1], [1, 1]
    laws = [
        linear_mpc(linear, LinearOptions(15, *weights, form=form))
        for form in ("condensed", "multipliers")
    ]
    refs = [law.reference(setpoint_q=np.zeros(2), setpoint_u=np.zeros(2)) for law in laws]
    rng, moved = np.random.default_rng(0), 0.0
    for _ in range(5):
        q, v = 0.02 * rng.standard_normal((2, 2))
        u, other = (
            law.function(q, v, ref, law.controller.z0) for law, ref in zip(laws, refs, strict=True)
        )
        assert float(u[2]) == float(other[2]) == 0
        np.testing.assert_allclose(other[0].full(), u[0].full(), atol=ONE_SOLUTION)
        w = laws[1].unknowns(q, v, refs[1], laws[1].controller.z0).full()
        moved = max(moved, np.abs(w).max())
    assert moved > 1e4


def test_what_counts_as_rest_is_one_thing_for_all_forms():
    """Of a stiff mechanism an equilibrium is found to rounding of its forces, not to 1e-8 m/s²."""
    system = mb.read_mjcf(ARM)
    linear = mb.linearize(system, np.zeros(2), None, np.zeros(2))
    nearly = replace(linear, drift=np.full(linear.nx, 1e-7))
    for form in ("condensed", "sparse", "multipliers"):
        linear_mpc(nearly, LinearOptions(3, [10, 10, 0.1, 0.1], [1, 1], form=form))
