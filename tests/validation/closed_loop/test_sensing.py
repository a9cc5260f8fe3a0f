"""A law that is told only what an estimator makes of MuJoCo's sensors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.bare_node import BareNode

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.estimation import (
    Encoders,
    Footing,
    Imu,
    Measured,
    base_estimator,
    encoder_noise,
    manifold_filter,
)
from mbcasadi.plant import Plant, compile_model
from mbcasadi.plant.imu import with_imu
from mbcasadi.validation import (
    CampaignOptions,
    Criteria,
    ReportOptions,
    Sensing,
    SensorErrors,
    Trial,
    campaign,
    case_report,
    cases,
    compile_controller,
)
from mbcasadi.validation.demo import __file__ as demo
from mbcasadi.validation.spec import build_experiment, read_spec

MODEL = mb.models.path("quadruped")
ENCODER = encoder_noise(14)
ERRORS = {
    "gyro": SensorErrors(bias=5e-3, walk=1e-5),
    "accelerometer": SensorErrors(bias=0.05, walk=1e-4),
    "position": SensorErrors(noise=0.0, quantum=ENCODER * np.sqrt(12)),
}


@pytest.fixture(scope="module")
def stance():
    experiment = build_experiment(read_spec(demo.replace("__init__.py", "quadruped.toml")), MODEL)
    with compile_controller(experiment.controller) as law:
        yield experiment, law


def estimator_of(experiment, **footing):
    system = experiment.controller.system
    return base_estimator(
        system, experiment.controller.contacts, imu=Imu("trunk"),
        encoders=Encoders(noise=ENCODER, rate_noise=0.01), footing=Footing(**footing),
        q0=experiment.q0, period=experiment.controller.period,
    )  # fmt: skip


def run_of(stance, sensing, duration=2.5, model=MODEL):
    experiment, law = stance
    report = mb.validate(
        law, model, duration, reference=experiment.reference, q0=experiment.q0,
        perturb={"mass": 0.1}, delay=1, sensors=sensing, criteria=Criteria(settle=1.0),
        report=ReportOptions(explain=False),
    )  # fmt: skip
    run = report.runs[0]
    return run, {metric.name: metric.value for metric in run.metrics}


@pytest.fixture(scope="module")
def estimated(stance):
    """Return the run, and its figures, of the stance by its own estimator."""
    return run_of(stance, Sensing(estimator_of(stance[0]), ERRORS))


@pytest.mark.long
def test_a_robot_stands_and_sways_by_its_imu_and_encoders(stance, estimated):
    run, values = estimated
    told = run_of(stance, None)[1]
    assert not run.recording.events
    assert any("Nothing observes: position of the base" in note for note in run.notes)
    assert values["tracking.rms_share"] < 1.1 * told["tracking.rms_share"]
    assert values["estimate.velocity"] < 0.005
    assert 0 < values["estimate.tilt_rms"] < values["estimate.tilt"] < np.deg2rad(0.5)
    assert values["estimate.within"] >= 0.98
    assert values["estimate.doubted"] == 0
    recording = run.recording
    assert np.ptp(recording.q[:, 0]) > 0.05, "the trunk moves"
    assert np.abs(recording.monitor["estimate_q"] - recording.q).max() > 1e-5, "and is estimated"
    assert recording.columns["monitor.estimate_y"].names[0] == "gyro.x"


@pytest.mark.long
def test_balls_roll(stance, estimated):
    """Without their rolling, velocities are wrong by the turning of the legs times the radius."""
    fixed = Sensing(estimator_of(stance[0], rolling=1e-9), ERRORS)
    wrong = run_of(stance, fixed)[1]["estimate.velocity"]
    assert wrong > 2 * estimated[1]["estimate.velocity"]


def test_samples_get_lost_and_come_late(stance):
    experiment, _ = stance
    errors = ERRORS | {
        "gyro": SensorErrors(missing=0.02),
        "position": SensorErrors(noise=ENCODER, delay=1, missing=0.02),
    }
    sensing = Sensing(estimator_of(experiment), errors, seed=1)
    run, values = run_of(stance, sensing, 1.5)
    assert not run.recording.events
    assert values["status.safe_output"] == 0
    assert 0.01 < values["estimate.doubted"] < 0.03, "two in a hundred samples of the IMU"
    y = run.recording.monitor["estimate_y"]
    assert 0.01 < np.isnan(y[:, 0]).mean() < 0.03
    again, _ = run_of(stance, sensing, 1.1)
    y_again = again.recording.monitor["estimate_y"]
    assert np.array_equal(y_again, y[: len(y_again)], equal_nan=True)
    assert len(y_again) > len(y) // 2


def test_the_model_gets_an_imu_where_it_has_none(stance):
    experiment, _ = stance
    named = with_imu(MODEL, "trunk")
    plant = Plant(named.model)
    plant.reset(experiment.q0)
    plant.step(np.zeros(plant.nu), 3)
    assert plant.mean_sensor(named.names["gyro"]).shape == (3,)
    assert with_imu(named.model, "trunk").names == named.names
    on_body = with_imu(MODEL, "FL_foot", "body")
    assert with_imu(on_body.model, "FL_foot", "body").names == on_body.names
    with pytest.raises(ProblemError, match="no gyro and no accelerometer at site 'trunk'"):
        with_imu(compile_model(MODEL), "trunk")
    with pytest.raises(ProblemError, match="has no site 'trunc'"):
        with_imu(MODEL, "trunc")


FALLING = [0.3, 0, 0, 0.4, -0.8, 1.2]


def falling(timestep, frame="FL_foot"):
    """A plant that falls and turns, its damped legs swinging, with an IMU at a body."""
    named = with_imu(MODEL, frame, "body")
    plant = Plant(named.model, timestep=timestep)
    rates = np.random.default_rng(2).normal(0, 3, plant.nv - 6)
    plant.reset(plant.integrate(None, np.eye(plant.nv)[2] * 5.0), [*FALLING, *rates])
    plant.measure(np.zeros(plant.nu))
    return plant, named.names


def test_increments_add_up_to_the_motion_of_the_plant():
    """Integrated as by a strapdown, at steps whose implicit damping MuJoCo's readings leave out."""
    system, h = mb.read_mjcf(MODEL), 2e-3
    plant, names = falling(h)
    foot = system.frame("FL_foot", "body")

    def motion():
        v = np.array(foot.jacobian(plant.q))[:3] @ plant.v
        return Rotation.from_matrix(np.array(foot.pose(plant.q)[1])), v

    R, v = motion()
    by_readings, g = v, np.array([0, 0, -9.81])
    for _ in range(50):
        plant.step(np.zeros(plant.nu))
        turn = Rotation.from_rotvec(plant.mean_sensor(names["gyro"]) * h)
        half = R * Rotation.from_rotvec(turn.as_rotvec() / 2)
        v = v + half.apply(plant.mean_sensor(names["accelerometer"])) * h + g * h
        by_readings = by_readings + (R.apply(plant.sensor(names["accelerometer"])) + g) * h
        R = R * turn
    end = motion()
    assert (R.inv() * end[0]).magnitude() < 1e-9
    assert np.abs(v - end[1]).max() < 1e-9
    assert np.abs(by_readings - end[1]).max() > 0.02, "MuJoCo's own readings do not"


