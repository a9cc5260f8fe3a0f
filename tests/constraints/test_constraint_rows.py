"""Rows of connect, weld and couplings: MuJoCo's residuals, and laws of their derivatives."""

import casadi as ca
import mujoco
import numpy as np
import pytest

from mbcasadi import constraints, mjcf, model
from mbcasadi.description import Connect, JointCoupling, TendonCoupling, Weld

ROUNDING = 1e-12
DIFFERENCE = 1e-8  # central differences with steps of 1e-5, relative to the largest entry
STEP = 1e-5
STATES = 5

LOOPS = """
<mujoco model="loops">
  <option jacobian="dense"/>
  <worldbody>
    <site name="ground" pos=".1 .2 .3" quat="1 2 3 4"/>
    <body name="base" pos="0 0 1">
      <freejoint/>
      <geom type="box" size=".1 .2 .15" pos=".02 .03 .01"/>
      <site name="on_base" pos=".1 0 .05" quat="1 .2 .3 .1"/>
      <body name="arm" pos=".2 .1 0" quat="1 .1 .2 .3">
        <joint name="a" axis="1 2 3" pos=".01 .02 .03" ref="17"/>
        <joint name="b" type="slide" axis="0 1 1" ref=".05"/>
        <geom type="box" size=".1 .05 .2" pos=".1 .1 0"/>
        <site name="on_arm" pos="0 .1 .05" quat="1 .2 .3 .1"/>
        <body name="wrist" pos=".1 0 .2" euler="30 0 0">
          <joint name="ball" type="ball" pos=".03 .02 .01"/>
          <geom type="capsule" fromto="0 0 0 .1 .2 .3" size=".03"/>
          <body name="drawer" pos="0 0 .2" euler="0 20 0">
            <joint name="drawer" type="slide" axis="1 0 1"/>
            <joint name="knob" axis="0 0 1" ref="-8"/>
            <geom type="box" size=".1 .05 .02" pos=".1 .1 0"/>
            <site name="on_drawer" pos="0 .1 .05" quat="1 -.2 .3 .1"/>
          </body>
        </body>
      </body>
      <body name="other" pos="-.2 .1 0"><joint name="e" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
        <body name="end" pos=".3 0 0"><joint name="f" axis="0 1 0.3"/>
          <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
          <site name="on_end" pos="0 .1 .05" quat="1 .5 .3 .1"/>
        </body>
      </body>
    </body>
    <body name="mast" pos="1 0 0"><joint name="m" axis="0 0 -1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="one"><joint joint="e" coef="1.2"/><joint joint="a" coef="-.7"/></fixed>
    <fixed name="two"><joint joint="f" coef="1.2"/></fixed>
  </tendon>
  <equality>
    <joint name="quartic" joint1="e" joint2="f" polycoef=".1 1 .5 .3 .2"/>
    <weld name="across" body1="drawer" body2="end" relpose=".1 .2 .3 1 .2 .3 .4"
          torquescale="1.7" anchor=".1 .2 .1"/>
    <connect name="up" body1="drawer" body2="base" anchor=".1 .2 .3"/>
    <tendon name="lengths" tendon1="one" tendon2="two" polycoef="0 1 .2 .1 0"/>
    <weld name="of_sites" site1="on_drawer" site2="on_end"/>
    <joint name="held" joint1="b" polycoef=".1 0 0 0 0"/>
    <connect name="to_world" body1="end" anchor=".1 0 0"/>
    <connect name="of_two_sites" site1="on_base" site2="on_arm"/>
    <weld name="to_mast" body1="mast" body2="arm"/>
    <weld name="fixed_base" body1="base"/>
    <tendon name="held_length" tendon1="one" polycoef=".2 0 0 0 0"/>
    <connect name="down" body1="base" body2="wrist" anchor="0 .1 0"/>
  </equality>
</mujoco>
"""


class Loops:
    """The mechanism above: its constraints as functions of arrays, and MuJoCo's rows."""

    def __init__(self):
        self.compiled = mujoco.MjModel.from_xml_string(LOOPS)
        self.data = mujoco.MjData(self.compiled)
        described = mjcf.read(self.compiled)
        self.tree, self.equalities = described.tree, described.equalities
        self.q, self.v = ca.SX.sym("q", self.tree.nq), ca.SX.sym("v", self.tree.nv)
        self.step = ca.Function(
            "step", [self.q, self.v], [model.integrate(self.tree, self.q, self.v)]
        )

    def functions(self, equalities):
        q, v = self.q, self.v
        parts = (
            constraints.residual(self.tree, equalities, q),
            constraints.jacobian(self.tree, equalities, q),
            constraints.bias(self.tree, equalities, q, v),
        )
        phi, A = (ca.Function("f", [q], [part]) for part in parts[:2])
        c = ca.Function("c", [q, v], [parts[2]])
        return phi, A, c

    def states(self):
        rng = np.random.default_rng(2)
        return [model.random_state(self.tree, rng) for _ in range(STATES)]

    def rows_of_mujoco(self, q):
        self.data.qpos[:] = q
        mujoco.mj_forward(self.compiled, self.data)
        ne = self.data.ne
        return self.data.efc_pos[:ne], self.data.efc_J.reshape(-1, self.compiled.nv)[:ne]

    def along(self, function, q, v):
        ahead, behind = (np.array(function(self.step(q, s * STEP * v))) for s in (1.0, -1.0))
        return (ahead - behind) / (2 * STEP)


@pytest.fixture(scope="module")
def loops():
    return Loops()


