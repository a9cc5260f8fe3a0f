"""Fixes of MuJoCo's robot at their own rate, late, with the age told: what they are worth."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi.estimation import Encoders, Fix, Imu, base_estimator, encoder_noise
from mbcasadi.plant import Plant
from mbcasadi.validation import Sensing, SensorErrors
from mbcasadi.validation.closed_loop.compiled_law import Caller
from mbcasadi.validation.closed_loop.sensing import RunningEstimator, model_with_sensors

MODEL, FEET = mb.models.path("quadruped"), ("FL", "FR", "RL", "RR")
PERIOD, DURATION, GAIT = 0.002, 1.3, 0.4  # s
LOAD = 5.0  # N, of a foot that stands
PAIR = {"FL": 0.0, "RR": 0.0, "FR": 0.5, "RL": 0.5}
ERRORS = {
    "gyro": SensorErrors(bias=9e-3, walk=1e-5),
    "accelerometer": SensorErrors(bias=0.05, walk=1e-4),
}
CAPTURE = Fix("pose", "trunk", 1e-3, turn_noise=3e-3, longest_delay=0.03)
CAMERA = SensorErrors(delay=10, every=5)  # 20 ms late, 100 Hz


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(MODEL)


def running(system, fixes, errors, start):
    estimator = base_estimator(
        system, [mb.Contact(name) for name in FEET], imu=Imu("trunk"), period=PERIOD,
        encoders=Encoders(noise=encoder_noise(14), rate_noise=0.01), fixes=fixes, q0=start,
    )  # fmt: skip
    sensing = Sensing(estimator, ERRORS | errors, seed=1)
    own = RunningEstimator(sensing, Caller(estimator.function), MODEL)
    own.reset()
    return own


def joints_at(t, home):
    """Return the joints of a trot that turns: legs lift in pairs and sweep about their hips."""
    q = home.copy()
    for k, name in enumerate(FEET):
        phase = (t / GAIT + PAIR[name]) % 1
        lift = np.sin(2 * np.pi * min(phase, 0.5)) if t > GAIT else 0.0
        side = 1 if name.endswith("L") else -1
        sweep = 0.12 * np.cos(2 * np.pi * phase) * (t > GAIT) * (1 + 0.5 * side)
        q[3 * k + 1] += 0.3 * lift + sweep
        q[3 * k + 2] -= 0.6 * lift
    return q


@pytest.fixture(scope="module")
def trot(system):
    """Errors of x, y and the yaw over time, with motion capture and without."""
    home = np.array(system.tree.keyframes["stand"])
    wrong = home.copy()
    wrong[:3] += 1.0, -0.5, 0.2
    wrong[3:7] = Rotation.from_euler("z", np.deg2rad(30)).as_quat(scalar_first=True)
    bare = running(system, [], {}, home)
    seen = running(system, [CAPTURE], {"trunk.pose": CAMERA}, wrong)
    plant = Plant(model_with_sensors(bare.sensing, MODEL), timestep=PERIOD / 2)
    plant.model.geom_friction[:, 0] *= 0.3
    plant.reset(home)
    order = [plant.model.joint(int(j)).name for j in plant.model.actuator_trnid[:, 0]]
    rows = [int(plant.model.joint(name).qposadr[0]) for name in order]
    columns = [int(plant.model.joint(name).dofadr[0]) for name in order]
    found, came = [], []
    for k in range(int(DURATION / PERIOD)):
        goal = joints_at(k * PERIOD, home[7:])[np.array(rows) - 7]
        plant.step(150 * (goal - plant.q[rows]) - 3 * plant.v[columns], 2)
        plant.measure(plant.data.ctrl)
        mask = {
            name: float(force.normal > LOAD) for name, force in plant.contact_forces(FEET).items()
        }
        row = [k * PERIOD]
        for estimator in (bare, seen):
            out = estimator(plant, mask, PERIOD)
            assert out["estimate_status"] == 0
            q = out["estimate_q"]
            turn = _rotation(plant.q).inv() * _rotation(q)
            row += [np.linalg.norm(q[:3] - plant.q[:3]), turn.as_rotvec()[2]]
            row.append(np.max(np.abs(out["estimate_error"] / out["estimate_deviation"])[:6]))
            came.append(not np.isnan(out["estimate_y"][-1]))
        found.append(row)
    return np.array(found).T, np.array(came[1::2]), plant.q


def _rotation(q):
    return Rotation.from_quat(q[3:7], scalar_first=True)


@pytest.mark.long
def test_motion_capture_that_is_late_bounds_what_else_drifts(trot):
    """At 100 Hz and 20 ms late, on a robot that walks and turns on legs that slip."""
    (t, drift, _, _, p, yaw, sigmas), came, q = trot
    assert np.linalg.norm(q[:2]) > 0.1
    assert abs(_rotation(q).as_rotvec()[2]) > 0.1, "it walks and turns"
    assert came.mean() == pytest.approx(0.2, abs=0.01)
    assert not came[: CAMERA.delay].any()
    assert yaw[0] == pytest.approx(np.deg2rad(30), abs=1e-3)
    assert p[0] > 1, "it starts 30° and a metre wrong, and knows nothing of it"
    known = t > 0.1
    assert np.abs(yaw[known]).max() < 0.01
    assert p[known].max() < 0.003
    assert np.mean(sigmas[known] < 4) > 0.97, "feet slip more here than its Footing expects"
    assert drift[-1] > 0.005, "a start that was right, without motion capture, drifts by more"
    assert drift[-1] > 5 * p[-1]
