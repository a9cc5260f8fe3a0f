"""Stiff servos: the acceleration that the QP means is the one that the plant has."""

import re

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from servo_arms import INTEGRATORS, arm, mujoco_tick

from mbcasadi import read_mjcf
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.control.inverse_dynamics.parts import servo_dynamics
from mbcasadi.control.inverse_dynamics.parts.servo_map import Coordinate, tick_map
from mbcasadi.errors import ProblemError

ROUNDING = 1e-8
"""Relative error of MuJoCo's differences of velocities over one tick, with a margin."""

STATES = 4


def states():
    for seed in range(STATES):
        rng = np.random.default_rng(seed)
        yield rng.uniform(-1, 1, 3), rng.uniform(-2, 2, 3), rng.uniform(-1, 1, 9)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("damping", [0.0, 2.0])
@pytest.mark.parametrize("steps", [1, 4])
def test_map_of_one_joint_is_mujocos_over_one_step_and_four(integrator, damping, steps):
    inertia, kp, kd, step, load = 0.1, 500.0, 30.0, 0.001, 2.0
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option gravity="0 0 0" timestep="{step}" integrator="{integrator}"/><worldbody>'
        f'<body><joint name="j" axis="0 0 1" damping="{damping}" armature="{inertia}"/>'
        '<geom size="0.001" mass="1e-8"/></body></worldbody><actuator>'
        f'<position joint="j" kp="{kp}" kv="{kd}"/></actuator></mujoco>'
    )
    data = mujoco.MjData(model)
    rate = data.qvel[0] = 0.7
    data.ctrl[0], data.qfrc_applied[0] = 0.3, load
    mujoco.mj_forward(model, data)
    start = data.actuator_force[0]
    for _ in range(steps):
        mujoco.mj_step(model, data)
    a = (data.qvel[0] - rate) / (steps * step)
    mapped = tick_map(Coordinate(inertia, kp, kd, damping), integrator.lower(), step, steps * step)
    mean = start + mapped.drift * rate - mapped.added_inertia * a
    assert inertia * a == pytest.approx(mean + load - damping * rate, rel=ROUNDING)
    length = mapped.length_by_acceleration * a + mapped.length_by_rate * rate
    assert data.qpos[0] == pytest.approx(length, rel=ROUNDING)


@pytest.mark.parametrize("inertia", [1.0, 0.1, 1e-3])
def test_continuous_map_is_the_solution_of_the_differential_equation(inertia):
    kp, kd, damping, period, load, start, rate = 2000.0, 200.0, 1.0, 0.004, -3.0, 11.0, 0.6

    def motion(_, x):
        force = start - kp * x[0] - kd * (x[1] - rate) + load - damping * x[1]
        return [x[1], force / inertia]

    solution = solve_ivp(motion, (0, period), [0.0, rate], "Radau", rtol=1e-11, atol=1e-13)
    length, end = solution.y[:, -1]
    a = (end - rate) / period
    mapped = tick_map(Coordinate(inertia, kp, kd, damping), "continuous", period, period)
    mean = start + mapped.drift * rate - mapped.added_inertia * a
    assert inertia * a == pytest.approx(mean + load - damping * rate, rel=1e-6)
    expected = mapped.length_by_acceleration * a + mapped.length_by_rate * rate
    assert length == pytest.approx(expected, rel=1e-6)
    nearby = solve_ivp(
        lambda t, x: motion(t, x), (0, period), [1e-3, rate + 0.1], "Radau", rtol=1e-11, atol=1e-13
    )
    changed = (nearby.y[1, -1] - rate - 0.1) / period
    by_start = -mapped.by_length * 1e-3 - mapped.by_rate * 0.1
    assert changed - a == pytest.approx(by_start, rel=1e-5)


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_one_implicit_step_a_tick_has_exactly_the_acceleration_of_the_qp(integrator):
    xml = arm(integrator)
    controller, before = law_of(xml), law_of(xml, weight=1e-7, servo_plant="start")
    # "implicit" also differentiates the Coriolis force, of the size h v² of a few per mille.
    tolerance = ROUNDING if integrator == "implicitfast" else 2e-2
    for q, v, ref in states():
        solution, old = controller.solve(q, v, ref), before.solve(q, v, ref)
        assert solution.status == 0
        tick = mujoco_tick(xml, q, v, solution.u, 1)
        assert_allclose(tick.start, solution.p, rtol=1e-9, atol=1e-9)
        assert_allclose(tick.acceleration, solution.a, atol=tolerance * np.abs(solution.a).max())
        missed = mujoco_tick(xml, q, v, old.u, 1).acceleration - old.a
        assert np.abs(missed).max() > 0.1 * np.abs(old.a).max()


