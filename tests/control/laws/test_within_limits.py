"""A law behind the QP: unchanged inside its limits, and beyond them better than clipping."""

import functools

import numpy as np
import pytest
from a10_motions import flat, states, system_of
from numpy.testing import assert_allclose, assert_array_equal
from support.refusals import refused
from tool_motions import acceleration_of, dynamics_of, place_of, tool

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control import PostureTask
from mbcasadi.control.laws import (
    ForceGains,
    LawOptions,
    computed_torque,
    gravity_compensated_pd,
    joint_coordinates,
    quasi_velocity_force,
    within_limits,
)
from mbcasadi.validation import Criteria, validate

FEASIBLE = 1e-9
NAMES = ("five_bar", "planar_3rrr")
FAR = {"five_bar": 0.3, "planar_3rrr": 0.1}  # m, where some motors are at their limits


@functools.cache
def plain_law(name):
    return computed_torque(system_of(name), tool(name, kp=400.0))


@functools.cache
def limited_law(name, closeness=False):
    return within_limits(plain_law(name), closeness=tool(name) if closeness else None)


def distant_states(name, count, far, seed=0):
    """States and references, about `far` m away."""
    rng, law = np.random.default_rng(seed), plain_law(name)
    for q, v in zip(*states(system_of(name), count, seed=seed), strict=True):
        goal = place_of(name, q) + far * rng.standard_normal(2)
        yield q, 0.3 * v, law.reference(tool_position=goal)


def outputs_of(law, *inputs):
    u, z, status, _, residual = law.function(*inputs, law.z0)
    return flat(u)[0], flat(z)[0], float(status), flat(residual)[0]


@pytest.mark.parametrize("name", NAMES)
def test_inside_its_limits_the_law_is_unchanged(name):
    inside = 0
    for q, v, ref in distant_states(name, 20, far=0.005):
        u, _, status, *_ = outputs_of(plain_law(name), q, v, ref)
        u_limited, active, also, residual = outputs_of(limited_law(name), q, v, ref)
        if status == 0:
            inside += 1
            assert_array_equal(u_limited, u)
            assert also == 0
            assert not active[plain_law(name).controller.z0.size :].any()
            assert np.all(residual <= 1e-6)
    assert inside >= 10


@pytest.mark.parametrize("name", NAMES)
def test_the_qp_alone_finds_the_same_command_inside(name):
    """Its own solution, before the law's is preferred: a feasible motion is its own nearest."""
    wrapped, law = limited_law(name), plain_law(name)
    build = wrapped.controller.stages.build
    for q, v, ref in distant_states(name, 10, far=0.005, seed=2):
        u, _, status, *_ = outputs_of(law, q, v, ref)
        if status != 0:
            continue
        A, lba, uba, *_ = build(q, v, ref, wrapped.controller.z0)
        assert np.all(lba.full() <= FEASIBLE)  # x = 0, the unconstrained optimum, is feasible
        assert np.all(uba.full() >= -FEASIBLE)
        assert A.shape[1] == u.size


def kinetic(system, q, difference):
    return float(difference @ system.mass_matrix(q).full() @ difference)


@pytest.mark.parametrize("name", NAMES)
def test_beyond_its_limits_the_motion_is_nearer_to_the_desired_one_than_after_clipping(name):
    """Gauss's measure, against clipping and against random feasible controls."""
    system, rng, ratios = system_of(name), np.random.default_rng(3), []
    low, high = limited_law(name).controller.u_min, limited_law(name).controller.u_max
    for q, v, ref in distant_states(name, 12, far=FAR[name], seed=3):
        u, _, status, *_ = outputs_of(plain_law(name), q, v, ref)
        if status != 1:
            continue
        a_desired = plain_law(name).desired(q, v, ref, [])[0].full().ravel()

        def miss(control, q=q, v=v, a_desired=a_desired):
            force = (system.actuation(q) @ control).full().ravel()
            return kinetic(system, q, acceleration_of(name, q, v, force)[0] - a_desired)

        u_limited, active, also, _ = outputs_of(limited_law(name), q, v, ref)
        assert also == 1
        assert active.any()
        assert np.all((u_limited >= low) & (u_limited <= high))
        least = miss(u_limited)
        ratios.append(least / miss(u))
        assert least <= miss(u) * (1 + 1e-4)
        for _ in range(5):
            assert least <= miss(rng.uniform(low, high)) * (1 + 1e-4)
    assert min(ratios) < 0.96


