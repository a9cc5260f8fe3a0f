"""Derivatives of inverse dynamics: complex steps in NumPy, MuJoCo, laws and units."""

import casadi as ca
import mujoco
import newton_euler_reference as reference
import numpy as np
import pytest
from model_mechanisms import EVERY_JOINT, MECHANISMS, OWN_MODELS, tree_of
from support.corpora import ROBOT_NAMES, robot
from support.hard_cases import JOINTS, TENDONS
from support.random_models import random_mjcf

from mbcasadi import model
from mbcasadi.description import Actuator

ROUNDING = 1e-12  # relative to the largest entry of a block
DIFFERENCE_TOL = 1e-8  # rounding 1e-16 over steps of 1e-3, and their sixth power
OWN = {path.stem: path for path in sorted(OWN_MODELS.glob("*.xml"))}
SOURCES = {
    **MECHANISMS,
    **{name: JOINTS[name] for name in ("several joints on one body", "ball and free springs")},
    **{f"random {seed}": random_mjcf(seed) for seed in range(3)},
    **OWN,
}
MOST_OPERATIONS = {"men__unitree_go2__go2": 6_500, "men__unitree_g1__g1": 26_000}


def source_of(name):
    return robot(name) if name in ROBOT_NAMES else SOURCES[name]


def mujoco_model(source):
    text = isinstance(source, str)
    load = mujoco.MjModel.from_xml_string if text else mujoco.MjModel.from_xml_path
    return load(source if text else str(source))


def symbols(tree):
    return ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv), ca.SX.sym("a", tree.nv)


def function_of(tree, actuators=()):
    """Return (q, v, a) → (by_q, by_v)."""
    q, v, a = symbols(tree)
    outputs = model.inverse_dynamics_derivatives(tree, q, v, a, actuators)
    return ca.Function("derivatives", [q, v, a], outputs, {"cse": True})


def differentiated(tree, actuators=()):
    """Return the same by differentiating the expression of inverse dynamics."""
    q, v, a = symbols(tree)
    force = ca.cse(model.inverse_dynamics(tree, q, v, a, actuators))
    N = model.velocity_map(tree, q)
    outputs = [ca.jacobian(force, q) @ N, ca.jacobian(force, v)]
    return ca.Function("differentiated", [q, v, a], outputs)


def values(function, state):
    return [part.full() for part in function(*state)]


def state_of(tree, seed=7):
    rng = np.random.default_rng(seed)
    return *model.random_state(tree, rng), 3 * rng.standard_normal(tree.nv)