def test_increments_are_mujocos_readings_where_steps_are_short():
    plant, names = falling(1e-6)
    for kind, scale in (("gyro", 5.0), ("accelerometer", 100.0)):
        plant.step(np.zeros(plant.nu), 3)
        gap = plant.mean_sensor(names[kind]) - plant.sensor(names[kind])
        assert np.abs(gap).max() < 1e-3 * scale, "of the state a few steps before"


def test_errors_of_no_sensor_and_senseless_numbers_are_refused(stance):
    experiment, _ = stance
    own = estimator_of(experiment)
    with pytest.raises(UnknownNameError, match="giro"):
        Sensing(own, {"giro": SensorErrors()})
    with pytest.raises(ProblemError, match="bias = -1"):
        SensorErrors(bias=-1.0)
    with pytest.raises(ProblemError, match=r"missing = 2\.0; expected a share"):
        SensorErrors(missing=2.0)
    with pytest.raises(ProblemError, match="on_force = -3"):
        Sensing(own, on_force=-3.0)
    other = replace(own, period=2 * own.period)
    with pytest.raises(ProblemError, match="the estimator's period is"):
        run_of(stance, Sensing(other), duration=0.1)
    assert replace(Sensing(own), seed=3).seed == 3


SOLES = [f"{side}_foot_{k}" for side in ("left", "right") for k in (1, 2, 3, 4)]