def test_closeness_in_a_task_puts_the_tool_first():
    """The tool's own acceleration error is the least of all feasible ones."""
    name, better = "planar_3rrr", 0
    system = system_of(name)
    for q, v, ref in distant_states(name, 12, far=0.05, seed=4):
        _, _, status, *_ = outputs_of(plain_law(name), q, v, ref)
        if status != 1:
            continue
        J_tool = acceleration_of(name, q, v, np.zeros(system.nv))[2]
        a_desired = J_tool @ plain_law(name).desired(q, v, ref, [])[0].full().ravel()
        miss = {}
        for label, law in (("clipped", plain_law(name)), ("qp", limited_law(name, closeness=True))):
            u = outputs_of(law, q, v, ref)[0]
            a = acceleration_of(name, q, v, (system.actuation(q) @ u).full().ravel())[0]
            miss[label] = np.linalg.norm(J_tool @ a - a_desired)
        assert miss["qp"] <= miss["clipped"] * (1 + 1e-3)
        better += miss["qp"] < 0.8 * miss["clipped"]
    assert better >= 3


def test_forces_that_move_nothing_stay_those_of_the_law():
    """The arm presses with 20 N on its surface: the QP keeps the press, and the loop's state."""
    system = system_of("prr_arm")
    law = quasi_velocity_force(
        system,
        joint_coordinates(system, ("tip", "q1")),
        gains=ForceGains(0.5, 50.0, rows=("surface.2",)),
    )
    wrapped = within_limits(law)
    state = law.controller.z0.size + wrapped.controller.stages.m + 1  # and a count of missed ticks
    assert wrapped.controller.z0.size == state
    q, v = system.tree.q0, np.zeros(4)
    ref = law.reference(theta_q=q[[3, 0]], force_lam=20.0)
    values = (q, v, np.array([15.0, 0, 0, 0]), ref)
    u, z_next, status, *_ = law.function(*values, np.append([0.7], law.controller.z0[1:]))
    z0 = wrapped.controller.z0.copy()
    z0[0] = 0.7
    u_limited, z_after, also, *_ = wrapped.function(*values, z0)
    assert (float(status), float(also)) == (0, 0)
    assert_array_equal(u_limited.full(), u.full())
    assert_array_equal(float(z_after[0]), float(z_next[0]))
    assert float(z_next[0]) != 0.7


def test_a_limit_costs_press_but_no_motion_where_motors_are_redundant():
    """Three motors, two motions: what the base lacks, 5 N, the surface carries."""
    system = system_of("prr_arm")
    theta = joint_coordinates(system, ("tip", "q1"))
    law = quasi_velocity_force(system, theta, gains=ForceGains(rows=("surface.2",)))
    q, v = system.tree.q0, np.zeros(4)
    ref = law.reference(theta_q=q[[3, 0]] + [0.01, 0.02], force_lam=40.0)
    u = law.function(q, v, ref, [])[0].full().ravel()
    most = u[0] - 5.0
    weak = within_limits(law, force_limits=[[-most, most], [-500.0, 500.0], [-500.0, 500.0]])
    u_limited, _, status, *_ = outputs_of(weak, q, v, ref)
    fd = dynamics_of("prr_arm")
    a_desired, a_limited = (
        fd(q, v, system.actuation(q) @ control)[0].full() for control in (u, u_limited)
    )
    clipped = fd(q, v, system.actuation(q) @ np.array([most, *u[1:]]))[0].full()
    assert status == 1
    assert_allclose(u_limited[0], most, atol=1e-6)
    assert np.abs(clipped - a_desired).max() > 0.1
    assert_allclose(a_limited, a_desired, atol=1e-3)  # the bias of r_p


def test_options_that_do_not_fit_are_refused():
    law = plain_law("five_bar")
    refused(err.ProblemError, "kinetic_weight = 0", lambda: within_limits(law, kinetic_weight=0.0))
    refused(err.ProblemError, "torque_weight = -1", lambda: within_limits(law, torque_weight=-1.0))
    refused(err.ShapeError, "force_limits", lambda: within_limits(law, force_limits=[[0.0, 1.0]]))


@pytest.mark.long
def test_a_tool_keeps_its_line_where_a_motor_is_too_weak_in_mujoco_as_c():
    """A horizontal line; weight hangs on a left motor of 4 N m. Cut, the tool leaves the line."""
    system, start = system_of("five_bar"), place_of("five_bar", system_of("five_bar").tree.q0)
    task = tool("five_bar", kp=100.0)
    clipped = computed_torque(
        system, task, options=LawOptions(ctrl_limits=[[-4.0, 4.0], [-15.0, 15.0]])
    )
    line_first = within_limits(clipped, closeness=tool("five_bar", weight=(1.0, 100.0)))
    way, w = np.array([0.08, 0.0]), 7.0  # m, rad/s

    def line(t):
        return clipped.reference(
            tool_position=start + way * np.sin(w * t),
            tool_velocity=way * w * np.cos(w * t),
            tool_acceleration=-way * w * w * np.sin(w * t),
        )

    worst = {}
    for law in (clipped, line_first):
        report = validate(
            law,
            models.path("five_bar"),
            1.3,
            reference=line,
            perturb={"mass": 0.1},
            delay=1,
            disturbance=[0.05, 0.0, 0.0, 0.0],
            criteria=Criteria(settle=0.5),
        )
        run = report.runs[0]
        worst[law.controller.name] = np.abs(run.recording.monitor["error"][:, 1]).max()
        assert run.metric("torque.saturated") > 0.1
        assert run.metric("torque.excess") == 0.0
        assert run.metric("status.safe_output") == 0.0
    assert worst["computed_torque"] > 0.02
    assert worst["computed_torque_within_limits"] < 0.5 * worst["computed_torque"]


