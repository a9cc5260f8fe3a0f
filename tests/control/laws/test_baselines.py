"""The laws that people compare with: computed torque of a tool, PD, impedance."""

import casadi as ca
import numpy as np
import pytest
from a10_motions import flat, states, system_of
from numpy.testing import assert_allclose
from tool_motions import PLANE, acceleration_of, motor_force, place_of, strong, tool

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control import FrameTask, PostureTask
from mbcasadi.control.laws import computed_torque, gravity_compensated_pd, impedance_control
from mbcasadi.validation import validate

ROUNDING = 1e-8


@pytest.mark.parametrize("name", PLANE)
def test_computed_torque_of_a_tool_gives_the_desired_acceleration(name):
    law = computed_torque(system_of(name), tool(name, kp=40.0, kd=9.0), **strong(system_of(name)))
    for q, v, (away, dx, ddx), wanted, _ in tool_states(name, 1):
        f, status = motor_force(law, q, v, law.reference(**wanted))
        _, actual, J = acceleration_of(name, q, v, f)
        assert status == 0
        expected = ddx + 9.0 * (dx - J @ v) + 40.0 * away
        assert_allclose(actual, expected, atol=ROUNDING * (1 + abs(expected).max()))


@pytest.mark.parametrize("name", PLANE)
def test_pd_holds_every_pose_at_rest_and_pulls_with_its_springs(name):
    """At rest the acceleration is that of the spring alone, on a mechanism without weight."""
    system, rng = system_of(name), np.random.default_rng(2)
    law = gravity_compensated_pd(system, tool(name), stiffness=30.0, damping=2.0, **strong(system))
    for q, _ in zip(*states(system, 5, seed=2), strict=True):
        v_0, pull = np.zeros(system.nv), rng.standard_normal(2)
        f, status = motor_force(law, q, v_0, law.reference(tool_position=place_of(name, q)))
        a, _, J = acceleration_of(name, q, v_0, f)
        assert status == 0
        assert_allclose(a, 0, atol=ROUNDING)
        f, _ = motor_force(law, q, v_0, law.reference(tool_position=place_of(name, q) + pull))
        still = system.gravity_force(q).full().ravel() - flat(system.passive_force(q, v_0))[0]
        expected, _, _ = acceleration_of(name, q, v_0, still + 30.0 * J.T @ pull)
        actual, _, _ = acceleration_of(name, q, v_0, f)
        assert_allclose(actual, expected, atol=ROUNDING * (1 + abs(expected).max()))
        a_desired = law.desired(q, v_0, law.reference(tool_position=place_of(name, q) + pull), [])[
            0
        ]
        assert_allclose(a_desired.full().ravel(), expected, atol=ROUNDING * 1e2)


SPRUNG = """<mujoco><worldbody><body pos="0 0 1">
  <joint name="hinge" axis="0 1 0" stiffness="5" springref="40" damping="0.7"/>
  <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02" mass="2"/>
</body></worldbody><actuator><motor joint="hinge"/></actuator></mujoco>"""


def test_pd_compensates_springs_of_the_model_and_leaves_its_dampers():
    """`I a = K e + D ė - 0.7 v`, without the spring's 5 (0.698 - q) and without gravity."""
    system = mb.read_mjcf(SPRUNG)
    law = gravity_compensated_pd(system, PostureTask(), stiffness=3.0, damping=0.2)
    q, v, goal = 0.5, -1.2, 0.8
    assert abs(float(system.passive_force(q, 0))) > 0.5
    u = law.function(q, v, law.reference(posture_q=goal), [])[0]
    a = mb.forward_dynamics(system, "lagrange", derivatives=False)(q, v, u)[0]
    force = 3.0 * (goal - q) - 0.2 * v - 0.7 * v
    assert_allclose(float(system.mass_matrix(q) @ a), force, atol=1e-12)


