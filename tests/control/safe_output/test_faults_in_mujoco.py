"""Faults of the measurement in closed loops: MuJoCo's own forces and speeds stay bounded."""

from dataclasses import dataclass
from functools import cache

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask, with_fallback
from mbcasadi.control.laws import computed_torque, gravity_compensated_pd, within_limits
from mbcasadi.description import Contact
from mbcasadi.description.status import Status


@dataclass
class Run:
    """One row for each tick: statuses, and MuJoCo's actuator forces, speeds and positions.

    `first`, `last` are the ticks at which the fault begins and has ended.
    """

    status: np.ndarray
    force: np.ndarray
    speed: np.ndarray
    q: np.ndarray
    first: int
    last: int

    @property
    def before(self):
        """Actuator force of the last good tick."""
        return self.force[self.first - 1]

    @property
    def force_change(self):
        """Largest change of an actuator force during the fault, relative to the force before."""
        change = np.abs(self.force[self.first : self.last] - self.before).max()
        return change / np.abs(self.before).max()

    @property
    def top_speed(self):
        return np.abs(self.speed[self.first : self.last]).max()

    @property
    def travel(self):
        return np.abs(self.q[self.first - 1 : self.last] - self.q[self.first - 1]).max()


def nan(q, v, past):
    return np.full_like(q, np.nan), np.full_like(v, np.nan)


def one_encoder(q, v, past):
    broken = q.copy()
    broken[-1] = np.nan
    return broken, v


def huge_spike(q, v, past):
    broken = q.copy()
    broken[-1] = 1e13
    return broken, v


def spike(q, v, past):
    broken = q.copy()
    broken[-1] += 0.1
    return broken, v


def stale(q, v, past):
    return past


def run(controller, model, q0, fault, seconds, *, begin=0.1, after=0.05, reference=None, **given):
    """Return the closed loop of a controller's Function and MuJoCo around one fault."""
    data, f = mujoco.MjData(model), controller.function
    data.qpos[:] = q0
    period = controller.period
    steps, first = round(period / model.opt.timestep), round(begin / period)
    last = first + max(1, round(seconds / period))
    z, rows, past = controller.z0, [], None
    for k in range(last + round(after / period)):
        q, v = data.qpos.copy(), data.qvel.copy()
        if first <= k < last:
            q, v = fault(q, v, past)
        else:
            past = q, v
        inputs = {"q": q, "v": v, "ref": reference(k * period), "mask": [], "z": z} | given
        out = f(**{name: inputs[name] for name in f.name_in()})
        z = out["z_next"]
        data.ctrl[:] = np.array(out["u"]).ravel()
        mujoco.mj_step(model, data, steps)
        state = data.actuator_force.copy(), data.qvel.copy(), data.qpos.copy()
        rows.append((int(out["status"]), *state))
    return Run(*(np.array(column) for column in zip(*rows, strict=True)), first, last)


FEET = ("FL", "FR", "RL", "RR")
SERVO_ARM = """<mujoco><option timestep="0.001"/>
  <worldbody><body><joint name="shoulder" axis="0 1 0" damping="2" armature=".1"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
      <body pos=".4 0 0"><joint name="elbow" axis="0 1 0" damping="1" armature=".05"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/>
        <body pos=".3 0 0"><joint name="wrist" axis="0 1 0" armature=".01"/>
          <geom type="capsule" fromto="0 0 0 .1 0 0" size=".02" mass=".3"/></body></body></body>
  </worldbody>
  <actuator><position name="shoulder" joint="shoulder" kp="300" kv="20" ctrlrange="-3 3"/>
    <velocity name="elbow" joint="elbow" kv="30" ctrlrange="-5 5"/>
    <motor name="wrist" joint="wrist" ctrlrange="-5 5"/></actuator></mujoco>"""
POSE = np.array([0.6, -0.9, 0.4])  # rad, far from the zero pose


@cache
def servo_arm():
    return mb.read_mjcf(SERVO_ARM), mujoco.MjModel.from_xml_string(SERVO_ARM)


@cache
def servo_controller(fallback="safe"):
    return InverseDynamicsQP(servo_arm()[0], [PostureTask(kp=100.0)], fallback=fallback)


@cache
def two_arms():
    path = models.path("two_arm_carry")
    system = mb.read_mjcf(path)
    return InverseDynamicsQP(system, [PostureTask(kp=100.0)]), mujoco.MjModel.from_xml_path(
        str(path)
    )


@cache
def quadruped():
    path = models.path("quadruped")
    tasks = [FrameTask("trunk", kind="body", kp=100.0, weight=100.0), PostureTask(kp=50.0)]
    contacts = [Contact(name, friction=0.7, sides=4) for name in FEET]
    controller = InverseDynamicsQP(mb.read_mjcf(path), tasks, contacts)
    return controller, mujoco.MjModel.from_xml_path(str(path))


def hold(controller, pose):
    ref = controller.reference_at(pose)
    return lambda _: ref


def swing(controller, joints, amplitude=0.3, rate=2 * np.pi):
    """The first joints swing about the initial pose: rad, rad/s."""
    system, pose = controller.system, controller.system.tree.q0
    still, n = controller.reference_at(pose), controller.system.nv

    def reference(t):
        ref = still.copy()
        ref[:joints] += amplitude * np.sin(rate * t)
        ref[system.nq : system.nq + joints] += amplitude * rate * np.cos(rate * t)
        ref[system.nq + n :][:joints] -= amplitude * rate**2 * np.sin(rate * t)
        return ref

    return reference