def assert_blocks_equal(found, expected, size=0.0, tolerance=ROUNDING):
    """Assert that blocks agree relative to their sizes, or to `size` where it is larger."""
    for name, one, two in zip(("q", "v"), found, expected, strict=True):
        scale = max(np.abs(two).max(), size)
        np.testing.assert_allclose(one, two, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("name", [*sorted(SOURCES), *ROBOT_NAMES])
@pytest.mark.every(3)
def test_derivatives_are_those_of_complex_steps_in_world_axes(name):
    m, tree = mujoco_model(source_of(name)), tree_of(source_of(name))
    m.opt.gravity[:] = tree.gravity
    q, v, a = state_of(tree)
    if m.ntendon:
        m.dof_armature[:] = 0  # constant in q and v
    force, *expected = reference.derivatives(m, q, v, a)
    found = values(function_of(tree), (q, v, a))
    # A block may vanish up to rounding: then it is as small as rounding of the forces.
    assert_blocks_equal(found, expected, size=np.abs(force).max())


@pytest.mark.parametrize("name", ["every_joint", "random 2"])
def test_the_reference_computes_the_forces_of_mujoco(name):
    m = mujoco_model(SOURCES[name])
    q, v, a = state_of(tree_of(SOURCES[name]))
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
    expected = np.zeros(m.nv)
    mujoco.mj_fwdPosition(m, data)
    mujoco.mj_fwdVelocity(m, data)
    mujoco.mj_rne(m, data, 1, expected)
    found = reference.inverse_dynamics(m, q, v, a) - m.dof_armature * a
    np.testing.assert_allclose(found.real, expected, rtol=0, atol=1e-12 * abs(expected).max())


@pytest.mark.parametrize("name", ["every_joint", "quadruped", "humanoid"])
def test_derivatives_are_those_of_mujoco_by_differences_of_sixth_order(name):
    m, tree = mujoco_model(SOURCES[name]), tree_of(SOURCES[name])
    q, v, a = state_of(tree)
    data = mujoco.MjData(m)
    columns = [by_differences(m, data, (q, v, a), k) for k in range(m.nv)]
    expected = [np.column_stack(block) for block in zip(*columns, strict=True)]
    found = values(function_of(tree), (q, v, a))
    assert_blocks_equal(found, expected, tolerance=DIFFERENCE_TOL)


def by_differences(m, data, state, k, step=1e-3):
    """Return column k of both blocks from `mj_rne` at six points."""
    q, v, a = state
    by_q, by_v = np.zeros(m.nv), np.zeros(m.nv)
    for i, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
        for sign in (1, -1):
            along = np.zeros(m.nv)
            along[k] = sign * i * step
            q_moved = q.copy()
            mujoco.mj_integratePos(m, q_moved, along, 1.0)
            by_q += sign * weight / step * rne(m, data, q_moved, v, a)
            by_v += sign * weight / step * rne(m, data, q, v + along, a)
    return by_q, by_v


def rne(m, data, q, v, a):
    out = np.zeros(m.nv)
    data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
    mujoco.mj_fwdPosition(m, data)
    mujoco.mj_fwdVelocity(m, data)
    mujoco.mj_rne(m, data, 1, out)
    return out


def test_armature_of_tendons_and_of_actuators_at_sites_counts():
    source = TENDONS["fixed tendons with spring, dead band, damper and armature"]
    tree = tree_of(source)
    state = state_of(tree)
    assert_blocks_equal(values(function_of(tree), state), values(differentiated(tree), state))
    tree = tree_of(EVERY_JOINT)
    frame = next(i for i, f in enumerate(tree.frames) if f.name == "on_arm")
    none = (0.0, 0.0, 0.0)
    actuators = (Actuator("rotor", "site", frame, np.arange(1.0, 7.0), none, none, armature=0.2),)
    state = state_of(tree)
    expected = values(differentiated(tree, actuators), state)
    without = values(function_of(tree), state)
    assert np.abs(expected[0] - without[0]).max() > 1e-3  # it matters
    assert_blocks_equal(values(function_of(tree, actuators), state), expected)


@pytest.mark.parametrize("length", [1e-3, 1e3])
def test_derivatives_scale_with_the_unit_of_length(length):
    """Lengths times s at equal masses and gravity over time: forces of hinges times s²."""
    source = """
    <mujoco><option gravity="0 0 {g}"/><worldbody>
      <body pos="0 0 {s}"><joint axis="0 1 .3"/>
        <inertial pos="{s} 0 .2{e}" mass="2" diaginertia="{i} {i} {i}"/>
        <body pos="{s} .2{e} 0"><joint axis="1 0 .2"/>
          <inertial pos="0 {s} .1{e}" mass="1" diaginertia="{i} {i} {i}"/>
        </body>
      </body></worldbody></mujoco>"""

    def of(s):
        power = f"e{round(np.log10(s))}"
        return tree_of(source.format(s=s, e=power, i=0.1 * s * s, g=-9.81 * s))

    state = state_of(of(1.0))
    expected = [length**2 * part for part in values(function_of(of(1.0)), state)]
    assert_blocks_equal(values(function_of(of(length)), state), expected)


@pytest.mark.parametrize("base", ["free", "planar"])
def test_a_base_far_from_the_origin_costs_no_digits(base):
    joints = "<freejoint/>" if base == "free" else PLANAR_BASE
    tree = tree_of(ON_A_BASE.format(joints=joints))
    q, v, a = state_of(tree)
    far = q.copy()
    far[: 3 if base == "free" else 2] += 1e3
    fast = v.copy()
    fast[: 3 if base == "free" else 2] += 1e2
    f = function_of(tree)
    assert_blocks_equal(values(f, (far, fast, a)), values(f, (q, v, a)), tolerance=1e-15)


PLANAR_BASE = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint/>'
ON_A_BASE = """
<mujoco><worldbody><body pos="0 0 1">{joints}<geom type="box" size=".1 .2 .3" pos=".1 .1 0"/>
  <body pos=".2 .1 0"><joint axis="1 2 3"/><geom type="box" size=".05 .1 .2" pos=".1 .1 .1"/>
    <body pos=".2 .1 0"><joint type="ball"/><geom type="box" size=".03 .01 .2" pos=".1 .1 .1"/>
    </body></body></body></worldbody></mujoco>"""


def test_velocities_enter_as_the_coriolis_matrix():
    """For hinges and slides `∂h/∂v = 2 C`."""
    tree = tree_of(OWN["bricard"])
    q, v, a = state_of(tree)
    q_, v_, _ = symbols(tree)
    C = ca.Function("C", [q_, v_], [model.coriolis_matrix(tree, q_, v_)])(q, v).full()
    _, by_v = values(function_of(tree), (q, v, a))
    np.testing.assert_allclose(by_v, 2 * C, rtol=0, atol=1e-13 * abs(C).max())


@pytest.mark.parametrize("name", sorted(MOST_OPERATIONS))
def test_operations_stay_few(name):
    assert function_of(tree_of(robot(name))).n_instructions() < MOST_OPERATIONS[name]
