"""Dry friction of joints, and a disturbance that is observed: in closed form and in MuJoCo."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.loops_in_mujoco import ticks
from support.mechanisms_of_control import feet, stand, system_of
from support.refusals import refused

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import (
    DisturbanceObserver,
    FrameTask,
    FrictionLoss,
    InverseDynamicsQP,
    PostureTask,
)
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.plant import Plant

LOSSES = {"shoulder": 2.0, "elbow": 0.8}
ARM = """
<mujoco><option timestep="0.001" integrator="implicitfast"/>
  <worldbody><body name="upper"><joint name="shoulder" axis="0 1 0" frictionloss="2"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04" mass="3"/>
    <body name="lower" pos=".4 0 0"><joint name="elbow" axis="0 1 0" frictionloss=".8"/>
      <geom type="capsule" fromto="0 0 0 .35 0 0" size=".03" mass="2"/></body></body></worldbody>
  <actuator><motor joint="shoulder" ctrlrange="-90 90"/><motor joint="elbow" ctrlrange="-60 60"/>
  </actuator></mujoco>
"""
STIFF = ARM.replace("frictionloss", 'solimpfriction=".999 .999 .001" frictionloss')


def law_of(friction, model=ARM, **options):
    return InverseDynamicsQP(
        mb.read_mjcf(model), [PostureTask(kp=100.0)], friction_loss=friction, **options
    )


def test_the_losses_are_those_of_the_model():
    joints = mb.read_mjcf(ARM).tree.joints
    assert {joint.name: joint.friction_loss for joint in joints} == LOSSES
    without = ARM.replace("<option", '<option><flag frictionloss="disable"/></option><option')
    assert [joint.friction_loss for joint in mb.read_mjcf(without).tree.joints] == [0.0, 0.0]


def test_the_control_of_a_moving_arm_makes_up_for_mujocos_friction():
    """With the friction in the law, MuJoCo's joints accelerate as the law says."""
    law = law_of(FrictionLoss(speed=1e-3), STIFF)
    model = mujoco.MjModel.from_xml_string(STIFF)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, v = rng.standard_normal(2), rng.choice([-1.0, 1.0], 2) * (0.5 + rng.random(2))
        got = law.solve(q, v, law.reference_at(q))
        data.qpos, data.qvel, data.ctrl = q, v, got.u
        mujoco.mj_forward(model, data)
        assert_allclose(data.qfrc_constraint, -np.sign(v) * [2.0, 0.8], rtol=1e-3)
        assert_allclose(data.qacc, got.a, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("task", ["", "posture"])
@pytest.mark.long
def test_an_arm_with_friction_follows_its_path(task):
    def moved(t):
        w, size = 2 * np.pi * 0.5, np.array([0.5, 0.4])
        motion = 1 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t)
        return np.concatenate([size * part for part in motion])

    errors = []
    for friction in (None, FrictionLoss(task=task)):
        report = mb.validate(
            law_of(friction, delay=1), ARM, 3.0, reference=moved, q0=np.zeros(2), delay=1
        )
        run = report.runs[0].recording
        assert np.all(run.status == 0)
        errors.append(np.sqrt(np.mean(run.monitor["error"][1000:] ** 2)))
    assert errors[0] > 1e-2
    assert errors[1] < 0.15 * errors[0]


FINGER = """
<mujoco><option timestep="0.002"/>
  <worldbody><body><joint name="slide" type="slide" frictionloss="1"/><geom size=".05" mass="1"/>
    <body pos=".1 0 0"><joint name="finger" axis="0 0 1" frictionloss="1"/>
      <inertial pos="0 .02 0" mass=".02" diaginertia="1e-4 1e-4 1e-4"/></body></body></worldbody>
  <actuator><motor joint="slide"/><motor joint="finger"/></actuator></mujoco>
"""