@pytest.mark.long
def test_a_humanoid_sways_on_flat_feet_by_an_imu_above_its_waist():
    """Soles are landmarks with a rotation; both see the IMU through the encoders of the waist."""
    system = mb.read_mjcf(mb.models.path("humanoid"))
    q0 = np.array(system.tree.keyframes["stand"], dtype=float)
    feet = [Contact(name, friction=0.7) for name in SOLES]
    tasks = [FrameTask("pelvis", kp=100.0), PostureTask(kp=50.0, weight=0.01)]
    law = InverseDynamicsQP(system, tasks, feet, period=0.002)
    estimator = base_estimator(
        system, feet, imu=Imu("torso"), encoders=Encoders(noise=ENCODER, rate_noise=0.01), q0=q0,
        period=0.002,
    )  # fmt: skip
    assert [len(s.components) for s in estimator.outputs if s.name == "residual"] == [2]
    axes = np.eye(system.nv)[:2]
    report = mb.validate(
        law, mb.models.path("humanoid"), 2.0, q0=q0, delay=1, sensors=Sensing(estimator, ERRORS),
        disturbance=lambda t: 60 * np.sin(6 * t) * axes[0] + 40 * np.sin(9 * t) * axes[1],
        criteria=Criteria(settle=0.5), report=ReportOptions(explain=False),
    )  # fmt: skip
    run = report.runs[0]
    values = {metric.name: metric.value for metric in run.metrics}
    assert not run.recording.events
    assert np.abs(run.recording.v[:, :2]).max() > 0.1, "it is pushed about"
    assert values["estimate.velocity"] < 0.02
    assert values["estimate.tilt"] < 0.02
    assert values["estimate.within"] >= 0.98
    assert values["estimate.doubted"] == 0


@pytest.fixture(scope="module")
def loop():
    """The four-bar holds its crank; the other joints are never measured."""
    system = mb.read_mjcf(mb.models.path("four_bar"))
    law = InverseDynamicsQP(system, [PostureTask(("crank",), kp=100.0)], period=0.002)
    crank = [Measured("crank", ENCODER, kind="position")]
    return law, Sensing(manifold_filter(system, crank, force_noise=0.02, period=0.002))


@pytest.mark.long
def test_a_loop_holds_by_one_encoder(loop):
    law, sensing = loop
    report = mb.validate(
        law, mb.models.path("four_bar"), 1.0, sensors=sensing, criteria=Criteria(settle=0.3),
        report=ReportOptions(explain=False),
    )  # fmt: skip
    run = report.runs[0]
    values = {metric.name: metric.value for metric in run.metrics}
    assert not run.recording.events
    assert values["status.safe_output"] == 0
    error = run.recording.monitor["estimate_error"][150:, : law.system.nv]
    assert np.abs(error).max() < 2e-3, "joints that nothing measures follow from the loop"
    assert values["estimate.doubted"] == 0
    assert values["estimate.within"] >= 0.98


@pytest.mark.long
def test_a_loop_holds_by_an_encoder_that_is_late_and_tells_its_age(loop):
    """At 250 Hz and 8 ms late, pushed about; without the age it errs by 26 mrad, few within 3σ."""
    law, _ = loop
    crank = [Measured("crank", ENCODER, kind="position", longest_delay=0.01)]
    late = manifold_filter(law.system, crank, force_noise=0.1, period=0.002)
    sensing = Sensing(late, {"crank": SensorErrors(delay=4, every=2)})
    report = mb.validate(
        law, mb.models.path("four_bar"), 0.6, q0=[0.2, 0, 0], sensors=sensing,
        disturbance=lambda t: 0.3 * np.sin(12 * t) * np.eye(3)[0], criteria=Criteria(settle=0.1),
        report=ReportOptions(explain=False),
    )  # fmt: skip
    run = report.runs[0]
    values = {metric.name: metric.value for metric in run.metrics}
    assert not run.recording.events
    assert np.isnan(run.recording.monitor["estimate_y"][:, 0]).mean() == pytest.approx(
        0.5, abs=0.02
    )
    error = run.recording.monitor["estimate_error"][50:, : law.system.nv]
    assert np.ptp(run.recording.q[:, 0]) > 0.5
    assert np.abs(error).max() < 8e-3
    assert values["estimate.doubted"] == 0
    assert values["estimate.within"] >= 0.98


def test_cases_of_a_campaign_draw_their_own_errors_on_a_node_without_a_compiler_too(loop):
    law, sensing = loop
    model, plan = mb.models.path("four_bar"), cases([0, 1])
    trial = Trial(0.2, sensors=sensing, criteria=Criteria({"estimate.within": 0.5}))
    node = BareNode()
    result = campaign(law, model, trial, plan, CampaignOptions(executor=node))
    assert node.calls
    rates = [outcome.metric("estimate.rate") for outcome in result.outcomes]
    assert rates[0] != rates[1]
    again = case_report(law, model, trial, plan, 1, ReportOptions(explain=False))
    values = {metric.name: metric.value for metric in again.runs[0].metrics}
    assert values["estimate.rate"] == rates[1]
