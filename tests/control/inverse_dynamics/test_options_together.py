"""Options of inverse dynamics in one controller: the loop holds, and what excludes each other."""

import numpy as np
import pytest
from support.loops_in_mujoco import ticks
from support.mechanisms_of_control import feet, system_of

import mbcasadi as mb
from mbcasadi.control import (
    ActuatorLimits,
    DisturbanceObserver,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    LoadSharing,
    PostureTask,
    SoftLimit,
)
from mbcasadi.plant import Plant

SERVOS = """
<mujoco><option timestep="0.001" integrator="implicitfast"/>
  <worldbody><body name="upper"><joint name="a" axis="0 1 0" range="-120 120"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
    <body name="lower" pos=".4 0 0"><joint name="b" axis="0 1 0" range="-140 140"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
      <site name="tool" pos=".3 0 0"/></body></body></worldbody>
  <actuator><position joint="a" kp="2000" kv="100" forcerange="-90 90"/>
    <position joint="b" kp="800" kv="40" forcerange="-60 60"/></actuator></mujoco>
"""
TRUNK = FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base")
POSTURE = PostureTask(kp=50.0, weight=1.0)
LEGS = {
    "observer, delay, joints, rates": {
        "observer": DisturbanceObserver(bandwidth=5.0),
        "delay": 1,
        "joint_limits": JointLimits(velocity=15.0, braking=200.0),
        "actuator_limits": ActuatorLimits(rate=4000.0, power=800.0),
        "torque_rate_weight": 1e-8,
    },
    "levels, cones, sharing, observer, soft joints": {
        "levels": [["base"], ["posture"]],
        "cone": "quadratic",
        "sharing": LoadSharing(),
        "observer": DisturbanceObserver(bandwidth=5.0),
        "joint_limits": JointLimits(velocity=15.0, braking=200.0),
        "soft": [SoftLimit("joints")],
    },
    "cones, soft joints at linear prices, tunable": {
        "cone": "quadratic",
        "joint_limits": JointLimits(velocity=15.0, braking=200.0),
        "soft": [SoftLimit("joints", linear=1.0)],
        "observer": DisturbanceObserver(bandwidth=5.0),
        "tunable": ("gains", "friction", "limits", "prices"),
    },
    "sharing of feet, soft normal forces": {
        "sharing": LoadSharing(rows="all"),
        "soft": [SoftLimit("normal forces")],
        "min_force": 1.0,
    },
}


def standing(options):
    own = dict(options)
    contact = {key: own.pop(key) for key in ("cone", "min_force") if key in own}
    system = system_of("quadruped")
    return InverseDynamicsQP(system, [TRUNK, POSTURE], feet(**contact), period=0.002, **own)


def long_with_levels(name):
    """Return a set of options as a parameter; levels are long, and have tests of their own."""
    return pytest.param(name, marks=[pytest.mark.long] * name.startswith("levels"))


@pytest.fixture(scope="module", params=map(long_with_levels, LEGS))
def law(request):
    return standing(LEGS[request.param])


@pytest.mark.long
def test_servos_levels_and_an_observer_hold_an_arm():
    system = mb.read_mjcf(SERVOS)
    law = InverseDynamicsQP(
        system,
        [FrameTask("tool", position="xz", orientation="", kp=400.0), PostureTask(kp=50.0)],
        levels=[["tool"], ["posture"]],
        observer=DisturbanceObserver(bandwidth=8.0),
        joint_limits=JointLimits(braking=100.0),
        actuator_limits=ActuatorLimits(rate=20000.0),
        period=0.002,
    )
    q0 = np.array([0.6, -1.0])
    ref = law.reference_at(q0)
    report = mb.validate(law, SERVOS, 2.0, reference=ref, q0=q0, perturb={"mass": 0.1}, delay=1)
    recording = report.runs[0].recording
    assert np.all(recording.status == 0)
    assert np.abs(recording.monitor["error"][-1][:2]).max() < 1e-4


def test_options_together_hold_a_stance_in_mujoco(law):
    plant = Plant(mb.models.path("quadruped"), timestep=0.002, perturb={"mass": 0.05})
    q0 = law.system.tree.keyframes["stand"]
    plant.reset(q0)
    ref = law.reference_at(q0)
    ref[law.reference_slices["base.position"]] += [0.01, -0.01, -0.01]
    tuning = {"tuning": [each.default for each in law.tuning]}
    assert all(out["status"] == 0 for out in ticks(law, plant, 250, ref, **tuning))
    error = np.abs(plant.q[:3] - ref[law.reference_slices["base.position"]]).max()
    assert error < 0.02
