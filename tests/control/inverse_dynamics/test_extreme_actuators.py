"""Actuators with large controls, unlike gears, no rows, limits that contradict, or no equation."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.codegen import export_c
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.description.status import OUTPUTS, Status
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf.compat import VERSION
from mbcasadi.mpc import optimal_control_problem
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.system import read_mjcf

LENGTH, MASS, GRAVITY = 40.0, 2e5, 9.81  # m, kg, m/s²: the jib of a large crane
UNITS = {"m, kg": (1.0, 1.0), "mm, g": (1e3, 1e3), "um, mg": (1e6, 1e6)}
SAME = 1e-6  # the bias of `torque_weight`, 1e-7, and of the kp of the task


@pytest.mark.parametrize("units", list(UNITS))
@pytest.mark.parametrize("limited", [True, False])
def test_a_control_beyond_1e12_is_the_actuator_force_that_was_found(units, limited):
    m, kg = UNITS[units]
    system = mb.read_mjcf(
        f'<mujoco><compiler angle="radian" boundmass="0"/><option gravity="0 0 {-GRAVITY * m}"/>'
        f'<worldbody><body><joint name="jib" axis="0 1 0"/>'
        f'<inertial pos="{LENGTH * m} 0 0" mass="{MASS * kg}" diaginertia="{kg * m**2} {kg * m**2} '
        f'{kg * m**2}"/></body></worldbody><actuator><motor joint="jib"/></actuator></mujoco>'
    )
    weight = MASS * GRAVITY * LENGTH * kg * m**2  # by hand: the torque that holds the jib level
    limits = [[-3 * weight, 3 * weight]] if limited else None
    controller = InverseDynamicsQP(system, [PostureTask(kp=1.0)], ctrl_limits=limits)
    for angle in (0.0, 0.4):
        solution = controller.solve([angle], [0.0])
        assert solution.solved
        expected = -weight * np.cos(angle)
        assert_allclose(solution.u, expected, rtol=SAME)
        assert_allclose(solution.u, solution.p, rtol=1e-12)


KP, AWAY, FORCE = 100.0, 1e-3, 0.05  # 1/s², m, N: the tasks ask for 0.1 N on each of two masses
EQUAL = 1e-6


@pytest.mark.parametrize("gear", [1e-9, 1e-5, 1.0, 1e5, 1e9])
@pytest.mark.parametrize("limited", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.every(3)
def test_each_motor_gives_what_its_task_asks_for_within_its_limits(gear, limited):
    bodies = "".join(
        f'<body><joint name="{name}" type="slide" axis="1 0 0"/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
        for name in "ab"
    )
    system = mb.read_mjcf(
        f'<mujoco><option gravity="0 0 0"/><worldbody>{bodies}</worldbody><actuator>'
        f'<motor joint="a"/><motor joint="b" gear="{gear!r}"/></actuator></mujoco>'
    )
    force = np.where(limited, FORCE, 10 * FORCE)
    limits = (force / [1.0, gear])[:, None] * [-1.0, 1.0]
    controller = InverseDynamicsQP(system, [PostureTask(kp=KP)], ctrl_limits=limits)
    for signs in ([1, 1], [1, -1]):
        ref = controller.reference_at(np.zeros(2))
        ref[controller.reference_slices["posture.q"]] = AWAY * np.array(signs)
        solution = controller.solve(np.zeros(2), np.zeros(2), ref)
        expected = np.array(signs) * np.minimum(KP * AWAY, force)  # N, by hand
        assert solution.status == 0, solution.explain()
        assert_allclose(solution.u * [1.0, gear], expected, rtol=EQUAL)
        assert_allclose(solution.a, expected, rtol=EQUAL)


ARM = """
<mujoco><worldbody>
    <body><joint name="first" axis="0 1 0"/><geom size=".1" mass="1" pos="0 0 .3"/>
      <body pos="0 0 .5"><joint name="second" axis="0 1 0"/><geom size=".1" mass="2" pos="0 0 .3"/>
      </body></body></worldbody>
  <actuator><motor joint="first"/><motor joint="second"/></actuator></mujoco>