def test_a_light_finger_rests_where_its_friction_is_that_of_the_plant():
    """As steep as asked for, the friction drives the finger at low speed; the law says so."""
    speed = 0.1  # rad/s
    with pytest.warns(UserWarning, match=r"they have finger: 14 rad/s") as caught:
        law = InverseDynamicsQP(
            mb.read_mjcf(FINGER),
            [PostureTask(kp=60.0)],
            friction_loss=FrictionLoss(speed=speed),
            period=0.002,
            delay=1,
        )
    assert caught[0].filename == __file__
    assert law.controller.notes["speeds of friction losses"] == "finger: 14"
    model = mujoco.MjModel.from_xml_string(FINGER)
    model.body_mass *= 1.1
    model.body_inertia *= 1.1
    data, z, steep = mujoco.MjData(model), law.z0, np.zeros(400)
    data.qvel[:] = 1e-3
    inputs, u, rest = {"ref": np.zeros(6), "mask": []}, np.zeros(2), np.zeros(400)
    for k in range(rest.size):
        out = law.function(q=data.qpos, v=data.qvel, z=z, **inputs)
        data.ctrl, u, z = u, np.array(out["u"]).ravel(), out["z_next"]
        mujoco.mj_step(model, data)
        rest[k] = np.abs(data.qvel).max()
    mujoco.mj_resetData(model, data)
    data.qvel[:], late = 1e-3, 0.0
    for k in range(steep.size):
        data.ctrl[1], late = late, data.qvel[1] / np.hypot(data.qvel[1], speed)
        mujoco.mj_step(model, data)
        steep[k] = np.abs(data.qvel).max()
    assert steep[-100:].max() > 1.0
    assert rest[-100:].max() < 1e-3


def test_the_friction_of_a_prescribed_velocity_keeps_its_speed():
    """It is no feedback, and builds without a warning."""
    law = InverseDynamicsQP(
        mb.read_mjcf(FINGER),
        [PostureTask(kp=60.0)],
        friction_loss=FrictionLoss(task="posture", share=0.8),
    )
    q, v = np.zeros(2), np.zeros(2)
    moves, rests = (law.reference_at(q, {"posture.v": [0.0, s]}) for s in (0.02, 0.0))
    damped = law.tasks[0].components(law.system).index("finger")
    found = [law.solve(q, v, ref) for ref in (moves, rests)]
    force = [s.u - np.array(law.system.mass_matrix(q)) @ s.a for s in found]
    assert_allclose(force[0][damped] - force[1][damped], 0.8 * 2**-0.5, rtol=1e-6)


def test_what_is_no_loss_is_refused():
    refused(UnknownNameError, "wrist", lambda: law_of(FrictionLoss({"wrist": 1.0})))
    refused(UnknownNameError, "tip", lambda: law_of(FrictionLoss(task="tip")))
    refused(ProblemError, "at most 1", lambda: FrictionLoss(share=1.2))
    refused(ProblemError, "zero or more", lambda: FrictionLoss({"elbow": -1.0}))
    without = ARM.replace('frictionloss="2"', "").replace('frictionloss=".8"', "")
    with pytest.raises(ProblemError, match="no joint of"):
        InverseDynamicsQP(mb.read_mjcf(without), [PostureTask()], friction_loss=FrictionLoss())


TICK, MASS, PUSH = 1e-3, 2.5, 7.0
SLIDE = f"""
<mujoco><option gravity="0 0 0"/>
  <worldbody><body name="cart"><joint name="x" type="slide" axis="1 0 0"/>
    <geom size=".1" mass="{MASS}"/></body></worldbody>
  <actuator><motor joint="x" ctrlrange="-100 100"/></actuator></mujoco>
"""


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_a_constant_push_is_learned_as_the_recursion_says(delay):
    observer = DisturbanceObserver(bandwidth=30.0)
    law = InverseDynamicsQP(
        mb.read_mjcf(SLIDE), [PostureTask()], observer=observer, period=TICK, delay=delay
    )
    gamma, d = 1 - np.exp(-30.0 * TICK), [0.0]
    x, v, z, waiting = 0.0, 0.3, law.z0, [0.0] * delay
    for k in range(250):
        solution = law.solve([x], [v], z=z, ref=[0.2, 0.0, 0.0][: law.nref])
        assert solution.disturbance[0] == pytest.approx(d[k], rel=1e-6, abs=1e-9)
        d.append(d[k] + gamma * (PUSH - d[k - 1 - delay]) if k > delay else 0.0)
        z = solution.z_next
        waiting.append(float(solution.u[0]))
        a = (waiting.pop(0) + PUSH) / MASS
        x, v = x + TICK * v + TICK**2 / 2 * a, v + TICK * a
    assert d[-1] == pytest.approx(PUSH, rel=0.01)


