"""Rows of a loop seen from the body that carries it."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.system import read_mjcf

RELATIVE = 1e-6  # central differences of step 1e-6
GAP = 1e-3

# A planar loop on an arm that turns in space, closed at the initial pose of its links.
CARRIED_LOOP = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="arm">
      <joint name="yaw" type="ball"/>
      <inertial pos="0 0 .2" mass="1" diaginertia=".1 .1 .1"/>
      <body name="left" pos="0 0 .4">
        <joint name="left" axis="0 1 0"/>
        <inertial pos="0 0 .1" mass=".2" diaginertia=".01 .01 .01"/>
        <body name="bar" pos="0 0 .2">
          <joint name="bar" axis="0 1 0"/>
          <inertial pos=".1 0 0" mass=".2" diaginertia=".01 .01 .01"/>
        </body>
      </body>
      <body name="right" pos=".3 0 .4">
        <joint name="right" axis="0 1 0"/>
        <inertial pos="0 0 .1" mass=".2" diaginertia=".01 .01 .01"/>
        <body name="stub" pos="-.05 0 .2">
          <joint name="stub" axis="0 1 0"/>
          <inertial pos="0 0 .01" mass=".1" diaginertia=".01 .01 .01"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality>
    <{kind} body1="bar" body2="stub" {anchor}/>
  </equality>
</mujoco>
"""
KINDS = {"connect": 'anchor=".25 0 0"', "weld": 'anchor="0 0 0"'}


@pytest.fixture(params=sorted(KINDS))
def loop(request):
    return read_mjcf(CARRIED_LOOP.format(kind=request.param, anchor=KINDS[request.param]))


def column(value):
    return np.array(value).ravel()


def closed_state(system, rng):
    """The authored loop on an arm turned at random."""
    q = column(system.tree.q0)
    q[:4] = rng.normal(size=4)
    q[:4] /= np.linalg.norm(q[:4])
    assert np.max(np.abs(column(system.constraint(q)))) < 1e-12  # exact but for rounding
    return q


def test_on_the_manifold_they_are_the_rows_seen_from_the_world(loop):
    rng = np.random.default_rng(1)
    q = closed_state(loop, rng)
    A = np.array(loop.constraint_jacobian(q))
    np.testing.assert_allclose(np.array(loop.loop_jacobian(q)), A, atol=1e-12)
    v = 30.0 * rng.normal(size=loop.nv)  # fast, since the bias of this pose is small
    v -= np.linalg.pinv(A) @ A @ v
    np.testing.assert_allclose(
        column(loop.loop_bias(q, v)), column(loop.constraint_bias(q, v)), atol=1e-11
    )
    assert np.max(np.abs(column(loop.loop_bias(q, v)))) > 0.1  # the bias is there


def test_the_rank_of_an_open_loop_is_that_of_the_closed_one(loop):
    q = closed_state(loop, np.random.default_rng(2))
    closed = np.linalg.matrix_rank(np.array(loop.constraint_jacobian(q)), 1e-9)
    q[-1] += GAP
    q[-2] += GAP
    seen_from_world = np.linalg.matrix_rank(np.array(loop.constraint_jacobian(q)), 1e-9)
    seen_from_carrier = np.linalg.matrix_rank(np.array(loop.loop_jacobian(q)), 1e-9)
    assert seen_from_world > closed
    assert seen_from_carrier == closed


def test_the_bias_is_the_rate_of_the_rows_in_the_axes_of_the_carrier(loop):
    """`R d/dt(Rᵀ A_loop v)` with R the rotation of the body that carries the loop."""
    rng = np.random.default_rng(3)
    q = closed_state(loop, rng)
    q[-1] += GAP
    v = rng.normal(size=loop.nv)
    arm = loop.frame("arm", "body").pose

    def rate(s):
        qs = column(loop.integrate(q, s * v))
        R = np.array(arm(qs)[1])
        rows = np.array(loop.loop_jacobian(qs)) @ v
        return np.concatenate([R.T @ rows[:3], rows[3:]])

    step = 1e-6
    slope = (rate(step) - rate(-step)) / (2 * step)
    R = np.array(arm(q)[1])
    expected = np.concatenate([R @ slope[:3], slope[3:]])
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(column(loop.loop_bias(q, v)), expected, atol=RELATIVE * scale)


def test_a_loop_closed_on_the_world_is_seen_from_the_world():
    system = read_mjcf(models.path("four_bar"))
    rng = np.random.default_rng(4)
    q, v = rng.normal(size=3), rng.normal(size=3)
    for ours, world in (
        (system.loop_jacobian(q), system.constraint_jacobian(q)),
        (system.loop_bias(q, v), system.constraint_bias(q, v)),
    ):
        np.testing.assert_array_equal(np.array(ours), np.array(world))


def test_joints_that_carry_the_whole_loop_have_no_column(loop):
    assert isinstance(loop.loop_jacobian, ca.Function)
    pattern = np.array(ca.DM(loop.loop_jacobian.sparsity_out("A"), 1))
    assert not pattern[:, :3].any()
