"""Springs, dampers, compensation and actuators: laws, and MuJoCo's own forces."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from model_mechanisms import Numbers
from support.agreement import assert_agrees

from mbcasadi import mjcf, model
from mbcasadi.description import Actuator
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf import actuator_refusals
from mbcasadi.mjcf.compat import measures_turned_sites

ROUNDING = 1e-11
DIFFERENCE = 1e-7
STATES = 6

POWERED = """
<mujoco model="powered">
  <option gravity="1 2 -9.81"/>
  <worldbody>
    <site name="ground" pos=".1 .2 .3" quat="1 2 3 4"/>
    <body name="base" pos="0 0 1">
      <freejoint name="base"/>
      <geom size=".1" pos=".02 .03 .01"/>
      <body name="arm" pos=".2 .1 0" quat="1 .1 .2 .3" gravcomp="0.7">
        <joint name="a" axis="1 2 3" pos=".01 .02 .03" ref=".3" springref=".1" stiffness="3"
               damping=".4" actuatorfrcrange="-1 1"/>
        <joint name="b" type="slide" axis="0 1 1" ref=".05" stiffness="20"/>
        <joint name="c" axis="0 1 0" pos="-.02 0 .1" actuatorgravcomp="true"/>
        <geom type="box" size=".1 .05 .2" pos=".1 .1 0"/>
        <body name="hand" pos=".1 0 .2" euler="30 0 0" gravcomp="1">
          <joint name="ball" type="ball" pos=".03 .02 .01" stiffness="2" damping=".3"/>
          <geom type="capsule" fromto="0 0 0 .1 .2 .3" size=".03"/>
          <body name="tool" pos=".1 .1 .1" gravcomp="-1"><geom size=".05" pos=".1 0 0"/>
            <site name="tool" pos="0 .1 .05" quat="1 -.2 .3 .1"/>
          </body>
        </body>
      </body>
    </body>
    <body name="mast" pos="1 0 0">
      <joint name="m1" axis="0 1 0" actuatorfrcrange="-.5 .5"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body pos=".3 0 0"><joint name="m2" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
        <site name="mast" pos="0 .1 .05"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="tie" stiffness="3" damping=".4" springlength="-.1 .2" actuatorfrclimited="true"
           actuatorfrcrange="-2 2">
      <joint joint="m1" coef="1.2"/><joint joint="a" coef="-.7"/>
    </fixed>
    <fixed name="band" stiffness="2"><joint joint="m2" coef="1.2"/></fixed>
  </tendon>
  <actuator>
    <motor joint="m1" gear="2" ctrlrange="-1 1"/>
    <position joint="a" kp="30" kv="2" forcerange="-3 3"/>
    <velocity joint="b" kv="2"/>
    <motor tendon="tie" gear="1.5"/>
    <position tendon="tie" kp="10"/>
    <motor site="tool" gear="1 2 3 4 5 6"/>
    <position site="tool" refsite="mast" gear="1 2 3 0 0 0" kp="7"/>
    <position site="tool" refsite="ground" gear="0 0 0 1 2 3" kp="7"/>
    <motor joint="ball" gear="1 2 3"/>
    <motor jointinparent="ball" gear="1 2 3"/>
    <motor joint="base" gear="1 2 3 4 5 6"/>
    <motor jointinparent="base" gear="1 2 3 4 5 6"/>
    <position joint="ball" gear="1 0.5 0" kp="3"/>
    <general joint="m2" dyntype="integrator" gaintype="affine" gainprm="3 .5 0"
             biastype="affine" biasprm="1 2 3"/>
    <general joint="m2" dyntype="filter" dynprm=".3" gainprm="3"/>
  </actuator>
</mujoco>
"""


class Powered(Numbers):
    """The mechanism above, its actuators and MuJoCo's view of it."""

    def __init__(self, xml=POWERED, change=None):
        self.compiled = mujoco.MjModel.from_xml_string(xml)
        if change is not None:
            change(self.compiled)
        self.data = mujoco.MjData(self.compiled)
        described = mjcf.read(self.compiled)
        super().__init__(described.tree)
        self.actuators = described.actuators
        q, v = self.q, self.v
        u, act = ca.SX.sym("u", self.compiled.nu), ca.SX.sym("act", self.compiled.na)
        self.u, self.act = u, act
        tree, actuators = described.tree, described.actuators
        self.passive = self.of(model.passive_force(tree, q, v, actuators), q, v)

    def states(self):
        rng = np.random.default_rng(5)
        for _ in range(STATES):
            q, v = model.random_state(self.tree, rng)
            u = 2.0 * rng.standard_normal(self.compiled.nu)
            yield q, v, u, rng.standard_normal(self.compiled.na)

    def mujoco_at(self, q, v, u, act):
        d = self.data
        d.qpos[:], d.qvel[:], d.ctrl[:], d.act[:] = q, v, u, act
        mujoco.mj_forward(self.compiled, d)
        return d


@pytest.fixture(scope="module")
def powered():
    return Powered()


@pytest.mark.skipif(
    not measures_turned_sites(),
    reason="this MuJoCo measures rotations between turned sites wrongly, and they are refused",
)
def test_passive_forces_actuators_and_activation_rates_are_those_of_mujoco():
    assert_agrees("powered", POWERED)