SERVOS = """<mujoco><worldbody><body pos="0 0 1">
  <joint name="first" axis="0 1 0" damping="0.1"/>
  <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02" mass="2"/>
  <body pos="0.4 0 0"><joint name="second" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1"/></body>
</body></worldbody><actuator>
  <position joint="first" kp="80" kv="4" ctrlrange="-1 1" forcerange="-14 14"/>
  <position joint="second" kp="40" kv="2" ctrlrange="-1 1"/></actuator></mujoco>"""
PLAIN = SERVOS.replace(' ctrlrange="-1 1"', "").replace(' forcerange="-14 14"', "")


@pytest.mark.parametrize("on", [1.0, 0.0])
def test_a_mask_switches_the_loop_in_law_and_qp_alike(on):
    """With the loop open the robot is two arms with a passive joint each: it cannot follow."""
    system = system_of("five_bar").with_mask()
    law = computed_torque(system, tool("five_bar", kp=400.0))
    wrapped, place = within_limits(law), place_of("five_bar", system.tree.q0)
    q, v = system.tree.q0, np.zeros(4)
    near, far = (law.reference(tool_position=place + way) for way in ([0.02, 0.02], [0.2, 0.12]))
    own, other = (outputs_of(each, q, v, near, [on]) for each in (law, wrapped))
    assert own[2] == other[2] == (0 if on else 2)
    assert not on or np.array_equal(other[0], own[0])
    own, other = (outputs_of(each, q, v, far, [on]) for each in (law, wrapped))
    assert own[2] == other[2] == (1 if on else 2)
    A = on * system_of("five_bar").constraint_jacobian(q).full()
    M, B = system.mass_matrix(q).full(), system.actuation(q).full()
    h = system.bias_force(q, v).full() - system.passive_force(q, v).full()
    a_desired = np.array(law.desired(q, v, far, [on], [])[0])

    def miss(u):
        pivots = np.block([[M, -A.T], [A, np.zeros((3, 3))]])
        right = np.vstack([B @ u[:, None] - h, np.zeros((3, 1))])
        gap = np.linalg.lstsq(pivots, right, rcond=None)[0][:4] - a_desired
        return (gap.T @ M @ gap).item()

    assert miss(other[0]) < miss(own[0])
    for step in (0.02, -0.02):  # N m, of the motor that is not at its limit
        assert miss(other[0] + [0.0, step]) > miss(other[0])


def test_the_ranges_of_servos_are_those_of_their_set_points_and_forces():
    system = mb.read_mjcf(SERVOS)
    law = computed_torque(system, PostureTask(kp=50.0))
    wrapped, q, v = within_limits(law), np.array([0.1, -0.2]), np.array([0.3, 0.1])
    near, far = law.reference(posture_q=q + 0.05), law.reference(posture_q=q - [0.9, 0.0])
    own, other = (outputs_of(each, q, v, near) for each in (law, wrapped))
    assert own[2] == other[2] == 0
    assert_array_equal(other[0], own[0])
    u, _, status, _ = outputs_of(wrapped, q, v, far)
    force = system.actuator_force(q, v, u).full().ravel()
    assert status == 1
    assert abs(force[0]) == pytest.approx(14.0, abs=1e-6)
    unclipped = 80.0 * (u[0] - q[0]) - 4.0 * v[0]
    assert unclipped == pytest.approx(force[0], abs=1e-6)  # nothing is left for MuJoCo to clip


def test_without_limits_the_wrap_changes_nothing():
    law = gravity_compensated_pd(mb.read_mjcf(PLAIN), PostureTask(), stiffness=30.0, damping=3.0)
    wrapped, rng = within_limits(law), np.random.default_rng(1)
    assert wrapped.controller.stages.m == 0
    for _ in range(10):
        state = (*rng.standard_normal((2, 2)), law.reference(posture_q=5 * rng.standard_normal(2)))
        own, other = (outputs_of(each, *state) for each in (law, wrapped))
        assert own[2] == other[2] == 0
        assert_array_equal(other[0], own[0])
