"""A clipped servo adds no inertia: a light joint would move by many times what is planned."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.mechanisms_of_control import limited

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.control.inverse_dynamics.parts.unclipped import UNCLIPPED
from mbcasadi.description.status import Flag

PERIOD, FORCE, KP, KD, LIGHT = 0.002, 39.0, 2000.0, 100.0, 5e-4
FASTEST = 3.0  # rad/s
OWN, OF_JOINT = f'forcerange="-{FORCE} {FORCE}"', f'actuatorfrcrange="-{FORCE} {FORCE}"'
ARM = """
<mujoco><compiler angle="radian" autolimits="true"/>
  <option timestep="0.002" integrator="{integrator}" gravity="0 0 0"/>
  <worldbody><body>
    <joint name="base" axis="0 0 1" range="-3 3"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04" mass="4"/>
    <body pos=".4 0 0">
      <joint name="wrist" axis="0 0 1" range="-3 3" armature="5e-4" {of_joint}/>
      <geom type="sphere" size=".01" mass=".2"/></body></body></worldbody>
  <actuator><position name="base" joint="base" kp="2000" kv="100" forcerange="-39 39"/>
    <position name="wrist" joint="wrist" kp="2000" kv="100" {own}/></actuator></mujoco>
"""


def arm(own: str = OWN, of_joint: str = "", integrator: str = "implicitfast") -> str:
    """Return a heavy joint and a light one, both with a strongly damped servo that is clipped."""
    return ARM.format(own=own, of_joint=of_joint, integrator=integrator)


def law_of(xml: str, delay: int = 0, **limits) -> InverseDynamicsQP:
    return InverseDynamicsQP(
        mb.read_mjcf(xml),
        [PostureTask(kp=400.0)],
        joint_limits=JointLimits(**limits) if limits else None,
        period=PERIOD,
        delay=delay,
    )


def far(law: InverseDynamicsQP, wrist: float = 2.0) -> np.ndarray:
    """Return a reference that takes all of the servos' forces."""
    return law.reference({"posture.q": np.array([1.0, wrist])})


@pytest.mark.parametrize(("own", "of_joint"), [(OWN, ""), ("", OF_JOINT)])
def test_a_tick_that_takes_all_of_a_servos_force_moves_mujoco_as_planned(own, of_joint):
    xml = arm(own, of_joint)
    law, model = law_of(xml), mujoco.MjModel.from_xml_string(xml)
    solution = law.solve(np.zeros(2), np.zeros(2), far(law))
    assert solution.status == 0
    assert solution.p[1] > 0.8 * FORCE
    data = mujoco.MjData(model)
    data.ctrl[:] = solution.u
    mujoco.mj_step(model, data)
    assert_allclose(data.qvel / PERIOD, solution.a, rtol=1e-6)
    data = mujoco.MjData(model)
    data.ctrl[:] = [solution.u[0], FORCE / KP]  # the light joint clipped
    mujoco.mj_step(model, data)
    assert data.qvel[1] / PERIOD > 100 * abs(solution.a[1])


def test_a_servo_keeps_from_its_clip_by_the_share_of_inertia_that_it_would_lose():
    law = law_of(arm())
    lost = PERIOD * KD / (law.servos.inertias.min(axis=0) + PERIOD * KD)
    assert lost[1] > 0.99
    assert lost[0] < 0.5
    kept = FORCE * (1 - (1 - UNCLIPPED) * lost)
    assert_allclose(law.ranges.force, np.outer(kept, [-1, 1]), rtol=1e-9)


def test_ranges_stay_where_a_clipped_servo_loses_nothing_or_others_are_narrower():
    explicit = law_of(arm(integrator="Euler").replace('kv="100"', 'kv=".1"'))
    assert_array_equal(explicit.ranges.force, np.outer([FORCE, FORCE], [-1, 1]))
    narrow = np.outer([5.0, 3.0], [-1, 1])
    own = InverseDynamicsQP(
        mb.read_mjcf(arm()), [PostureTask()], force_limits=narrow, period=PERIOD
    )
    assert_array_equal(own.ranges.force, narrow)


def test_usual_braking_is_that_of_the_servo_which_is_not_clipped():
    both = limited(law_of(arm(), joints=("base", "wrist"), reserve=0.0))
    alone = 0.5 * FORCE / (PERIOD * KD + LIGHT)
    assert both.braking[1] < alone
    assert both.braking[1] > 0.5 * alone
    assert both.followed[1] > 2 * both.braking[1]  # tasks are not slowed by it
    given = limited(law_of(arm(), joints=("base", "wrist"), braking=(30.0, 40.0)))
    assert_array_equal(given.followed, given.braking)


@pytest.mark.long
@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.every(2)
def test_generated_c_keeps_a_light_joint_within_its_speed_in_mujoco(delay):
    law = law_of(arm(), delay, velocity=FASTEST)
    ends = far(law), far(law, -2.0)
    report = mb.validate(
        law, arm(), 1.0, reference=lambda t: ends[t > 0.5], delay=delay, perturb={"mass": 0.1}
    )
    recording = report.runs[0].recording
    fastest = np.abs(recording.v[:, 1]).max()
    assert 0.99 * FASTEST < fastest < 1.01 * FASTEST
    assert not recording.status.any()
    assert not (recording.flags.astype(int) & Flag.UNVIABLE).any()


def test_a_joint_that_is_faster_than_its_limit_is_flagged():
    law = law_of(arm(), velocity=FASTEST, braking=40.0)
    for speed, flagged in ((FASTEST, False), (FASTEST + 0.07, False), (FASTEST + 0.09, True)):
        for sign in (1.0, -1.0):
            solution = law.solve(np.zeros(2), [0.0, sign * speed], law.reference_at(np.zeros(2)))
            assert solution.status == 0
            assert bool(solution.flags & Flag.UNVIABLE) == flagged
