"""The loads that actuators carry, judged by MuJoCo, and what is remembered, tick by tick."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.least_contact_forces import least_contact_forces
from support.legs_with_rods import SIDES, standing
from support.refusals import refused

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import InverseDynamicsQP, PostureTask, with_fallback
from mbcasadi.control.laws import computed_torque
from mbcasadi.control.safe_output.mechanism_hold import hold_of_mechanism
from mbcasadi.control.safe_output.safe_output import UNSEEN, SafeOutput
from mbcasadi.errors import ProblemError

UNCARRIED = 1e-4  # share of the load; the solver leaves 1e-6
SERVOS = """<mujoco><worldbody>
  <body><joint name="a" axis="0 1 0" stiffness="3"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
    <body pos=".4 0 0"><joint name="b" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body></body></worldbody>
  <actuator><position name="a" joint="a" gear="2" kp="300" kv="20" ctrlrange="-3 3"/>
    <general name="b" joint="b" gainprm="40" biastype="affine" biasprm="1 -5 -3" ctrlrange="-9 9"/>
  </actuator></mujoco>"""


def hold_command(system, q, v=None):
    limits = np.tile([-1e6, 1e6], (system.nu, 1))
    q0 = np.zeros(system.nq) if system.tree is None else system.tree.q0
    hold = hold_of_mechanism(system, limits, 1e-3, np.zeros(system.nu), q0)
    v = np.zeros(system.nv) if v is None else v
    return np.array(hold.command(q, v)).ravel()


@pytest.mark.parametrize("name", ["four_bar", "arm_gripper", "two_arm_carry"])
def test_a_held_mechanism_is_in_balance_in_mujoco(name):
    """At rest the smooth forces of MuJoCo do no work along what its constraints leave free."""
    system = mb.read_mjcf(models.path(name))
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    data = mujoco.MjData(model)
    load, own = np.split(hold_command(system, data.qpos), 2)
    assert_array_equal(own, 0)
    data.ctrl[:] = load
    mujoco.mj_forward(model, data)
    force = data.qfrc_actuator + data.qfrc_passive - data.qfrc_bias
    A = data.efc_J.reshape(-1, model.nv)[: data.ne]
    free = np.linalg.svd(A)[2][np.linalg.matrix_rank(A, 1e-6) :]
    weight = np.abs(data.qfrc_bias).max()
    assert np.abs(load).max() > 0.01 * weight
    assert np.abs(free @ force).max() < UNCARRIED * weight


def test_feet_do_not_press_against_each_other_in_a_hold_of_legs_with_rods():
    """They would by twice the weight, for rods whose forces were as small as may be."""
    system, q, feet = standing()
    expected = least_contact_forces(system, feet, q, np.zeros(system.nv))
    touching = mb.with_contacts(system, feet, q).with_mask()
    held = hold_command(touching, q)[: system.nu]
    law = InverseDynamicsQP(system, [PostureTask(weight=1e-3)], feet, period=2e-3)
    ref = law.reference_at(q)
    known = {"q": q, "v": np.zeros(system.nv), "mask": np.ones(len(law.mask_names)), "z": law.z0}
    out = law.function(**known, ref=np.full_like(ref, np.nan))
    assert out["status"] == 3
    rolls = [system.actuator_names.index(f"{side}_roll") for side in SIDES]
    for u in (held, np.array(out["u"]).ravel()):
        assert_allclose(u[rolls], expected[rolls], atol=0.02 * np.abs(expected).max())


def test_a_servo_holds_its_length_with_its_load_in_mujoco():
    system, model = mb.read_mjcf(SERVOS), mujoco.MjModel.from_xml_string(SERVOS)
    data = mujoco.MjData(model)
    data.qpos[:] = [0.3, -0.5]
    load, own = np.split(hold_command(system, data.qpos, np.array([1.0, -2.0])), 2)
    assert_allclose(own[0], 2 * 0.3)  # the length itself, whatever its speed
    data.ctrl[:] = load + own
    mujoco.mj_forward(model, data)
    assert_allclose(data.qacc, 0, atol=1e-9)


def test_the_damping_of_motors_is_a_deceleration_of_all_joints():
    path = models.path("two_arm_carry")
    system, model = mb.read_mjcf(path), mujoco.MjModel.from_xml_path(str(path))
    data, v = mujoco.MjData(model), np.zeros(model.nv)
    v[:6] = np.random.default_rng(0).standard_normal(6)
    _, own = np.split(hold_command(system, data.qpos, v), 2)
    mujoco.mj_forward(model, data)
    momentum = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, momentum, v)
    assert_allclose(own, -20.0 * momentum[:6], rtol=1e-6)  # 1/s


def safe_output(motors):
    limits = np.tile([[-2.0], [2.0]], (1, 1, 2))[0] * np.ones((2, 2))
    return SafeOutput(
        "safe", ("a", "b"), limits[0], limits[1], np.array(motors), np.array([0.1, 0.2, 0.3, 0.4]),
        period=5e-3,
    )  # fmt: skip


def ticks(safe, rows):
    """Return u of each tick (measured, solved, u, offered)."""
    size = safe.size
    s = [ca.SX.sym("z", size), ca.SX.sym("o", 4), ca.SX.sym("m"), ca.SX.sym("s"), ca.SX.sym("u", 2)]
    step = ca.Function("step", s, safe.step(*s)[1:])
    z, controls = safe.z0, []
    for measured, solved, u, offered in rows:
        out, z = step(z, offered, measured, solved, u)
        controls.append(np.array(out).ravel())
    return np.array(controls)


OFFER = np.array([0.5, 0.6, 0.7, 0.8])
NAN = np.full(4, np.nan)
NO = np.full(2, np.nan)


def test_before_any_measurement_the_authored_pose_is_held_then_the_first_measured_one():
    u = ticks(safe_output([0, 0]), [(0, 0, NO, NAN), (0, 0, NO, NAN), (1, 0, NO, OFFER)])
    assert_allclose(u, [[0.4, 0.6], [0.4, 0.6], [1.2, 1.4]])


def test_the_last_command_is_used_while_it_is_young_and_then_each_actuator_holds():
    rows = [(1, 1, [1.0, -1.5], OFFER)] + 4 * [(0, 0, NO, NAN)] + [(1, 1, [9.0, 0.0], OFFER)]
    u = ticks(safe_output([0, 1]), rows)
    assert_allclose(u[:3], 3 * [[1.0, -1.5]])  # two ticks of 5 ms
    fade = np.exp(-20 * 5e-3)
    assert_allclose(u[3:5], [[1.2, 0.6 + 0.8 * fade], [1.2, 0.6 + 0.8 * fade**2]])
    assert_allclose(u[5], [2.0, 0.0])  # solved again, within the limits


def test_a_servo_without_solution_stays_where_it_was_and_a_motor_follows_its_load():
    moved = OFFER + 0.1
    rows = [(1, 1, [0.0, 0.0], OFFER)] + 2 * [(1, 0, NO, OFFER)] + 2 * [(1, 0, NO, moved)]
    u = ticks(safe_output([0, 1]), rows)
    assert_allclose(u[3:], 2 * [[0.6 + 0.7, 0.7 + 0.9]])  # load + length, load + damping


@pytest.mark.parametrize("solved_before", [0, 1, 4, None])
def test_the_emergency_of_several_ticks_is_that_of_so_many_ticks_without_anything(solved_before):
    safe = safe_output([0, 1])
    begin = [] if solved_before is None else [(1, 1, [1.0, -1.5], OFFER)]
    begin += (solved_before or 0) * [(0, 0, NO, NAN)]
    emergency = safe.emergency(0).function
    s = [ca.SX.sym(n, k) for n, k in (("z", safe.size), ("o", 4), ("m", 1), ("s", 1), ("u", 2))]
    step, z = ca.Function("step", s, safe.step(*s)[1:]), safe.z0
    for measured, solved, u, offered in begin:
        z = step(z, offered, measured, solved, u)[1]
    for missed in range(1, 8):
        expected = ticks(safe, [*begin, *missed * [(0, 0, NO, NAN)]])[-1]
        assert_allclose(np.array(emergency(z, missed)[0]).ravel(), expected)
    once = emergency(emergency(z, 1)[1], 1)[0]  # its next state goes on by one tick
    assert_allclose(np.array(emergency(z, 2)[0]), np.array(once))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, -1e9, 0.7, UNSEEN])
def test_any_memory_gives_a_finite_command_within_limits(bad):
    safe = safe_output([0, 1])
    for place in range(safe.size):
        z = safe.z0.copy()
        z[place] = bad
        for measured in (0, 1):
            s = [ca.SX.sym("u", 2)]
            free, u, z_next = safe.step(ca.SX(z), ca.SX(OFFER), ca.SX(measured), ca.SX(0), s[0])
            values = ca.Function("f", s, [u, z_next])(NO)
            assert np.all(np.abs(np.array(values[0])) <= 2)
            assert np.all(np.isfinite(np.array(values[1])))
            del free


def test_a_law_takes_a_function_or_a_name_as_its_safe_output():
    system = mb.read_mjcf(SERVOS)
    law = computed_torque(system, PostureTask(kp=50.0))
    q, v, ref = (ca.SX.sym(name, size) for name, size in (("q", 2), ("v", 2), ("ref", 6)))
    own = with_fallback(law, ca.Function("own", [q, v, ref], [ref[:2]]))
    held, zero = with_fallback(law, "hold"), with_fallback(law, "zero")
    target = law.reference(posture_q=[0.4, 0.1])
    good, bad = np.array([0.3, -0.5]), np.array([np.nan, 0.0])
    model = mujoco.MjModel.from_xml_string(SERVOS)
    no_force = -model.actuator_biasprm[:, 0] / model.actuator_gainprm[:, 0]  # at length 0, at rest
    for kind, each in (("safe", law), ("own", own), ("hold", held), ("zero", zero)):
        u, z, status, *_ = each.function(good, np.zeros(2), target, each.controller.z0)
        assert_array_equal(u, law.function(good, np.zeros(2), target, [])[0])
        last, after = np.array(u), np.array(each.function(bad, np.zeros(2), target, z)[0])
        assert int(status) == 0
        expected = {"own": target[:2, None], "zero": no_force[:, None]}.get(kind, last)
        assert_allclose(after, expected)
    refused(ProblemError, "'safe', 'hold', 'zero'", lambda: with_fallback(law, "stop"))
    with pytest.raises(ProblemError, match=r"expected \(q\[2\], v\[2\], ref\[6\]\) -> \(u\[2\]\)"):
        with_fallback(law, ca.Function("own", [q], [q]))
