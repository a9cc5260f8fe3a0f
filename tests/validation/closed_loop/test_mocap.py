"""A closed loop with a plant whose mocap body moves: what it holds follows, and so do our rows."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control.laws import computed_torque
from mbcasadi.errors import ShapeError, UnknownNameError
from mbcasadi.plant import Plant, draw_frames
from mbcasadi.validation import ScenarioOptions

LED_ARM = """
<mujoco model="led_arm">
  <option timestep="0.001"/>
  <worldbody>
    <body name="guide" mocap="true" pos="0.8 0 0"><geom size="0.02" contype="0"/></body>
    <body name="upper"><joint name="a" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.5 0 0" contype="0"/>
      <body name="fore" pos="0.5 0 0"><joint name="b" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.5 0 0" contype="0"/>
      </body>
    </body>
  </worldbody>
  <equality><connect name="grip" body1="fore" body2="guide" anchor="0.5 0 0"/></equality>
  <actuator><motor name="a" joint="a"/><motor name="b" joint="b"/></actuator>
</mujoco>
"""
ELBOW = np.arccos(0.4 / 0.5)
START = [-ELBOW, 2 * ELBOW]  # the hand is at the guide, 0.8 m away
LAG = 1e-2  # m; MuJoCo takes the guide as at rest: at 0.4 m/s the connect is late by some ms
RIGID = 0.01  # share of the constraint force by which the stiffest constraint differs from our rows
STOP, REST = 0.5, 0.8  # s: the guide stops; the arm has come to rest


def moved_guide(t):
    share = np.sin(np.pi / 2 * min(t / STOP, 1.0)) ** 2
    return [0.8 - 0.1 * share, 0.0, 0.2 * share]


def test_a_mocap_body_leads_the_plant_and_our_equations():
    system = mb.read_mjcf(LED_ARM, parameters=["mocap:guide:pos"])
    weightless = computed_torque(system, mb.control.PostureTask(kp=0.0, kd=2.0))
    report = mb.validate(
        weightless,
        LED_ARM,
        1.0,
        rigid=True,
        q0=START,
        reference=weightless.reference_at(START),
        scenario=ScenarioOptions(mocap={"guide": moved_guide}, p=moved_guide),
    )
    run = report.runs[0]
    recording, comparison = run.recording, run.comparison
    assert recording.columns["mocap"].names[:4] == ("guide.x", "guide.y", "guide.z", "guide.qw")
    expected = np.array([moved_guide(t) for t in recording.t])
    np.testing.assert_allclose(recording.mocap[:, :3], expected)
    assert recording.closure.max() < LAG
    assert np.ptp(recording.q[:, 1]) > 0.1
    assert comparison is not None
    assert comparison.drift.max() < LAG  # 0.2 m, were our guide where the model has it
    assert comparison.force_error[comparison.t > REST].max() < RIGID
    assert any("Mocap bodies count as at rest" in note for note in run.notes)


def test_poses_of_mocap_bodies_are_checked():
    plant = Plant(LED_ARM)
    plant.reset(START, mocap_poses={"guide": [0.8, 0, 0, 2, 0, 0, 0]})
    np.testing.assert_array_equal(plant.mocap_poses, [0.8, 0, 0, 1, 0, 0, 0])
    with pytest.raises(UnknownNameError, match="guide"):
        plant.move_mocap({"fore": [0, 0, 0]})
    with pytest.raises(ShapeError, match="position x y z"):
        plant.move_mocap({"guide": [0, 0]})
    with pytest.raises(ShapeError, match="length 0"):
        plant.move_mocap({"guide": [0, 0, 0, 0, 0, 0, 0]})
    with pytest.raises(ShapeError, match=r"mocap has shape \(1, 3\)"):
        draw_frames(plant.model, np.zeros((1, 2)), mocap=np.zeros((1, 3)))