QUADRUPED_TASKS = [
    FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
    PostureTask(kp=50.0, weight=1e-3),
]


def quadruped(observer, **options):
    return InverseDynamicsQP(
        system_of("quadruped"), QUADRUPED_TASKS, feet(), observer=observer, period=0.002, **options
    )


def rings(observer, **options):
    """Return a regulator of the planar 3-RRR robot: loops, passive joints."""
    system = system_of("planar_3rrr")
    task = FrameTask("platform", kind="body", position="xy", orientation="", kp=100.0)
    return InverseDynamicsQP(system, [task, PostureTask(weight=1e-4)], observer=observer, **options)


def settled(law, q, *, count, delay=0, push=None, **options):
    """Return the tasks' error behind a run in MuJoCo at the reference of its start."""
    plant = Plant(models.path(law.system.name), timestep=law.period, rigid=True, **options)
    plant.reset(q)
    if push is not None:
        plant.apply_force(push)
    ref, z = law.reference_at(plant.q), law.z0
    for out in ticks(law, plant, count, ref, delay=delay):
        assert out["status"] == 0
        z = out["z_next"]
    inputs = {"q": plant.q, "v": plant.v, "ref": ref, "mask": np.ones(len(law.mask_names)), "z": z}
    monitor = law.controller.monitor
    return np.array(monitor(**{name: inputs[name] for name in monitor.name_in()})["error"]).ravel()


@pytest.mark.long
def test_a_heavier_quadruped_stands_where_it_should():
    q, run = system_of("quadruped").tree.keyframes["stand"], {"count": 1500, "delay": 1}
    without, with_observer = (
        settled(quadruped(observer, delay=1), q, perturb={"mass": 0.1}, **run)
        for observer in (None, DisturbanceObserver(bandwidth=5.0))
    )
    assert abs(without[2]) > 5e-3
    assert np.abs(with_observer[:3]).max() < 3e-4


@pytest.mark.long
def test_a_push_on_a_closed_loop_leaves_no_error():
    q, push = system_of("planar_3rrr").tree.q0, np.array([0.4, -0.2, 0.3, 0, 0, 0, 0, 0, 0])
    without, learned = (
        np.linalg.norm(settled(rings(observer), q, count=2000, push=push)[:2])
        for observer in (None, DisturbanceObserver())
    )
    assert without > 1e-3
    assert learned < 0.02 * without


def test_a_tick_after_bad_memory_is_solved():
    law, rng = quadruped(DisturbanceObserver()), np.random.default_rng(5)
    q, v = stand(law.system, rng, spread=0.02, key="stand")
    for wild in (np.nan, np.inf, -1e19, 1e300):
        z = law.solve(q, v, z=np.full(law.z0.size, wild)).z_next
        assert np.all(np.isfinite(z))
        assert law.solve(q, v, z=z).status == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bandwidth": 400.0}, "expected at most"),
        ({"bandwidth": 100.0, "delay": 5}, "expected at most"),
        ({"bandwidth": 0.0}, "positive"),
    ],
)
def test_an_observer_that_cannot_work_is_refused(options, words):
    delay = options.pop("delay", 0)
    refused(ProblemError, words, lambda: rings(DisturbanceObserver(**options), delay=delay))