MOVING_MOMENTS = """
<mujoco><option timestep="0.002" integrator="implicitfast"/><default><joint armature="0.02"/>
</default><worldbody><site name="base"/><body><joint name="a" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="2"/><body pos="0.4 0 0">
<joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1"/>
<site name="tip" pos="0.3 0 0"/></body></body></worldbody><actuator>
<position name="x" site="tip" refsite="base" kp="800" kv="300" gear="1 0 0 0 0 0"/>
<position name="z" site="tip" refsite="base" kp="800" kv="300" gear="0 0 1 0 0 0"/>
</actuator></mujoco>
"""


def test_servos_whose_moments_turn_with_the_pose_are_exact_in_one_implicit_step():
    controller = law_of(MOVING_MOMENTS)
    for q, v, ref in states():
        q, v, ref = np.array([q[0], 1.0 + 0.5 * q[1]]), 1.5 * v[:2], ref[:6]
        solution = controller.solve(q, v, ref)
        tick = mujoco_tick(MOVING_MOMENTS, q, v, solution.u, 1)
        assert_allclose(tick.start, solution.p, rtol=1e-9, atol=1e-9)
        assert_allclose(tick.acceleration, solution.a, atol=ROUNDING * np.abs(solution.a).max())


@pytest.mark.parametrize("integrator", [i for i in INTEGRATORS if i != "implicit"])
def test_several_steps_a_tick_miss_only_what_the_coupling_of_the_joints_makes(integrator):
    # Two servos on one light joint: the coupling is as strong as the inertias themselves.
    armature = 0.2 if integrator in ("Euler", "RK4") else 0.02
    xml = arm(integrator, 0.0005, kp=200.0, kv=20.0, armature=armature)
    misses = {plant: [] for plant in ("model", "start")}
    for plant, worst in misses.items():
        controller = law_of(xml, servo_plant=plant)
        for q, v, ref in states():
            solution = controller.solve(q, v, ref)
            miss = mujoco_tick(xml, q, v, solution.u, 4).acceleration - solution.a
            worst.append(np.abs(miss).max() / np.abs(solution.a).max())
    assert max(misses["model"]) < 0.15
    assert max(misses["start"]) > 2 * max(misses["model"])


def test_one_explicit_step_a_tick_needs_no_map():
    xml = arm("Euler", 0.0005, kv=20.0)
    controller = law_of(xml, 0.0005)
    for q, v, ref in states():
        solution = controller.solve(q, v, ref)
        tick = mujoco_tick(xml, q, v, solution.u, 1)
        assert_allclose(tick.acceleration, solution.a, atol=ROUNDING * np.abs(solution.a).max())


def worst_force_error(delay: int) -> float:
    """Return the largest error of the force at the start of a tick, in a plant one tick late."""
    xml = arm()
    controller, errors = law_of(xml, delay=delay), []
    assert controller.controller.delay == delay
    for q, v, ref in states():
        v = 0.3 * v
        solution = controller.solve(q, v, ref)
        for _ in range(10):
            late = controller.solve(q, v, ref, z=solution.z_next)
            tick = mujoco_tick(xml, q, v, solution.u, 1)
            errors.append(np.abs(tick.start - solution.p).max() / np.abs(solution.p).max())
            q, v, solution = tick.q, tick.v, late
    return float(max(errors[2:]))


def test_a_delayed_control_meets_the_servos_where_they_were_predicted():
    # Forces of gravity and of inertia change a little during the delay, nothing else does.
    assert worst_force_error(1) < 0.08
    assert worst_force_error(0) > 0.3


@pytest.mark.parametrize("content", [np.nan, np.inf, 1e300])
def test_a_delayed_controller_accepts_any_state(content):
    controller = InverseDynamicsQP(read_mjcf(arm()), [PostureTask()], period=0.002, delay=2)
    z = np.full_like(controller.z0, content)
    q, v = np.array([0.1, 0.2, -0.3]), np.array([0.2, 0.1, -0.1])
    solution = controller.solve(q, v, z=z)
    assert solution.status == 0
    assert_allclose(solution.u, controller.solve(q, v).u, atol=1e-12)
    assert np.all(np.isfinite(solution.z_next))


@pytest.mark.parametrize("coupled", ["position", "motor"])
def test_forces_stay_in_their_range_at_both_ends_of_a_tick(coupled):
    ranged, free_arm = (
        re.sub('<position( name="coupled" tendon="coupled").*?/>', rf'<{coupled}\1 gear="2"/>', xml)
        for xml in (arm(force_range='forcerange="-12 12"'), arm())
    )
    controller, unlimited = (law_of(xml, kp=2000.0, weight=1e-7) for xml in (ranged, free_arm))
    assert any(name.endswith("at the end of the tick") for name in controller.row_names)
    exceeded = 0
    for q, v, ref in states():
        v = 0.3 * v
        solution = controller.solve(q, v, ref)
        assert solution.status == 0
        # In a plant without ranges, so that nothing is clipped.
        tick = mujoco_tick(free_arm, q, v, solution.u, 1)
        for force in (tick.start, tick.end):
            assert np.all(np.abs(force[[0, 2]]) <= 12 * (1 + 1e-6))
        free = mujoco_tick(free_arm, q, v, unlimited.solve(q, v, ref).u, 1)
        exceeded += np.abs(free.end[[0, 2]]).max() > 12
    assert exceeded == STATES