"""
KP_OF_ARM, KD = 100.0, 20.0


@pytest.mark.parametrize("levels", [[], [["posture"]]])
@pytest.mark.every(2)
def test_a_law_without_rows_is_exported_and_gives_the_torques_of_mujoco(tmp_path, levels):
    tasks = [PostureTask(kp=KP_OF_ARM, kd=KD)]
    law = InverseDynamicsQP(read_mjcf(ARM), tasks, period=0.002, torque_weight=1e-9, levels=levels)
    assert law.row_names == ()
    exported = export_c(law, tmp_path / "law").load()
    model, rng = mujoco.MjModel.from_xml_string(ARM), np.random.default_rng(5)
    data, ref = mujoco.MjData(model), law.reference_at([0.3, -0.2])
    for _ in range(20):
        data.qpos, data.qvel = rng.uniform(-1, 1, (2, 2))
        data.qacc = KP_OF_ARM * (np.array([0.3, -0.2]) - data.qpos) - KD * data.qvel
        mujoco.mj_inverse(model, data)
        for call in (law.function, exported):
            u, _, status, *_ = call(data.qpos, data.qvel, ref, [], law.z0)
            assert status == Status.SOLVED
            assert_allclose(u.full().ravel(), data.qfrc_inverse, rtol=1e-6, atol=1e-6)
    u, _, status, *_ = exported([np.nan, 0], [0, 0], ref, [], law.z0)
    assert status == Status.BAD_INPUT


WORDS = r"actuator '\w+': its control commands forces from .* to .*limited to .*common part"


def mass():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    return mb.from_lagrangian(q, v, kinetic=v**2 / 2, B=[[1]], ctrl_range=[[-1, 1]], name="mass")


def motor(gear=1.0, force="", kind="motor", ctrl="-1 1"):
    given = f'forcelimited="true" forcerange="{force}"' if force else ""
    return f"""<mujoco model="slider"><option gravity="0 0 0"/><worldbody><body>
      <joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body></worldbody>
      <actuator><{kind} name="push" joint="x" gear="{gear}" ctrllimited="true" ctrlrange="{ctrl}"
      {given}/></actuator></mujoco>"""


@pytest.mark.parametrize("limits", [[[2, 3]], [[-3, -1.01]]])
def test_a_force_that_no_control_commands_is_refused_when_built(limits):
    for system in (mass(), mb.read_mjcf(motor())):
        with pytest.raises(err.ProblemError, match=WORDS):
            InverseDynamicsQP(system, [PostureTask()], force_limits=limits)


def test_ranges_of_a_model_that_contradict_each_other_are_refused_by_control_and_mpc():
    system = mb.read_mjcf(motor(force="2 3"))
    refused(err.ProblemError, WORDS, lambda: InverseDynamicsQP(system, [PostureTask()]))
    refused(err.ProblemError, WORDS, lambda: optimal_control_problem(system, 3, 0.1, [Cost(R=1.0)]))


@pytest.mark.parametrize("limits", [[[1, 3]], [[-3, 0.5]], [[-np.inf, -1]]])
def test_limits_with_a_common_part_are_kept(limits):
    for system in (mass(), mb.read_mjcf(motor())):
        law = InverseDynamicsQP(system, [PostureTask()], force_limits=limits)
        assert np.all(law.controller.u_min <= law.controller.u_max)
        assert law.controller.u_min[0] == max(-1, limits[0][0])
        assert law.controller.u_max[0] == min(1, limits[0][1])


def servo_law(**options):
    system = mb.read_mjcf(motor(kind="position"))
    return system, InverseDynamicsQP(system, [PostureTask(kp=1.0, kd=1.0)], **options)


def solve_at(law, place):
    ref = law.reference_at(np.array([place]))
    values = law.function(place, 0.0, ref, [], law.z0)
    return dict(zip(OUTPUTS, (np.array(part).ravel() for part in values), strict=True))


def test_where_the_state_decides_a_given_limit_is_infeasible_and_the_own_one_clips():
    """A servo of kp = 1 N/m commands -3 N at least and -1 N at most, 2 m from its zero."""
    system, law = servo_law(force_limits=[[-0.5, 0.5]])
    near, far = solve_at(law, 0.0), solve_at(law, 2.0)
    assert near["status"] == Status.SOLVED
    assert far["status"] == Status.INFEASIBLE
    own = mb.read_mjcf(motor(kind="position", force="-0.5 0.5"))
    clipped = InverseDynamicsQP(own, [PostureTask(kp=1.0, kd=1.0)])
    out = solve_at(clipped, 2.0)
    assert out["status"] == Status.SOLVED
    model = mujoco.MjModel.from_xml_string(motor(kind="position", force="-0.5 0.5"))
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = 2.0, out["u"]
    mujoco.mj_forward(model, data)
    assert data.actuator_force[0] == -0.5  # which the actuator exerts, whatever the control
    assert abs(out["u"][0]) <= 1
    assert system.nu == 1


HEAD = """<mujoco><option gravity="0 0 0" timestep=".01"/><worldbody>
<site name="anchor" pos="0 0 1"/>
<body><joint name="hinge" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 1 0 0"/>
<site name="tip" pos="1 0 0"/><site name="crank" pos=".3 0 0"/></body></worldbody>"""
CASES = {
    "slew rate": '<dcmotor name="odd" joint="hinge" resistance="2" motorconst=".1" input="pos" '
    'controller="3 0 .1 1 0 0"/>',
    "thermal": '<dcmotor name="odd" joint="hinge" resistance="2" motorconst=".5" '
    'thermal="2 3 0 .004 25 22"/>',
}
SERVO_MOTORS = pytest.mark.skipif(
    VERSION < (4, 0), reason="DC motors of MuJoCo before 4.0 have no position input"
)


def model_of(case: str) -> str:
    motor = '<motor name="motor" joint="hinge" ctrlrange="-100 100" ctrllimited="true"/>'
    return f"{HEAD}<actuator>{motor}{CASES[case]}</actuator></mujoco>"


def force_of_the_odd_actuator(xml: str) -> float:
    """Return the largest generalised force in a short run with the odd actuator commanded."""
    model = mujoco.MjModel.from_xml_string(xml)
    data, largest = mujoco.MjData(model), 0.0
    data.qpos[:], data.qvel[:] = 0.4, 0.3
    for _ in range(20):
        data.ctrl[:] = np.array([0.0, 1.0])[: model.nu]
        mujoco.mj_step(model, data)
        largest = max(largest, float(np.abs(data.qfrc_actuator).max()))
    return largest


@pytest.mark.parametrize(
    "case", [pytest.param("slew rate", marks=SERVO_MOTORS), pytest.param("thermal")]
)
def test_an_actuator_without_an_equation_gives_no_controller(case):
    xml = model_of(case)
    assert force_of_the_odd_actuator(xml) > 1e-3  # ignoring it would be wrong
    system = mb.read_mjcf(xml)
    with pytest.raises(UnsupportedFeatureError, match="'odd'"):
        mb.control.InverseDynamicsQP(system, [mb.control.PostureTask()])


@SERVO_MOTORS
def test_the_numbers_of_a_refused_actuator_are_unknown_but_its_ranges():
    system = mb.read_mjcf(model_of("slew rate"))
    odd = system.actuators[1]
    assert np.all(np.isnan([*odd.gain, *odd.bias, *odd.gear]))
    assert system.limits.ctrl[0].tolist() == [-100.0, 100.0]