def test_pd_takes_energy_out_at_the_rate_of_its_dampers():
    """`d/dt (T + ½ eᵀ K e) = -vᵀ D v` with joints as the task, and no dampers of the model."""
    system = system_of("planar_3rrr")
    task = PostureTask(("proximal_a", "proximal_b", "proximal_c"))
    law = gravity_compensated_pd(system, task, stiffness=8.0, damping=1.5, **strong(system))
    q0, v0 = (each[0] for each in states(system, 1, seed=3))
    goal = system.tree.q0[[0, 2, 4]]

    def force(t, q, v):
        return motor_force(law, q, v, law.reference(posture_q=goal))[0]

    times = np.linspace(0, 1.0, 201)
    run = mb.simulate(system, q0, v0, 1.0, force=force, times=times, rtol=1e-9)
    joints, speeds = run.q[:, [0, 2, 4]], run.v[:, [0, 2, 4]]
    kinetic = system.kinetic_energy.map(len(times))(run.q.T, run.v.T).full().ravel()
    energy = kinetic + 4.0 * np.sum((goal - joints) ** 2, axis=1)
    power = 1.5 * np.sum(speeds**2, axis=1)
    dissipated = np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(times))])
    assert energy[-1] < 0.6 * energy[0]
    assert_allclose(energy + dissipated, energy[0], rtol=2e-3)  # trapezia of 5 ms


@pytest.mark.long
def test_pd_holds_a_five_bar_in_mujoco_as_c_with_an_offset_of_the_wrong_mass():
    """10 % of the weight hangs on the springs; a wrong sign of gravity would be 20 times that."""
    system = system_of("five_bar")
    law = gravity_compensated_pd(system, tool("five_bar"), stiffness=500.0, damping=60.0)
    goal = place_of("five_bar", system.tree.q0)
    offsets = {}
    for error in (0.0, 0.1):
        report = validate(
            law,
            models.path("five_bar"),
            2.0,
            reference=law.reference(tool_position=goal),
            perturb={"mass": error},
            delay=1,
        )
        offsets[error] = place_of("five_bar", report.runs[0].recording.q[-1]) - goal
    weight = system.gravity_force(system.tree.q0).full().ravel()
    J = system.frame("tool").jacobian(system.tree.q0).full()[[0, 2]]
    A = system.constraint_jacobian(system.tree.q0).full()
    Z = np.linalg.svd(A)[2][2:].T
    load = np.linalg.lstsq((J @ Z).T, Z.T @ weight, rcond=None)[0]  # weight felt at the tool
    assert abs(offsets[0.0]).max() < 1e-4
    assert_allclose(offsets[0.1], -0.1 * load / 500.0, atol=0.1 * abs(load).max() / 5000)


def test_what_does_not_fit_is_refused_by_name():
    system = system_of("five_bar")
    with pytest.raises(err.ProblemError, match=r"tool: stiffness has shape \(3,\)"):
        gravity_compensated_pd(system, tool("five_bar"), stiffness=[1.0] * 3, damping=1.0)
    with pytest.raises(err.ProblemError, match="damping = -1"):
        impedance_control(system, tool("five_bar"), stiffness=1.0, damping=-1.0)
    with pytest.raises(err.ProblemError, match="inertia = 0"):
        impedance_control(system, tool("five_bar"), stiffness=1.0, damping=1.0, inertia=0.0)
    with pytest.raises(err.UnknownNameError, match="toll"):
        impedance_control(system, FrameTask("toll"), stiffness=1.0, damping=1.0)
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    flat_mass = mb.from_equations(
        q, v, M=ca.DM([[1, 0], [0, 0]]), h=ca.SX.zeros(2), B=ca.DM.eye(2), phi=q[1] - q[0]
    )
    with pytest.raises(err.UnsupportedFeatureError, match="positive definite M"):
        impedance_control(flat_mass, PostureTask(), stiffness=1.0, damping=1.0)


@pytest.mark.parametrize("name", PLANE)
def test_the_own_inertia_yields_to_a_push_that_the_law_does_not_know(name):
    """`J a + c = ẍ_d + J G Jᵀ (K e + D ė + F)`, J G Jᵀ from motions under unit forces."""
    system, spring = system_of(name), {"stiffness": 30.0, "damping": 2.0}
    law = impedance_control(system, tool(name), **spring, **strong(system))
    for q, v, (away, dx, ddx), wanted, push in tool_states(name, 4):
        f, status = motor_force(law, q, v, law.reference(**wanted))
        zero, _, J = acceleration_of(name, q, v, np.zeros(system.nv))
        mobility = np.array([J @ (acceleration_of(name, q, v, J[i])[0] - zero) for i in (0, 1)]).T
        _, actual, _ = acceleration_of(name, q, v, f + J.T @ push)
        expected = ddx + mobility @ (30.0 * away + 2.0 * (dx - J @ v) + push)
        assert status == 0
        assert_allclose(actual, expected, atol=ROUNDING * (1 + abs(expected).max()))