@pytest.mark.parametrize("fault", [nan, one_encoder, huge_spike])
def test_one_bad_tick_leaves_the_force_of_servos_and_motors_as_it_is(fault):
    controller, model = servo_controller(), servo_arm()[1]
    result = run(controller, model, POSE, fault, 0.001, reference=hold(controller, POSE))
    assert list(result.status[result.first : result.last]) == [Status.BAD_INPUT]
    assert np.abs(result.before).max() > 5  # N m, gravity
    assert result.force_change < 1e-3
    assert result.top_speed < 1e-3  # rad/s


def test_zero_force_is_not_a_safe_output_of_servos():
    """The fault is one: with u = 0 the same tick commands the zero pose."""
    controller, model = servo_controller("zero"), servo_arm()[1]
    result = run(controller, model, POSE, nan, 0.001, reference=hold(controller, POSE))
    assert result.force_change > 10


def test_a_fifth_of_a_second_without_measurement_leaves_an_arm_where_it_is():
    controller, model = servo_controller(), servo_arm()[1]
    result = run(controller, model, POSE, nan, 0.2, reference=hold(controller, POSE))
    assert result.force_change < 0.01
    assert result.travel < 2e-3  # rad
    assert result.top_speed < 0.02  # rad/s
    dropped = run(servo_controller("zero"), model, POSE, nan, 0.2, reference=hold(controller, POSE))
    assert dropped.travel > 0.3  # rad


@pytest.mark.parametrize("fault", [spike, stale])
def test_one_wrong_sample_that_looks_good_changes_little(fault):
    """It cannot be told from a good one: its effect is that of the task's gains in one tick."""
    controller, model = servo_controller(), servo_arm()[1]
    result = run(controller, model, POSE, fault, 0.001, reference=hold(controller, POSE))
    assert result.status[result.first] == Status.SOLVED
    assert result.top_speed < 0.05  # rad/s, of 100 / s² times 0.1 rad and 1 ms


def test_dropped_samples_hardly_change_a_motion():
    controller, model = two_arms()
    start, given = controller.system.tree.q0, {"reference": swing(controller, 6), "mask": [1.0]}
    held = run(controller, model, start, stale, 0.005, begin=0.5, **given)
    good = run(controller, model, start, lambda q, v, _: (q, v), 0.005, begin=0.5, **given)
    assert np.all(held.status == Status.SOLVED)
    assert np.abs(held.speed - good.speed).max() < 0.25  # rad/s of 1.9
    assert np.abs(held.q - good.q).max() < 5e-3  # rad


@pytest.mark.parametrize(("seconds", "force"), [(0.001, 1e-2), (0.2, 1e-2)])
def test_two_arms_at_rest_stay_there_without_measurement(seconds, force):
    controller, model = two_arms()
    start = controller.system.tree.q0
    reference = hold(controller, start)
    result = run(controller, model, start, nan, seconds, reference=reference, mask=[1.0])
    assert np.abs(result.before).max() > 1  # N m
    assert result.force_change < force
    assert result.top_speed < 1e-2  # rad/s
    assert result.travel < 1e-3  # rad


@pytest.mark.parametrize("begin", [0.5, 0.6, 0.75])
def test_moving_arms_are_braked_without_measurement(begin):
    """They swing by 0.3 rad, the links by up to three times as much; at 1.9 rad/s."""
    controller, model = two_arms()
    start, reference = controller.system.tree.q0, swing(controller, 6)
    result = run(controller, model, start, nan, 0.2, begin=begin, reference=reference, mask=[1.0])
    assert result.travel < 0.4  # rad; 0.7 with gravity alone, 1.6 without force
    assert result.top_speed < 5  # rad/s; 7.7 with gravity alone, 16 without force


@pytest.mark.long
def test_a_standing_quadruped_stands_without_measurement():
    controller, model = quadruped()
    pose = controller.system.tree.keyframes["stand"]
    result = run(
        controller, model, pose, nan, 0.2, reference=hold(controller, pose), mask=4 * [1.0]
    )
    assert np.all(result.status[result.first : result.last] == Status.BAD_INPUT)
    assert np.abs(result.q[:, 2] - result.q[result.first, 2]).max() < 2e-3  # m; it falls by 0.19
    assert result.top_speed < 0.05  # m/s, rad/s
    assert result.force_change < 0.6


@pytest.mark.parametrize("make", ["computed_torque", "gravity_compensated_pd", "within_limits"])
def test_laws_hold_servos_as_the_qp_does(make):
    system, model = servo_arm()
    law = computed_torque(system, PostureTask(kp=100.0))
    if make == "gravity_compensated_pd":
        law = gravity_compensated_pd(system, PostureTask(), stiffness=80.0, damping=8.0)
    if make == "within_limits":
        law = within_limits(law)
    reference = law.reference(posture_q=POSE)
    for seconds in (0.001, 0.2):
        result = run(law.controller, model, POSE, nan, seconds, reference=lambda _: reference)
        assert np.all(result.status[result.first : result.last] == Status.BAD_INPUT)
        assert result.force_change < 0.02
        assert result.travel < 2e-3  # rad
    if make != "within_limits":
        zero = with_fallback(law, "zero")
        result = run(zero.controller, model, POSE, nan, 0.001, reference=lambda _: reference)
        assert result.force_change > 1