def test_a_range_that_nothing_can_keep_leaves_a_solution():
    controller = InverseDynamicsQP(
        read_mjcf(arm(force_range='forcerange="-12 12"')), [PostureTask()], period=0.002
    )
    for scale in (1.0, 10.0, 100.0):
        for q, v, ref in states():
            assert controller.solve(q, scale * v, ref).status == 0


HINGE = """
<mujoco><option timestep="0.001" integrator="{integrator}" gravity="0 0 0"/><worldbody><body>
<joint name="wrist" axis="0 0 1" armature="{inertia}"/><geom size="0.001" mass="1e-6"/></body>
</worldbody><actuator><position name="wrist" joint="wrist" kp="500" kv="60"/></actuator></mujoco>
"""


@pytest.mark.parametrize(
    ("integrator", "inertia", "options", "message"),
    [
        ("Euler", 0.035, {"period": 0.002}, r"'wrist': its loop.* unstable.* kd = 60 on 0.7 times"),
        ("RK4", 0.025, {"period": 0.002}, "unstable"),
        ("Euler", 0.02, {"period": 0.002}, "opposite acceleration"),
        (
            "implicitfast",
            1e-3,
            {"servo_plant": "start", "delay": 1},
            'another servo_plant than "st',
        ),
    ],
)
def test_an_unstable_loop_is_refused_when_the_controller_is_built(
    integrator, inertia, options, message
):
    xml = HINGE.format(integrator=integrator, inertia=inertia)
    with pytest.raises(ProblemError, match=message):
        InverseDynamicsQP(read_mjcf(xml), [PostureTask()], **options)
    InverseDynamicsQP(read_mjcf(xml), [PostureTask()], servo_plant="continuous", delay=1)


@pytest.mark.parametrize(("integrator", "inertia"), [("Euler", 0.02), ("implicitfast", 1e-3)])
@pytest.mark.parametrize("share", [0.7, 1.3])
@pytest.mark.every(4)
def test_what_is_not_refused_is_stable_in_mujoco_with_a_wrong_inertia(integrator, inertia, share):
    controller = InverseDynamicsQP(
        read_mjcf(HINGE.format(integrator=integrator, inertia=inertia)), [PostureTask()]
    )
    q, v, plant = (
        np.array([0.3]),
        np.zeros(1),
        HINGE.format(integrator=integrator, inertia=share * inertia),
    )
    ref = controller.reference_at(np.zeros(1))
    for _ in range(600):
        u = controller.function(q=q, v=v, ref=ref, z=controller.z0)["u"].full().ravel()
        tick = mujoco_tick(plant, q, v, u, 1)
        q, v = tick.q, tick.v
    assert np.abs(q).max() < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"servo_plant": "verlet"}, "servo_plant"),
        ({"servo_timestep": 0.003, "period": 0.004}, "divisor of the period"),
        ({"servo_plant": "continuous", "servo_timestep": 0.001}, "no time step"),
        ({"delay": -1}, "delay"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ProblemError, match=message):
        InverseDynamicsQP(read_mjcf(arm()), [PostureTask()], **options)


def frozen_commands(delay, count=800):
    """Return the commands (ticks, nu) of a servo law whose sensors stay where they are."""
    law = law_of(arm(), kp=400.0, weight=1e-7, delay=delay)
    q, v, z, commands = np.array([0.1, 0.2, -0.1]), np.zeros(3), law.z0, []
    ref = law.reference_at(q + 1e-4)
    for _ in range(count):
        u, z, status = law.function(q, v, ref, 1, z)[:3]
        assert int(status) == 0
        commands.append(u.full().ravel())
    return np.array(commands)


@pytest.mark.long
def test_a_sensor_that_stays_where_it_is_does_not_let_commands_drift(monkeypatch):
    monkeypatch.setattr(servo_dynamics, "CORRECTED", 1e9)
    free = frozen_commands(2)
    moved = np.abs(free[-1] - free[10]).max()
    assert moved > 0.05  # rad: the drift is there without the bound
    monkeypatch.undo()
    for delay in (1, 2, 4):
        bounded = frozen_commands(delay)
        assert np.abs(bounded[10:] - bounded[10]).max() < 0.02 * moved


def law_of(xml, period=0.002, kp=100.0, weight=1e-12, **options):
    tasks = [PostureTask(kp=kp)]
    return InverseDynamicsQP(read_mjcf(xml), tasks, period=period, torque_weight=weight, **options)
