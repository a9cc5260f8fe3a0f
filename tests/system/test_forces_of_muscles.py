"""Muscles as unknown forces, linear models with activations, and what does not count them."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import InverseDynamicsQP, LawOptions, PostureTask
from mbcasadi.control.regulators import (
    descriptor_form,
    equilibrium,
    feedback,
    linearize,
    lqr_gain,
)
from mbcasadi.description.mocap import mocap_bodies, mocap_equalities
from mbcasadi.errors import ProblemError, UnsupportedFeatureError
from mbcasadi.estimation import kalman
from mbcasadi.mjcf.compat import VERSION
from mbcasadi.system.actuator_kinds import actuator_kinds
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import require_ranges

ROUNDING = 1e-10
DIFFERENCE = 1e-6
PERIOD = 0.001
STEP = 1e-6
STATES = 10


@pytest.fixture(scope="module")
def arm():
    return mb.read_mjcf(mb.models.path("muscle_arm"))


@pytest.fixture(scope="module")
def plant():
    model = mujoco.MjModel.from_xml_path(str(mb.models.path("muscle_arm")))
    return model, mujoco.MjData(model)


@pytest.fixture(scope="module")
def linear(arm):
    rest = equilibrium(arm, arm.tree.keyframes["reach"])
    inner = rest.control_directions
    u = rest.u + inner @ (inner.T @ np.full(arm.nu, 0.15))
    return linearize(arm, rest.q, u=u, act=u)


def states(model):
    rng = np.random.default_rng(1)
    for _ in range(STATES):
        q, v = rng.uniform(0.0, 2.0, model.nq), rng.normal(size=model.nv)
        yield q, v, rng.uniform(0.1, 0.9, model.na), rng.uniform(0.0, 1.0, model.nu)


def test_forces_after_a_period_are_mujocos_with_the_activation_of_its_next_step(arm, plant):
    model, data = plant
    symbols = [ca.SX.sym(n, k) for n, k in (("q", 2), ("v", 2), ("act", 4), ("u", 4))]
    q, v, act, u = symbols
    actuators = actuator_model(arm, require_ranges(arm, None, None), PERIOD, q, v, act)
    p = actuators.forces(u)
    at = ca.Function("p", symbols, [p, actuators.controls(p), actuators.lower, actuators.upper])
    model.actuator_actearly[:] = 1
    for state in states(model):
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = state
        mujoco.mj_forward(model, data)
        force, control, lower, upper = (x.full().ravel() for x in at(*state))
        np.testing.assert_allclose(force, data.actuator_force, atol=ROUNDING * abs(force).max())
        np.testing.assert_allclose(control, state[3], atol=1e-9)  # halvings of an interval
        assert np.all((lower <= force + ROUNDING) & (force <= upper + ROUNDING))
        assert np.all(upper <= ROUNDING)  # muscles only pull
    model.actuator_actearly[:] = 0


def test_the_linear_model_of_muscles_is_that_of_mujocos_differences(arm, plant, linear):
    model, data = plant

    def rate(x, du):
        data.qpos[:], data.qvel[:] = linear.state(x)
        data.act[:], data.ctrl[:] = linear.activation(x), linear.u + du
        mujoco.mj_forward(model, data)
        return np.concatenate([data.qvel, data.qacc, data.act_dot])

    nx, nu = linear.nx, linear.nu
    assert nx == 2 * arm.nv + arm.na
    columns = []
    for direction in np.eye(nx + nu):
        step = STEP * direction
        columns.append((rate(step[:nx], step[nx:]) - rate(-step[:nx], -step[nx:])) / (2 * STEP))
    to_x = np.hstack([linear.from_dq, linear.from_dv, linear.from_dact])
    expected = to_x @ np.array(columns).T
    found = np.hstack([linear.dfdx, linear.dfdu])
    np.testing.assert_allclose(found, expected, atol=DIFFERENCE * abs(expected).max())
    assert abs(to_x @ rate(np.zeros(nx), np.zeros(nu))).max() < ROUNDING


def test_the_law_of_a_muscle_arm_is_the_same_in_c(arm, linear, tmp_path):
    weight = np.r_[300, 300, 1, 1, 0.01 * np.ones(4)]
    gain = lqr_gain(linear, weight, np.ones(4), period=PERIOD).K
    law = feedback(linear, gain, options=LawOptions(period=PERIOD))
    assert "act" in law.function.name_in()
    tick = export_c(law, tmp_path / "c").load()
    q, v, act, _ = next(states(mujoco.MjModel.from_xml_path(str(mb.models.path("muscle_arm")))))
    inputs = {"q": linear.q + 0.01 * q, "v": 0.01 * v, "act": linear.act + 0.01 * act, "z": law.z0}
    expected, found = (f(**inputs)["u"].full().ravel() for f in (law.function, tick))
    x = linear.coordinates(inputs["q"], inputs["v"], inputs["act"])
    np.testing.assert_allclose(expected, np.clip(linear.u - gain @ x, 0, 1), atol=1e-9)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_inverse_dynamics_reaches_a_pose_with_muscles_in_mujoco(arm, plant):
    model, data = plant
    controller = InverseDynamicsQP(arm, [PostureTask(kp=100.0)], period=PERIOD)
    mujoco.mj_resetData(model, data)
    data.qpos[:], z = (0.1, 0.8), controller.z0
    goal = arm.tree.keyframes["reach"]
    ref = controller.reference_at(goal)
    for _ in range(1000):
        out = controller.function(q=data.qpos, v=data.qvel, act=data.act, ref=ref, z=z)
        data.ctrl[:], z = out["u"].full().ravel(), out["z_next"]
        assert int(out["status"]) == 0
        mujoco.mj_step(model, data)
    assert abs(data.qpos - goal).max() < 1e-3


def test_what_does_not_count_activations_says_so(arm, linear):
    with pytest.raises(ProblemError, match="4 activation states, which a Kalman filter"):
        kalman(linear, ca.Function("y", [ca.SX.sym("q", 2)], [0], ["q"], ["y"]), 1.0, 1.0)
    with pytest.raises(ProblemError, match="activation states, which the form with multipliers"):
        descriptor_form(linear)
    with pytest.raises(ProblemError, match=r"setpoint that moves \(track_reference\)"):
        feedback(linear, np.zeros((4, 8)), track_reference=True)


def test_an_equilibrium_says_with_what_activation_it_rests(arm):
    rest = equilibrium(arm, arm.tree.keyframes["reach"])
    assert abs(rest.residual).max() < ROUNDING
    np.testing.assert_array_equal(rest.act, rest.u)
    force = arm.actuator_force(rest.q, np.zeros(2), rest.u, rest.act)
    np.testing.assert_allclose(force, arm.gravity_force(rest.q), atol=ROUNDING)


MOTORS = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
<actuator><motor name="m" joint="j"/>{}</actuator></mujoco>"""