@pytest.mark.parametrize("name", PLANE)
def test_a_chosen_inertia_yields_to_a_push_that_is_measured(name):
    """`Λ (ẍ - ẍ_d) = K e + D ė + F`, rows with masses of their own."""
    system, mass = system_of(name), np.array([2.0, 7.0])
    options = {"stiffness": 30.0, "damping": 2.0, "inertia": mass} | strong(system)
    law = impedance_control(system, tool(name), **options)
    for q, v, (away, dx, ddx), wanted, push in tool_states(name, 5):
        f, status = motor_force(law, q, v, law.reference(**wanted, tool_measured=push))
        _, actual, J = acceleration_of(name, q, v, f)
        _, pushed, _ = acceleration_of(name, q, v, f + J.T @ push)
        expected = ddx + (30.0 * away + 2.0 * (dx - J @ v) + push) / mass
        assert status == 0
        assert abs(pushed - actual).max() > 1e-3
        assert_allclose(pushed, expected, atol=ROUNDING * (1 + abs(expected).max()))


def test_what_the_tool_leaves_free_is_braked_without_moving_it():
    system, name = system_of("planar_3rrr"), "planar_3rrr"
    q, v = (each[0] for each in states(system, 1, seed=6))
    spring = {"stiffness": 30.0, "damping": 2.0} | strong(system)
    braked, plain = (
        impedance_control(system, tool(name), joint_damping=rate, **spring) for rate in (4.0, 0.0)
    )
    ref = plain.reference(tool_position=place_of(name, q))
    a, x, J = acceleration_of(name, q, v, motor_force(braked, q, v, ref)[0])
    other, y, _ = acceleration_of(name, q, v, motor_force(plain, q, v, ref)[0])
    L = np.linalg.cholesky(system.mass_matrix(q).full())
    rows = np.linalg.solve(L, np.vstack([system.constraint_jacobian(q).full(), J]).T).T
    free = np.eye(system.nv) - np.linalg.pinv(rows, 1e-9) @ rows
    expected = -4.0 * np.linalg.solve(L.T, free @ (L.T @ v))  # least kinetic energy
    assert abs(a - other).max() > 1e-2
    assert_allclose(x, y, atol=ROUNDING)
    assert_allclose(a - other, expected, atol=1e-7)


@pytest.mark.long
def test_a_constant_push_shifts_the_tool_by_push_over_stiffness_in_mujoco_as_c():
    """f = Jᵀ F as MuJoCo's own force on the joints; 10 % more mass than the law knows of."""
    system, rows = system_of("planar_3rrr"), [0, 1]
    law = impedance_control(
        system, tool("planar_3rrr"), stiffness=400.0, damping=40.0, joint_damping=10.0
    )
    F = np.array([6.0, -3.0])
    platform = np.zeros(system.nv)
    platform[[6, 7]] = F  # the platform's x and y carry the tool
    report = validate(
        law,
        models.path("planar_3rrr"),
        2.0,
        reference=law.reference(tool_position=place_of("planar_3rrr", system.tree.q0)),
        disturbance=platform,
        perturb={"mass": 0.1},
        delay=1,
    )
    final = report.runs[0].recording.q[-1]
    shift = place_of("planar_3rrr", final) - place_of("planar_3rrr", system.tree.q0)
    assert rows == list(PLANE["planar_3rrr"])
    assert_allclose(shift, F / 400.0, rtol=0.02)


def tool_states(name, seed):
    """Yield states, a desired place, speed and acceleration of the tool, and a push."""
    rng = np.random.default_rng(seed)
    for q, v in zip(*states(system_of(name), 5, seed=seed), strict=True):
        x, dx, ddx = place_of(name, q) + rng.standard_normal(2), *rng.standard_normal((2, 2))
        wanted = {"tool_position": x, "tool_velocity": dx, "tool_acceleration": ddx}
        yield q, v, (x - place_of(name, q), dx, ddx), wanted, 5 * rng.standard_normal(2)
