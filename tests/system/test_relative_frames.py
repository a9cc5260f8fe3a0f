"""Frames seen from other ones, against MuJoCo's frame sensors and by differences."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.mjcf.names import names

MODEL = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 1">
      <freejoint/><geom name="belly" type="box" size=".2 .1 .1" pos=".01 0 .02"/>
      <body name="upper" pos=".2 .1 0" quat=".9 .1 -.2 .3">
        <joint axis="0 1 0"/><geom size=".05"/>
        <body name="lower" pos="0 .1 -.3">
          <joint type="ball"/><geom name="shin" type="capsule" size=".03 .1" euler="20 30 0"/>
          <site name="tip" pos="0 .05 -.25" euler="10 20 30"/>
        </body>
      </body>
      <body name="other" pos="-.2 0 0"><joint type="slide" axis=".6 0 .8"/><geom size=".05"/></body>
    </body>
  </worldbody>
  <sensor>{sensors}</sensor>
</mujoco>
"""
PAIRS = [
    ("site", "tip", "body", "trunk"),
    ("body", "trunk", "site", "tip"),
    ("geom", "shin", "body", "other"),
    ("site", "tip", "geom", "belly"),
    ("body", "lower", "body", "world"),
]
QUANTITIES = ("framepos", "framequat", "framelinvel", "frameangvel")
ROUNDING = 1e-11
STEP = 1e-5
DIFFERENCE = 1e-7  # central differences with that step; rates of some 10 1/s


def of_sensor(kind):
    return "xbody" if kind == "body" else kind  # MuJoCo's "body" is its centre of mass


@pytest.fixture(scope="module")
def model():
    lines = [
        f'<{quantity} objtype="{of_sensor(kind)}" objname="{name}" '
        f'reftype="{of_sensor(base_kind)}" refname="{base}"/>'
        for kind, name, base_kind, base in PAIRS
        for quantity in QUANTITIES
    ]
    return mujoco.MjModel.from_xml_string(MODEL.format(sensors="".join(lines)))


@pytest.fixture(scope="module")
def system(model):
    return mb.read_mjcf(model)


@pytest.fixture(scope="module")
def states(system):
    rng = np.random.default_rng(4)
    poses = [
        np.array(system.integrate(system.tree.q0, rng.normal(size=system.nv))).ravel()
        for _ in range(3)
    ]
    return [(q, 3 * rng.normal(size=system.nv)) for q in poses]


def seen(system, pair):
    kind, name, base_kind, base = pair
    return system.relative_frame(name, base, kind=kind, base_kind=base_kind)


def test_poses_and_rates_are_those_of_mujocos_sensors(model, system, states):
    data = mujoco.MjData(model)
    for q, v in states:
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        measured = iter(np.split(data.sensordata, np.cumsum(model.sensor_dim)[:-1]))
        for pair in PAIRS:
            frame = seen(system, pair)
            p, quat, linear, angular = (next(measured) for _ in QUANTITIES)
            np.testing.assert_allclose(np.array(frame.pose(q)[0]).ravel(), p, atol=ROUNDING)
            found = np.array(frame.quaternion(q)).ravel()
            assert abs(found @ quat) == pytest.approx(1, abs=ROUNDING)
            twist = np.r_[linear, angular]
            rates = np.array(frame.velocity(q, v)).ravel()
            np.testing.assert_allclose(rates, twist, atol=10 * ROUNDING, err_msg=frame.name)
            by_jacobian = np.array(frame.jacobian(q) @ ca.DM(v)).ravel()
            np.testing.assert_allclose(by_jacobian, twist, atol=10 * ROUNDING)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[1]} from {pair[3]}")
def test_the_bias_is_the_change_of_the_rates_at_constant_v(system, states, pair):
    frame = seen(system, pair)
    for q, v in states:
        ends = [system.integrate(q, sign * STEP * v) for sign in (1, -1)]
        after, before = (np.array(frame.velocity(end, v)).ravel() for end in ends)
        expected = (after - before) / (2 * STEP)
        found = np.array(frame.bias(q, v)).ravel()
        np.testing.assert_allclose(found, expected, atol=DIFFERENCE * (1 + v @ v))


def test_geoms_are_frames_as_mujoco_has_them(model, system, states):
    data = mujoco.MjData(model)
    data.qpos[:] = states[0][0]
    mujoco.mj_kinematics(model, data)
    for i, name in enumerate(names(model, "geom")):
        p, R = system.frame(name, "geom").pose(states[0][0])
        np.testing.assert_allclose(np.array(p).ravel(), data.geom_xpos[i], atol=ROUNDING)
        np.testing.assert_allclose(np.array(R).ravel(order="C"), data.geom_xmat[i], atol=ROUNDING)


def test_a_name_of_another_kind_is_named_with_its_kind(system):
    with pytest.raises(UnknownNameError, match=r"'trunk': it is the name of a body.*kind='body'"):
        system.frame("trunk")
    with pytest.raises(UnknownNameError, match="unknown body 'nobody'; valid: 'world'"):
        system.relative_frame("tip", "nobody")


def test_a_point_without_axes_is_no_base(system):
    q = ca.SX.sym("q", system.nq)
    with_point = system.with_frame("point", q, q[:3])
    with pytest.raises(ProblemError, match="point without a rotation"):
        with_point.relative_frame("tip", "point", base_kind="site")