@pytest.mark.skipif(VERSION < (4, 0), reason="inputs of motors are those of MuJoCo 4")
def test_a_motor_whose_force_is_no_gain_times_a_control_is_refused_as_an_unknown():
    warm = (
        '<dcmotor name="hot" joint="j" resistance="2" motorconst=".1" thermal="2 3 0 .004 25 22"/>'
    )
    system = mb.read_mjcf(MOTORS.format(warm))
    q, v, act = (ca.SX.sym(n, 1) for n in ("q", "v", "act"))
    with pytest.raises(UnsupportedFeatureError, match="actuator 'hot': its force is not gain"):
        actuator_model(system, require_ranges(system, None, None), PERIOD, q, v, act)


def test_kinds_have_the_words_of_mjcf():
    more = (
        '<muscle name="u" joint="j" lengthrange="-1 1"/>'
        '<adhesion name="a" body="b" ctrlrange="0 1"/>'
        '<dcmotor name="d" joint="j" resistance="2" motorconst=".1"/>'
    )
    text = MOTORS.format(more).replace("<body>", '<body name="b">')
    kinds = actuator_kinds(mb.read_mjcf(text))
    assert kinds == {"motor": ("m",), "muscle": ("u",), "dcmotor": ("d",), "adhesion": ("a",)}


def test_mocap_bodies_and_what_hangs_on_them_are_listed():
    text = """<mujoco><worldbody>
    <body name="a"><freejoint/><geom size=".1"/></body>
    <body name="hook" mocap="true" pos=".4 0 0"><body name="tip" pos=".1 0 0"/></body>
    <body name="idle" mocap="true"/></worldbody><equality>
    <weld name="drag" body1="a" body2="tip"/><connect name="pin" body1="a" anchor="0 0 0"/>
    </equality></mujoco>"""
    system = mb.read_mjcf(text)
    assert [body.name for body in mocap_bodies(system.tree)] == ["hook", "idle"]
    assert mocap_equalities(system.tree, system.equalities) == {"drag": ("hook",)}
    features = [item.feature for item in system.coverage.by("used")]
    assert "equality 'drag': to a mocap body" in features
