"""A quaternion that is not of unit length means the rotation that MuJoCo makes of it."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb

ROUNDING = 1e-11  # relative; a length error of 1e-6 was an error of 2e-6
STEP = 1e-6
MODEL = """
<mujoco><option gravity="1 -2 -9"/><worldbody>
  <site name="post" pos=".3 .1 1"/>
  <body name="trunk" pos="0 0 1" quat=".9 .1 .2 -.3"><freejoint name="root"/>
    <geom type="box" size=".1 .2 .3" pos=".1 .05 0" mass="2"/>
    <body name="leg" pos=".2 .1 0" euler="10 20 30" gravcomp=".4">
      <joint name="hip" type="ball" pos=".02 .03 -.01" stiffness="3" damping=".2"/>
      <geom type="box" size=".05 .1 .2" pos="0 .1 .2" mass="1"/><site name="toe" pos="0 .1 .4"/>
      <body name="foot" pos="0 .1 .4"><joint name="knee" axis="1 .2 0"/>
        <geom size=".1" pos=".1 0 0" mass=".5"/></body></body></body>
  </worldbody>
  <actuator><motor name="turn" joint="hip" gear="1 2 3"/>
    <position name="servo" joint="hip" gear=".3 -.2 .1" kp="4"/></actuator>
  <equality><connect body1="leg" body2="world" anchor=".1 .2 .3"/>
    <weld body1="foot" body2="trunk"/></equality>
</mujoco>"""
UNIT, BALL = 3, 7  # first rows of the two quaternions


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(MODEL)


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(MODEL)


def state(rng):
    """Return q with unit quaternions, and v."""
    q = rng.normal(size=12)
    for row in (UNIT, BALL):
        q[row : row + 4] /= np.linalg.norm(q[row : row + 4])
    return q, rng.normal(size=10)


def with_lengths(q, error):
    """Return q with its quaternions `1 + error` and `1 - error` long."""
    q = q.copy()
    q[UNIT : UNIT + 4] *= 1 + error
    q[BALL : BALL + 4] *= 1 - error
    return q


def of_mujoco(model, q, v, u):
    """Return MuJoCo's quantities at a state, by the name of the member."""
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.ctrl = q, v, u
    mujoco.mj_forward(model, data)
    M, q_next = np.zeros((10, 10)), q.copy()
    mujoco.mj_fullM(model, data, M)
    mujoco.mj_integratePos(model, q_next, v, 0.3)
    lifted = 0.4 * model.body_mass[2] * model.opt.gravity @ data.xipos[2]
    return {
        "mass_matrix": M,
        "bias_force": data.qfrc_bias,
        "passive_force": data.qfrc_passive,
        "actuator_force": data.qfrc_actuator,
        "kinetic_energy": data.energy[1],
        "potential_energy": data.energy[0] + lifted,
        "constraint": data.efc_pos[:9],
        "constraint_jacobian": data.efc_J[: data.nefc * 10].reshape(-1, 10)[:9],
        "integrate": q_next,
        "frame": np.column_stack([data.site_xpos[1], data.site_xmat[1].reshape(3, 3)]),
    }


def of_ours(system, q, v, u):
    values = {"q": q, "v": v, "u": u}
    found = {
        name: system.member(name)(*(values[key] for key in system.member(name).name_in()))
        for name in (
            *("mass_matrix", "bias_force", "passive_force", "actuator_force"),
            *("kinetic_energy", "potential_energy", "constraint", "constraint_jacobian"),
        )
    }
    p, R = system.frame("toe").pose(q)
    return found | {"integrate": system.integrate(q, 0.3 * v), "frame": ca.horzcat(p, R)}


@pytest.mark.parametrize("error", [0.0, 1e-6, 0.01, -0.3])
def test_all_quantities_are_those_of_mujoco_at_any_length(system, model, error):
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, v = state(rng)
        q, u = with_lengths(q, error), rng.normal(size=2)
        expected, found = of_mujoco(model, q, v, u), of_ours(system, q, v, u)
        for name, value in expected.items():
            ours = np.squeeze(np.array(found[name]))
            size = max(1.0, np.abs(value).max())
            np.testing.assert_allclose(ours, value, atol=ROUNDING * size, rtol=0, err_msg=name)


@pytest.mark.parametrize("error", [1e-6, 0.01])
def test_the_difference_of_two_configurations_does_not_depend_on_lengths(system, model, error):
    rng = np.random.default_rng(1)
    q0, q1 = (state(rng)[0] for _ in range(2))
    expected = np.zeros(10)
    mujoco.mj_differentiatePos(model, expected, 1.0, q0, q1)
    near = np.array(system.integrate(q0, 1e-3 * np.ones(10))).ravel()  # the series is used there
    for end, dv in ((q1, expected), (near, 1e-3 * np.ones(10))):
        found = system.difference(with_lengths(q0, error), with_lengths(end, -error))
        np.testing.assert_allclose(found.full().ravel(), dv, atol=1e-11)


@pytest.mark.parametrize("error", [0.0, 0.01])
def test_tangent_derivatives_are_those_of_mujoco_at_any_length(system, model, error):
    rng = np.random.default_rng(2)
    q, v = state(rng)
    q = with_lengths(q, error)
    symbol = ca.SX.sym("q", 12)
    slopes = {
        name: ca.Function(
            name,
            [symbol],
            [ca.jacobian(system.member(name)(symbol), symbol) @ system.velocity_map(symbol) @ v],
        )
        for name in ("constraint", "potential_energy")
    }
    ends = []
    for sign in (1, -1):
        moved = q.copy()
        mujoco.mj_integratePos(model, moved, v, sign * STEP)
        ends.append(of_mujoco(model, moved, v, np.zeros(2)))
    for name, slope in slopes.items():
        expected = (ends[0][name] - ends[1][name]) / (2 * STEP)
        found = np.squeeze(slope(q).full())
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7, err_msg=name)
    A = system.constraint_jacobian(q).full()
    np.testing.assert_allclose(slopes["constraint"](q).full().ravel(), A @ v, atol=1e-12)


def test_a_quaternion_of_length_zero_is_no_rotation_as_in_mujoco(system, model):
    q = np.zeros(12)
    expected, found = (
        of_mujoco(model, q, np.ones(10), np.zeros(2)),
        of_ours(system, q, np.ones(10), np.zeros(2)),
    )
    for name in ("mass_matrix", "bias_force", "potential_energy", "constraint", "frame"):
        np.testing.assert_allclose(
            np.squeeze(np.array(found[name])), expected[name], atol=1e-10, err_msg=name
        )
    com = np.zeros((3, 10))
    data = mujoco.MjData(model)
    data.qpos = q
    mujoco.mj_forward(model, data)
    mujoco.mj_jacSubtreeCom(model, data, com, 0)
    v, unit = np.random.default_rng(3).normal(size=10), q.copy()
    unit[[UNIT, BALL]] = 1.0
    p, J, bias = system.center_of_mass(q, v)
    np.testing.assert_allclose(J.full(), com, atol=1e-12)
    np.testing.assert_allclose(p.full().ravel(), data.subtree_com[0], atol=1e-12)
    np.testing.assert_allclose(bias, system.center_of_mass(unit, v)[2], atol=1e-12)
    for mine, other in zip(system.momentum(q, v), system.momentum(unit, v), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)