def test_polynomial_springs_and_dampers_are_those_of_mujoco():
    def bend(compiled):
        compiled.jnt_stiffness[0] = 4.0  # the free joint
        compiled.jnt_stiffnesspoly[:] = [5.0, 7.0]
        compiled.dof_dampingpoly[:] = [3.0, 2.0]
        compiled.tendon_stiffnesspoly[:] = [5.0, 7.0]
        compiled.tendon_dampingpoly[:] = [3.0, 2.0]

    bent, plain = Powered(change=bend), Powered()
    for state in bent.states():
        expected = bent.mujoco_at(*state).qfrc_passive.copy()
        assert abs(expected - plain.passive(*state[:2])).max() > 1.0
        found = bent.passive(*state[:2])
        np.testing.assert_allclose(found, expected, atol=ROUNDING * abs(expected).max())


def test_springs_have_a_potential():
    """Without dampers and weight the gradient of the passive force is symmetric."""
    spring_only = POWERED.replace('gravity="1 2 -9.81"', 'gravity="0 0 0"')
    robot = Powered(spring_only)
    tree, q, v = robot.tree, robot.q, robot.v
    f = ca.Function("f", [q, v], [model.passive_force(tree, q, v)])
    step = 1e-5
    rest = np.zeros(tree.nv)
    q0, _ = model.random_state(tree, np.random.default_rng(2))
    scalar = [j.dof for j in tree.joints if j.kind in ("hinge", "slide")]
    K = np.array(
        [robot.along(lambda x: np.array(f(x, rest)).ravel(), q0, e, step) for e in np.eye(tree.nv)]
    )
    block = K[np.ix_(scalar, scalar)]
    assert abs(block).max() > 1.0
    np.testing.assert_allclose(block, block.T, atol=DIFFERENCE * abs(block).max())


def test_springs_at_rest_have_finite_derivatives():
    def bend(compiled):
        compiled.jnt_stiffness[0] = 4.0
        compiled.jnt_stiffnesspoly[:] = [5.0, 7.0]

    robot = Powered(change=bend)
    force = model.passive_force(robot.tree, robot.q, robot.v)
    slope = robot.of(ca.jacobian(force, robot.q), robot.q, robot.v)
    assert np.all(np.isfinite(slope(robot.tree.q_spring, np.zeros(robot.tree.nv))))


def test_full_compensation_carries_the_weight():
    xml = """<mujoco><worldbody>
      <body gravcomp="1"><joint axis="0 1 0"/><geom size=".1" pos="1 0 0"/>
        <body pos="1 0 0" gravcomp="1"><joint axis="0 1 0"/><geom size=".1" pos="1 0 0"/></body>
      </body></worldbody></mujoco>"""
    robot = Powered(xml)
    for q, v, _, _ in robot.states():
        lifted = robot.passive(q, v)
        assert abs(lifted).max() > 1.0
        np.testing.assert_allclose(lifted, robot.h(q, 0.0 * v), atol=ROUNDING * 10)


@pytest.mark.parametrize(("quat", "refused"), [("1 0 0 0", 0), ("1 2 3 4", 1)])
def test_an_old_mujoco_is_trusted_with_rotations_of_sites_that_are_not_turned(
    quat, refused, monkeypatch
):
    monkeypatch.setattr(actuator_refusals, "measures_turned_sites", lambda: False)
    compiled = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><site name="ground" quat="{quat}"/><body><freejoint/>'
        '<geom size=".1"/><site name="tool"/></body></worldbody><actuator>'
        '<position site="tool" refsite="ground" gear="0 0 0 1 2 3"/></actuator></mujoco>'
    )
    assert len(actuator_refusals._of_transmission(compiled, 0)) == refused


def test_without_ranges_the_force_is_affine_in_the_control():
    """`actuator_force = B u + f_0`, with the activation in the place of its control."""

    def open_ranges(compiled):
        compiled.actuator_ctrllimited[:] = 0
        compiled.actuator_forcelimited[:] = 0
        compiled.jnt_actfrclimited[:] = 0
        compiled.tendon_actfrclimited[:] = 0

    robot = Powered(change=open_ranges)
    tree, q, v = robot.tree, robot.q, robot.v
    # A servo on a rotation takes the nearest turn, so it is affine only piece by piece.
    # The gain of a damper depends on velocity, where MuJoCo does not count it as passive.
    actuators = [a for a in robot.actuators if a.period == 0.0 and a.gain[2] == 0.0]
    u = ca.SX.sym("u", len(actuators))
    B = robot.of(model.actuation(tree, actuators, q), q)
    f_0 = robot.of(model.actuator_bias(tree, actuators, q, v), q, v)
    force = model.actuator_force(tree, actuators, q, v, u, robot.act)
    force_fun = robot.of(force, q, v, u, robot.act)
    for q0, v0, u0, act in robot.states():
        given = u0[: len(actuators)]
        driven = [
            given[i] if actuator.act is None else act[actuator.act]
            for i, actuator in enumerate(actuators)
        ]
        expected = force_fun(q0, v0, given, act)
        found = B(q0) @ driven + f_0(q0, v0)
        np.testing.assert_allclose(found, expected, atol=ROUNDING * abs(expected).max())


def test_a_gain_that_depends_on_velocity_has_no_actuation_matrix(powered):
    actuator = Actuator(
        name="odd",
        transmission="joint",
        target=1,
        gear=np.eye(6)[0],
        gain=(1.0, 0.0, 2.0),
        bias=(0.0, 0.0, 0.0),
    )
    with pytest.raises(UnsupportedFeatureError, match="actuator 'odd': its gain depends"):
        model.actuation(powered.tree, [actuator], powered.q)


def test_an_activation_state_must_be_given(powered):
    with pytest.raises(UnsupportedFeatureError, match="expected `act`, found None"):
        model.actuator_force(powered.tree, powered.actuators, powered.q, powered.v, powered.u)
