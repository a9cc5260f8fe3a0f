"""`validate` tells a controller the plant of its servos."""

import numpy as np
import pytest
from support.corpora import robot

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import ScenarioOptions, compile_controller
from mbcasadi.validation.run import fitted_to_plant

SERVO = """
<mujoco><option integrator="implicitfast" timestep="0.002"/><worldbody><body>
<joint name="hinge" axis="0 1 0" armature="0.01"/><geom size="0.05" pos="0.3 0 0" mass="0.4"/>
</body></worldbody><actuator><position name="hinge" joint="hinge" kp="900" kv="90"/></actuator>
</mujoco>
"""

MOTOR = SERVO.replace("position", "motor").replace(' kp="900" kv="90"', "")


def controller_of(**options):
    """Return a controller of one servo that swings fast."""
    return InverseDynamicsQP(mb.read_mjcf(SERVO), [PostureTask(kp=400.0)], period=0.004, **options)


def swing(t):
    """Return the reference of a swing of 0.6 rad, 1.5 times a second."""
    w = 3 * np.pi
    return 0.6 * np.array([1 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t)])


def rms(report):
    """Return the RMS tracking error of the only joint, rad, after the start."""
    run = report.runs[0]
    recording = run.recording
    return float(np.sqrt(np.mean((recording.ref[:, 0] - recording.q[:, 0])[100:] ** 2)))


def test_the_plants_integrator_step_and_delay_reach_the_controller():
    controller = controller_of()
    plant = Plant(SERVO, timestep=0.001)
    fitted = fitted_to_plant(controller, plant, 2)
    made_for = fitted.plant_of_servos
    assert (made_for.rule, made_for.timestep, made_for.delay) == ("implicitfast", 0.001, 2)
    assert fitted_to_plant(controller, Plant(SERVO), 0) is controller
    chosen = controller_of(servo_plant="continuous", delay=1)
    assert fitted_to_plant(chosen, plant, 3) is chosen


@pytest.mark.parametrize("delay", [0, 1, 3])
@pytest.mark.parametrize("step", [0.004, 0.001])
@pytest.mark.every(3)
def test_a_stiff_servo_follows_about_as_well_as_a_motor(delay, step):
    # A light servo has its new speed from the start of a tick on, as a motor has in one step.
    servo, motor = (
        mb.validate(
            InverseDynamicsQP(mb.read_mjcf(xml), [PostureTask(kp=400.0)], period=0.004),
            xml,
            1.5,
            reference=swing,
            delay=delay,
            fast=True,
            scenario=ScenarioOptions(timestep=timestep),
        )
        for xml, timestep in ((SERVO, step), (MOTOR, 0.004))
    )
    assert set(servo.runs[0].recording.status) == {0}
    assert rms(servo) < 1.5 * rms(motor)


def test_without_the_map_it_does_not():
    assert rms(mb.validate(controller_of(), SERVO, 2.0, reference=swing)) < 7e-3
    before = controller_of(servo_plant="start")
    assert rms(mb.validate(before, SERVO, 2.0, reference=swing)) > 3e-2


def test_a_law_that_was_compiled_for_another_plant_is_reported():
    with compile_controller(controller_of()) as law:
        report = mb.validate(law, SERVO, 0.2, reference=swing, delay=1)
    notes = [note for note in report.runs[0].notes if "servos" in note]
    assert len(notes) == 1
    assert "delay 0; the plant is implicitfast with steps of 0.002 s, delay 1" in notes[0]


SPEC = """
type = "inverse_dynamics_qp"
period = 0.002
[start]
keyframe = "home"
[[task]]
type = "frame"
frame = "attachment_site"
kp = 900.0
[task.reference]
y = { amplitude = 150, unit = "mm", frequency = 1.167, ramp = 1.0 }
z = { amplitude = 150, unit = "mm", frequency = 1.167, phase = 90, ramp = 1.0 }
rx = { amplitude = 10, unit = "deg", frequency = 1.167, ramp = 1.0 }
[[task]]
type = "posture"
kp = 25.0
weight = 1e-4
[limits.joint]
[validation]
duration = 2.5
delay = %d
"""


@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("name", ["men__kuka_iiwa_14__iiwa14", "men__universal_robots_ur5e__ur5e"])
def test_stock_servos_follow_a_circle_at_1_1_m_per_s_to_a_millimetre(name, delay, tmp_path):
    from mbcasadi.validation.spec import read_spec, run_spec

    path = tmp_path / "circle.toml"
    path.write_text(SPEC % delay, encoding="utf-8")
    spec = read_spec(path).with_trial(fast=delay == 0)  # once as C, once as the Function
    recording = run_spec(spec, robot(name)).runs[0].recording
    settled = recording.t > 1.5
    error = recording.monitor["error"][settled]
    assert set(recording.status) == {0}
    assert np.sqrt(np.mean(np.sum(error[:, :3] ** 2, axis=1))) < 1e-3
    assert np.sqrt(np.mean(np.sum(error[:, 3:6] ** 2, axis=1))) < 1.5e-3
    speed = np.diff(recording.monitor["target"][settled][:, :3], axis=0) / 0.002
    assert np.linalg.norm(speed, axis=1).max() > 1.0
