"""What a run says of itself: a robot that lies, leans or leaves its stops."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.validation import Criteria
from mbcasadi.validation.metrics import TrackingStatistics
from mbcasadi.validation.metrics.plant_metrics import plant_metrics

WALKER = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="trunk" pos="0 0 1"><freejoint/><geom name="trunk" type="box" size=".3 .1 .1"/>
<body name="leg" pos="0 0 -.2"><joint name="knee" type="slide" axis="0 0 1" range="-1 1"/>
<geom name="foot" type="box" size=".2 .2 .3" pos="0 0 -.5" mass=".1"/></body></body>
<body name="load" pos="2 0 .2"><freejoint/><geom type="box" size=".2 .2 .2"/></body></worldbody>
<actuator><motor joint="knee" ctrlrange="-1 1"/></actuator></mujoco>"""
STANDING = [0, 0, 1, 1, 0, 0, 0, 0, 2, 0, 0.2, 1, 0, 0, 0]


def idle(t, q, v):
    return np.zeros(1)


@pytest.fixture(scope="module")
def standing():
    """A run of one tick; the tests change its poses."""
    return mb.validate(idle, WALKER, 0.004, q0=STANDING).runs[0]


def poses(run, *changes):
    """Return the standing pose, then poses with other numbers."""
    q = np.tile(np.array(STANDING, dtype=float), (1 + len(changes), 1))
    q[:, 2] -= 1e-3  # into the floor, so that the foot touches
    for row, change in zip(q[1:], changes, strict=True):
        row[list(change)] = list(change.values())
    t = 0.2 * np.arange(len(q))
    return replace(run.recording, t=t, q=q, mocap=np.zeros((len(q), 0)), u=np.zeros((len(q), 1)))


def values(run, *changes, tracking=()):
    assert run.model is not None
    rows = plant_metrics(poses(run, *changes), run.model, tracking)
    return {metric.name: metric.value for metric in rows}


def test_height_tilt_contacts_and_stops_are_those_of_the_poses(standing):
    angle = 0.3
    lean = {3: np.cos(angle / 2), 5: np.sin(angle / 2)}
    lying = {2: 0.099, 7: 0.9}  # the trunk on the floor
    found = values(standing, lean, lying)
    assert found["plant.height"] == pytest.approx(0.099 / 1.0, abs=2e-3)  # the floor is at -1 mm
    assert found["plant.tilt"] == pytest.approx(angle)
    assert found["plant.body_contact"] == pytest.approx(1 / 3)
    assert found["plant.joint_beyond"] == 0.0
    turned = values(standing, {3: np.cos(0.5), 6: np.sin(0.5)})
    assert turned["plant.tilt"] == pytest.approx(0.0, abs=1e-7)  # about the vertical
    assert values(standing, {7: 1.1})["plant.joint_beyond"] == pytest.approx(0.05)


def test_a_load_is_no_robot_and_what_flies_or_follows_a_motion_need_not_stand(standing):
    assert "plant.height" in values(standing, {10: -5.0})
    assert values(standing, {10: -5.0})["plant.height"] == pytest.approx(1.0, abs=2e-3)
    moving = TrackingStatistics("trunk.z", "m", 0.0, 0.0, 0.3, 0.0)
    assert values(standing, {2: 0.1}, tracking=[moving]).keys() == {"plant.joint_beyond"}
    held = replace(moving, amplitude=0.0)
    assert "plant.height" in values(standing, {2: 0.1}, tracking=[held])
    high = [0.0, 0.0, 2.0, *STANDING[3:]]
    flying = mb.validate(idle, WALKER, 0.05, q0=high).runs[0]
    assert np.isnan(flying.metric("plant.height"))


def test_a_quadruped_that_is_not_driven_falls_and_has_not_passed():
    path = mb.models.path("quadruped")
    stand = mujoco.MjModel.from_xml_path(str(path)).key("stand").qpos
    report = mb.validate(lambda *_: np.zeros(12), path, 0.5, q0=stand)
    assert report.passed is False
    (run,) = report.runs
    assert "plant.height" in {verdict.metric for verdict in run.verdicts if not verdict.passed}
    assert mb.validate(lambda *_: np.zeros(12), path, 0.02, q0=stand).passed  # it still stands
    assert mb.validate(
        lambda *_: np.zeros(12), path, 0.5, q0=stand, criteria=Criteria({})
    ).passed  # required: nothing but its end


def test_a_run_that_nothing_judges_is_not_judged_on_the_page_either():
    report = mb.validate(lambda *_: np.zeros(1), mb.models.path("four_bar"), 0.05)
    assert report.passed is None
    assert report.to_dict()["passed"] is None
    assert "not judged" in str(report)
    assert ">not judged<" in report.to_html()
    failed = replace(report.runs[0], verdicts=(replace(report.runs[0].verdicts[0], passed=False),))
    assert replace(report, runs=(report.runs[0], failed)).passed is False
