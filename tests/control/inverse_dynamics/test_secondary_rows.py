"""Which rows of tasks heavier tasks leave no freedom."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.validation import ScenarioOptions

# Three links in a plane carry a tip; a slide beside them carries nothing.
ARM = """
<mujoco model="arm">
  <option gravity="0 0 0"/>
  <worldbody>
    <body><joint name="j1" axis="0 0 1"/><geom type="sphere" size="0.05" pos="1 0 0" mass="1"/>
      <body pos="1 0 0"><joint name="j2" axis="0 0 1"/>
        <geom type="sphere" size="0.05" pos="1 0 0" mass="1"/>
        <body pos="1 0 0"><joint name="j3" axis="0 0 1"/>
          <geom type="sphere" size="0.05" pos="1 0 0" mass="1"/>
          <site name="tip" pos="1 0 0"/></body></body></body>
    <body pos="0 0 1"><joint name="beside" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1" mass="1"/></body>
  </worldbody>
  <default><motor ctrlrange="-60 60"/></default>
  <actuator><motor name="m1" joint="j1"/><motor name="m2" joint="j2"/><motor name="m3" joint="j3"/>
    <motor name="m4" joint="beside"/></actuator>
</mujoco>
"""


def arm_law(weight: float, **options: object) -> InverseDynamicsQP:
    tip = FrameTask("tip", position="xy", orientation="", kp=100.0)
    return InverseDynamicsQP(
        mb.read_mjcf(ARM), [tip, PostureTask(kp=25.0, weight=weight)], period=0.005, **options
    )


def test_a_light_posture_of_a_redundant_arm_is_secondary_but_for_the_free_joint() -> None:
    joints = tuple(f"posture.j{i}" for i in (1, 2, 3))
    assert arm_law(1e-3).controller.secondary == joints
    assert arm_law(0.5).controller.secondary == ()
    assert arm_law(0.0).controller.secondary == (*joints, "posture.beside")
    levels = arm_law(1.0, levels=[["tip"], ["posture"]])
    assert levels.controller.secondary == joints


def test_tasks_that_can_be_met_together_are_all_judged() -> None:
    system = mb.read_mjcf(ARM)
    tip = FrameTask("tip", position="xy", orientation="")
    third = PostureTask(joints=["j3"], weight=1e-3)
    assert InverseDynamicsQP(system, [tip, third]).controller.secondary == ()
    both = PostureTask(joints=["j2", "j3"], weight=1e-3)
    assert InverseDynamicsQP(system, [tip, both]).controller.secondary == (
        "posture.j2",
        "posture.j3",
    )
    loop = InverseDynamicsQP(mb.read_mjcf(models.path("four_bar")), [PostureTask()])
    assert loop.controller.secondary == ()  # three joints, one freedom: a consistent target


@pytest.mark.parametrize("weight", [1e-3, 0.5])
def test_a_posture_that_the_tip_pulls_away_fails_the_run_only_where_it_is_judged(
    weight: float,
) -> None:
    law = arm_law(weight)
    q0 = np.array([0.4, 0.5, 0.6, 0.0])
    ref = law.reference_at(q0)
    ref[law.reference_slices["tip.position"]] -= [1.2, 0.3]  # the joints turn by more than 0.5 rad
    report = mb.validate(
        law, ARM, 2.0, q0=q0, reference=ref, scenario=ScenarioOptions(timestep=5e-3)
    )
    run = report.runs[0]
    posture = [row for row in run.tracking if row.name.startswith("posture.j")]
    assert max(row.rms for row in posture) > 0.3
    assert run.passed == (weight == 1e-3)
    said = "Reported, not judged: posture (3 rows)" in str(report)
    assert said == (weight == 1e-3)
