"""A gripper's weld, off in the file, closes in mid-run: in the plant, and in the mask."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.validation import ScenarioOptions

PERIOD, DURATION, CLOSES = 0.002, 1.2, 0.4  # s
AMPLITUDE, RATE = 0.1, 2 * np.pi  # m, rad/s, of the hand
TRACKED = 2e-3  # m: softness of MuJoCo's weld
MISSED = 3 * TRACKED  # of a controller that does not count the box

GRIPPER = f"""
<mujoco model="gripper"><option timestep="{PERIOD}" gravity="0 0 0"/><worldbody>
<body name="palm"><joint name="palm" type="slide" axis="1 0 0"/>
<geom size="0.03" mass="1" contype="0" conaffinity="0"/></body>
<body name="box" pos="0.2 0 0"><joint name="box" type="slide" axis="1 0 0"/>
<geom size="0.03" mass="6" contype="0" conaffinity="0"/></body>
</worldbody><equality>
<weld name="grasp" body1="palm" body2="box" active="false"/>
</equality><actuator><motor name="pull" joint="palm" ctrlrange="-200 200"/></actuator></mujoco>
"""


def wave(t):
    """Return position, speed and acceleration of the palm: at rest until the weld is closed."""
    s = max(t - CLOSES, 0.0)
    x = AMPLITUDE * (1 - np.cos(RATE * s))
    return np.array(
        [x, AMPLITUDE * RATE * np.sin(RATE * s), AMPLITUDE * RATE**2 * np.cos(RATE * s)]
    )


def error_with(mask):
    """Return the largest error of the palm after the weld has closed, m."""
    system = mb.read_mjcf(GRIPPER, switchable=True)
    controller = InverseDynamicsQP(system, [PostureTask(("palm",), kp=60.0)], period=PERIOD)

    def reference(t):
        ref = np.zeros(controller.nref)
        x, v, a = wave(t)
        for what, value in (("q", x), ("v", v), ("a", a if t >= CLOSES else 0.0)):
            ref[controller.reference_slices[f"posture.{what}"]] = value
        return ref

    scenario = ScenarioOptions(mask=mask, switch=lambda t: {"grasp": t >= CLOSES})
    run = mb.validate(
        controller, GRIPPER, DURATION, reference=reference, scenario=scenario, rigid=True
    ).runs[0]
    recording = run.recording
    assert recording.status.max() <= 1
    moved = recording.q[-1] - recording.q[0]
    assert moved[1] == pytest.approx(moved[0], abs=TRACKED)  # the box goes with the palm
    places = np.array([wave(t)[0] for t in recording.t])
    return float(np.abs(recording.q[:, 0] - places).max())


@pytest.mark.long
def test_rows_that_the_file_switches_off_are_switched_on_in_a_run():
    assert error_with(lambda t: np.array([float(t >= CLOSES)])) < TRACKED
    assert error_with(np.zeros(1)) > MISSED


def test_the_first_mask_is_that_of_the_file():
    system = mb.read_mjcf(GRIPPER, switchable=True)
    assert system.nc == 6
    assert not np.any(system.mask)