def names():
    return [e.name for e in mjcf.read(LOOPS).equalities]


@pytest.fixture(params=names())
def single(request, loops):
    return next(e for e in loops.equalities if e.name == request.param)


def test_every_kind_of_constraint_is_there(loops):
    assert {type(e) for e in loops.equalities} == {Connect, Weld, JointCoupling, TendonCoupling}
    assert sum(e.size for e in loops.equalities) == loops.rows_of_mujoco(loops.tree.q0)[0].size


def test_residual_and_jacobian_are_the_rows_of_mujoco_in_its_order(loops):
    phi, A, _ = loops.functions(loops.equalities)
    for q, _ in loops.states():
        position, J = loops.rows_of_mujoco(q)
        assert abs(position).max() > 0.1
        np.testing.assert_allclose(np.array(phi(q)).ravel(), position, atol=ROUNDING * 10)
        np.testing.assert_allclose(np.array(A(q)), J, atol=ROUNDING * abs(J).max())


def test_jacobian_is_the_rate_of_the_residual(single, loops):
    phi, A, _ = loops.functions([single])
    for q, v in loops.states():
        rate = np.array(A(q)) @ v
        assert abs(rate).max() > 0.0
        np.testing.assert_allclose(
            rate, loops.along(phi, q, v).ravel(), atol=DIFFERENCE * max(1.0, abs(rate).max())
        )


def test_bias_is_the_rate_of_the_jacobian_times_velocity(single, loops):
    _, A, c = loops.functions([single])
    for q, v in loops.states():
        expected = loops.along(A, q, v) @ v
        scale = max(1.0, abs(expected).max())
        np.testing.assert_allclose(np.array(c(q, v)).ravel(), expected, atol=DIFFERENCE * scale)


def test_bias_is_quadratic_in_the_velocity(single, loops):
    _, _, c = loops.functions([single])
    for q, v in loops.states():
        once, twice = np.array(c(q, v)), np.array(c(q, 2.0 * v))
        np.testing.assert_allclose(twice, 4.0 * once, atol=1e3 * ROUNDING * max(1, abs(once).max()))


def test_a_quadratic_coupling_has_the_bias_that_mujoco_leaves_out():
    """`phi = x1 - x2²` moves with `ẍ1 - 2 x2 ẍ2 - 2 ẋ2² = 0`."""
    xml = """<mujoco><worldbody>
      <body><joint name="x1" type="slide"/><geom size=".1"/></body>
      <body><joint name="x2" type="slide"/><geom size=".1"/></body></worldbody>
      <equality><joint joint1="x1" joint2="x2" polycoef="0 0 1 0 0"/></equality></mujoco>"""
    described = mjcf.read(xml)
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    c = ca.Function("c", [q, v], [constraints.bias(described.tree, described.equalities, q, v)])
    assert float(c([0.3, 0.7], [1.0, 3.0])) == pytest.approx(-2.0 * 3.0**2)


def test_joints_that_carry_both_bodies_leave_relative_rotation_alone(loops):
    weld = next(e for e in loops.equalities if e.name == "across")
    A = constraints.jacobian(loops.tree, [weld], loops.q)
    rotation_columns = set(A[3:, :].sparsity().get_triplet()[1])
    position_columns = set(A[:3, :].sparsity().get_triplet()[1])
    base = set(range(6))
    assert not rotation_columns & base
    assert not position_columns & set(range(3))
    assert position_columns & set(range(3, 6)), "off the manifold the base turns the gap"


def test_unrelated_joints_have_no_columns(loops):
    connect = next(e for e in loops.equalities if e.name == "up")
    A = constraints.jacobian(loops.tree, [connect], loops.q)
    dof = {joint.name: joint.dof for joint in loops.tree.joints}
    columns = set(A.sparsity().get_triplet()[1])
    assert dof["knob"] in columns
    assert columns.isdisjoint({dof["e"], dof["f"], dof["m"]})


def test_no_constraints_give_no_rows(loops):
    q, v = loops.q, loops.v
    assert constraints.residual(loops.tree, [], q).shape == (0, 1)
    assert constraints.jacobian(loops.tree, [], q).shape == (0, loops.tree.nv)
    assert constraints.bias(loops.tree, [], q, v).shape == (0, 1)


def test_closed_loop_rows_vanish_on_the_manifold_and_repeat_in_a_plane():
    """A planar four-bar closed by a connect in space has a Jacobian of rank 2 in 3 rows."""
    xml = """<mujoco><worldbody>
      <body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 1" size=".02"/>
        <body pos="0 0 1"><joint axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 1 0 0" size=".02"/>
          <body name="last" pos="1 0 0"><joint axis="0 1 0"/>
            <geom type="capsule" fromto="0 0 0 0 0 -1" size=".02"/></body></body></body>
      </worldbody><equality><connect body1="last" anchor="0 0 -1"/></equality></mujoco>"""
    described = mjcf.read(xml)
    tree, equalities = described.tree, described.equalities
    q = ca.SX.sym("q", 3)
    phi = ca.Function("phi", [q], [constraints.residual(tree, equalities, q)])
    A = ca.Function("A", [q], [constraints.jacobian(tree, equalities, q)])
    for angle in (0.0, 0.4, -1.0):  # equal links: the coupler stays level
        closed = [angle, -angle, angle]
        np.testing.assert_allclose(np.array(phi(closed)), 0.0, atol=ROUNDING)
        assert np.linalg.matrix_rank(np.array(A(closed)), tol=1e-9) == 2
