"""The base estimator: consistent, equal to a filter written anew, robust, and right in MuJoCo."""

from dataclasses import replace
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from estimation.dense_base_filter import DenseFilter, state_of
from estimation.drawn_walk import drawn_walk
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

import mbcasadi as mb
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.estimation import Encoders, Estimator, Footing, Imu, base_estimator, encoder_noise

FEET = ["FL", "FR", "RL", "RR"]
DT = 0.005
# the drawn feet are points, slip at rest too, and with white noise, whose speed has no bound
POINTS = Footing(rolling=1e-9, rest=1.0, bounce=1e-12)
CALIBRATED = Imu("trunk", gyro_bias=1e-3, accelerometer_bias=0.01)


class Robot(NamedTuple):
    system: mb.System
    q0: np.ndarray
    feet: list


@pytest.fixture(scope="module")
def robot():
    system = mb.read_mjcf(mb.models.path("quadruped"))
    q0 = np.array(system.tree.keyframes["stand"], dtype=float)
    return Robot(system, q0, [mb.Contact(name) for name in FEET])


def made(robot, imu=CALIBRATED, footing=POINTS, **options) -> Estimator:
    return base_estimator(
        robot.system, robot.feet, imu=imu, encoders=Encoders(rate_noise=0.02), footing=footing,
        q0=robot.q0, period=DT, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def estimator(robot):
    return made(robot, likelihood=True)


@pytest.fixture(scope="module")
def compiled(estimator, tmp_path_factory):
    project = mb.export_c(estimator.function, tmp_path_factory.mktemp("c") / "base")
    return project.load(flags=("-O0",))


def errors(z, walk, run):
    """Errors of a run, without those of the yaw and of the position, and their covariance."""
    own = state_of(z)
    E = own.R @ walk.R[run].T
    theta = Rotation.from_matrix(E).as_rotvec()
    eta = own.places - (walk.d[run] - walk.p[run]) @ E.T
    e = np.concatenate(
        [theta, own.v - E @ walk.v[run], own.b_g - walk.b_g[run], own.b_a - walk.b_a[run], *eta]
    )
    standing = [12 + 3 * k + i for k in range(4) if walk.stood[k] > 0 for i in range(3)]
    kept = [0, 1, *range(3, 12), *standing]
    return e[kept], own.P[np.ix_(kept, kept)]


def test_errors_are_as_large_as_the_covariance_says_and_false_alarms_as_rare_as_asked(
    robot, tmp_path, is_thorough
):
    alarm, runs = 1e-2, 100 if is_thorough else 24
    footing = replace(POINTS, false_alarm=alarm)
    own = made(robot, footing=footing)
    encoders = Encoders(rate_noise=0.02)
    tick = mb.export_c(own.function, tmp_path / "c").load(flags=("-O0",)).map(runs)
    walk = drawn_walk(
        robot.system, FEET, robot.q0, CALIBRATED, encoders, footing, runs=runs, dt=DT, seed=4
    )
    z, rejected, stood = np.tile(own.z0[:, None], (1, runs)), 0, 0
    for k in range(1, 401):  # feet lift from the 200th on
        y, on = walk.step()
        mask = np.tile(on[:, None].astype(float), (1, runs))
        out = tick(y.T, np.ones((13, runs)), mask, np.full((1, runs), DT), z)
        z, residual = np.array(out[2]), np.array(out[6])
        assert not np.array(out[4]).any()
        most = np.sqrt(chi2.isf(alarm / 2, 3))
        rejected, stood = rejected + (residual > most).sum(), stood + (residual > 0).sum()
        if k in (100, 250, 400):
            pairs = [errors(z[:, run], walk, run) for run in range(runs)]
            nees = sum(e @ np.linalg.solve(P, e) for e, P in pairs)
            size = sum(e.size for e, _ in pairs)
            low, high = chi2.ppf([0.005, 0.995], size)
            assert low < nees < high, f"at tick {k}: NEES {nees / size:.3f} of 1"
    share = rejected / stood
    assert abs(share - alarm / 2) < 0.1 * alarm, f"{share:.4f} of the samples are beyond a step"


def test_it_equals_a_filter_written_anew_on_random_ticks(robot, estimator, compiled):
    encoders = Encoders(rate_noise=0.02)
    walk = drawn_walk(
        robot.system, FEET, robot.q0, CALIBRATED, encoders, POINTS, runs=1, dt=DT, seed=5
    )
    z, ones = estimator.z0, np.ones(13)
    q = ca.SX.sym("q", 12)
    full = ca.vertcat(0, 0, 0, 1, 0, 0, 0, q)
    p_I, R_I = robot.system.frame("trunk").pose(full)
    h = ca.vertcat(*(R_I.T @ (robot.system.frame(f).pose(full)[0] - p_I) for f in FEET))
    sight = ca.Function("sight", [q], [h, ca.jacobian(h, q)])
    other = None
    for k in range(400):
        y, on = walk.step()
        outputs = compiled(y[0], ones, on.astype(float), DT, z)
        z = np.array(outputs[2]).ravel()
        own = state_of(z)
        if other is None:
            other = DenseFilter(own, POINTS, CALIBRATED, sight, encoders)
            other.stood = np.where(on, DT, 0.0)
            continue
        other.tick(y[0], on, DT)
        gap = np.abs(DenseFilter.minus(own, other.s)) / np.sqrt(np.diag(own.P))
        assert gap.max() < 1e-5, f"tick {k}: means differ by {gap.max():.1e} of a deviation"
        size = np.sqrt(np.outer(np.diag(own.P), np.diag(own.P)))
        assert (np.abs(own.P - other.s.P) / size).max() < 1e-5, f"tick {k}: covariances"
        assert float(outputs[-1]) == pytest.approx(other.likelihood, abs=1e-3), f"tick {k}"


def test_heading_and_place_of_the_start_change_nothing_else(robot, estimator):
    turned = robot.q0.copy()
    turn = Rotation.from_rotvec([0, 0, 2.0])
    turned[:3] = turn.apply(turned[:3]) + np.array([3.0, -40.0, 0.5])
    turned[3:7] = (turn * Rotation.from_quat(turned[3:7], scalar_first=True)).as_quat(
        scalar_first=True
    )
    other = base_estimator(
        robot.system, robot.feet, imu=CALIBRATED, encoders=Encoders(rate_noise=0.02),
        footing=POINTS, q0=turned, period=DT,
    )  # fmt: skip
    walk = drawn_walk(
        robot.system, FEET, robot.q0, CALIBRATED, Encoders(rate_noise=0.02), POINTS, runs=1, dt=DT,
        seed=6,
    )  # fmt: skip
    z, w = estimator.z0, other.z0
    for _ in range(60):
        y, on = walk.step()
        first, second = (
            estimator.function(y[0], np.ones(13), on.astype(float), DT, memory) for memory in (z, w)
        )
        z, w = first[2], second[2]
    v, v_turned = np.array(first[1]).ravel(), np.array(second[1]).ravel()
    assert np.abs(v[:3]).max() > 1e-4
    assert np.abs(turn.apply(v[:3]) - v_turned[:3]).max() < 1e-12
    assert np.abs(v[3:] - v_turned[3:]).max() < 1e-12
    assert np.abs(np.array(first[6]) - np.array(second[6])).max() < 1e-9


def test_a_slip_of_20_mm_in_50_ms_is_rejected(robot, estimator, compiled):
    walk = drawn_walk(
        robot.system, FEET, robot.q0, CALIBRATED, Encoders(rate_noise=0.02), POINTS, runs=1, dt=DT,
        seed=7,
    )  # fmt: skip
    z, speeds, flags = estimator.z0, [], []
    for k in range(140):
        if 100 <= k < 110:  # the foot FL is dragged along y
            walk.d[:, 0, 1] += 0.02 / 10
        y, on = walk.step()
        out = compiled(y[0], np.ones(13), on.astype(float), DT, z)
        z = np.array(out[2]).ravel()
        flags.append(float(out[5]))
        own = state_of(z)
        E = own.R @ walk.R[0].T
        speeds.append(np.linalg.norm(own.v - E @ walk.v[0]))
    assert not any(flags[:100])
    assert any(flags[100:112])
    assert not any(flags[130:]), "a foot that stands again is used again"
    assert max(speeds[100:]) < 0.02, f"velocity wrong by {max(speeds[100:]):.3f} m/s"


def test_hostile_ticks_leave_it_finite_and_it_recovers(robot, estimator, compiled, is_thorough):
    rng = np.random.default_rng(8)
    y0 = np.concatenate([[0, 0, 0, 0, 0, 9.81], robot.q0[7:], np.zeros(12)])
    z = estimator.z0
    for k in range(20_000 if is_thorough else 6000):
        y, mask, valid = y0.copy(), np.ones(4), np.ones(13)
        dt = DT
        match rng.integers(8):
            case 0:
                y[rng.integers(30)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e6])
            case 1:
                y = y0 + rng.normal(0, 10.0 ** rng.integers(-2, 3), 30)
            case 2:
                mask = rng.choice([0.0, 1.0, np.nan, -5.0], 4)
            case 3:
                valid = rng.choice([0.0, 1.0, np.nan], 13)
            case 4:
                dt = rng.choice([0.0, -1.0, np.nan, 1e9, 1e-9])
            case 5:
                if rng.random() < 0.01:
                    z = rng.choice([np.nan, 1e30, 0.0, -1.0], z.size)
        out = [np.array(x) for x in compiled(y, valid, mask, dt, z)]
        assert all(np.isfinite(x).all() for x in out), f"tick {k}"
        z = out[2].ravel()
        if k % 50 == 0:
            P = state_of(z).P
            scale = 1 / np.sqrt(np.diag(P))
            assert np.linalg.eigvalsh(P * np.outer(scale, scale))[0] > -1e-9, f"tick {k}"
        assert np.abs(out[1]).max() < 1e4
    for _ in range(200):  # one second of good samples
        out = compiled(y0, np.ones(13), np.ones(4), DT, z)
        z = np.array(out[2]).ravel()
    up = Rotation.from_quat(np.array(out[0]).ravel()[3:7], scalar_first=True).as_matrix()[2]
    assert float(out[4]) == 0
    assert np.abs(np.array(out[1]).ravel()[:3]).max() < 0.05
    assert np.arccos(np.clip(up[2], -1, 1)) < 0.1


def test_a_first_sample_that_is_lost_leaves_a_covariance(robot, compiled, estimator):
    """Levelling by the second one takes what the first tick had made roll and pitch share."""
    y = np.concatenate([[0, 0, 0, 0, 0, 9.81], robot.q0[7:], np.zeros(12)])
    lost, z = y.copy(), estimator.z0
    lost[5] = 300.0
    for sample in (lost, y, y):
        z = np.array(compiled(sample, np.ones(13), np.ones(4), DT, z)[2]).ravel()
        P = state_of(z).P
        scale = 1 / np.sqrt(np.diag(P))
        assert np.linalg.eigvalsh(P * np.outer(scale, scale))[0] > 0


def test_a_robot_at_rest_learns_the_bias_of_its_gyroscope(robot):
    """About the vertical too, which the accelerometer does not see."""
    bias = np.array([4e-3, -3e-3, 5e-3])
    y = np.concatenate([bias, [0, 0, 9.81], robot.q0[7:], np.zeros(12)])
    deviations = []
    for footing in (Footing(), POINTS):
        own = made(robot, Imu("trunk"), footing)
        z = own.z0
        for _ in range(300):
            z = own.function(y, np.ones(13), np.ones(4), DT, z)[2]
        state = state_of(np.array(z).ravel())
        deviations.append(np.sqrt(state.P[8, 8]))
        assert abs(state.b_g[2] - bias[2]) < 3 * deviations[-1]
    assert deviations[0] < 1e-3
    assert deviations[1] > 3e-3, "among slips the yaw is lost"


def test_a_base_that_shakes_turns_as_its_deviation_says(robot, estimator, compiled):
    """A gyroscope has the mean rate of a tick; its change passes zero where the error does not."""
    amplitude, rate = 0.1, 2 * np.pi * 47.3  # rad/s, both
    t = DT * np.arange(400)
    ends = amplitude * np.sin(rate * t)
    means = -amplitude / (rate * DT) * np.diff(np.cos(rate * np.append(-DT, t)))
    z, errors, deviations = estimator.z0, list[float](), list[float]()
    for mean, end in zip(means, ends, strict=True):
        y = np.concatenate([[mean, 0, 0], [0, 0, 9.81], robot.q0[7:], np.zeros(12)])
        out = [np.array(x) for x in compiled(y, np.ones(13), np.ones(4), DT, z)]
        z = out[2].ravel()
        errors.append(out[1].ravel()[3] - end)
        deviations.append(np.sqrt(out[3].reshape(12, 12)[9, 9]))
    inside = np.abs(errors) < 3 * np.array(deviations)
    changes = np.abs(np.diff(means, prepend=0.0))
    assert np.mean(np.abs(errors) < 3 * changes) < 0.97, "the change of a tick says too little"
    assert inside.mean() > 0.99
    assert max(deviations) < 2 * amplitude


def test_without_an_imu_it_predicts_and_says_so(robot, estimator, compiled):
    y = np.concatenate([[0, 0, 0, 0, 0, 9.81], robot.q0[7:], np.zeros(12)])
    z = estimator.z0
    for _ in range(100):
        z = np.array(compiled(y, np.ones(13), np.ones(4), DT, z)[2]).ravel()
    blind = y.copy()
    blind[0] = np.nan
    for _ in range(100):
        out = compiled(blind, np.ones(13), np.ones(4), DT, z)
        z = np.array(out[2]).ravel()
    assert float(out[4]) == 3
    assert np.abs(np.array(out[1]).ravel()).max() < 0.05
    lifted = compiled(y, np.ones(13), np.zeros(4), DT, z)
    for _ in range(150):
        lifted = compiled(y, np.ones(13), np.zeros(4), DT, lifted[2])
    assert float(lifted[4]) == 1, "no foot has stood for half a second"


def test_single_precision_is_within_a_hundredth_of_a_deviation(
    robot, estimator, compiled, tmp_path
):
    single = mb.export_c(estimator.function, tmp_path / "c", real="float").load(flags=("-O0",))
    walk = drawn_walk(
        robot.system, FEET, robot.q0, CALIBRATED, Encoders(rate_noise=0.02), POINTS, runs=1, dt=DT,
        seed=9,
    )  # fmt: skip
    z, w = estimator.z0, estimator.z0
    for k in range(400):
        y, on = walk.step()
        out = compiled(y[0], np.ones(13), on.astype(float), DT, z)
        other = single(y[0], np.ones(13), on.astype(float), DT, w)
        z, w = np.array(out[2]).ravel(), np.array(other[2]).ravel()
        own, rounded = state_of(z), state_of(w)
        gap = DenseFilter.minus(rounded, own)[3:24] / np.sqrt(np.diag(own.P))[3:24]
        assert np.abs(gap).max() < 0.01, f"tick {k}"
        scale = 1 / np.sqrt(np.diag(rounded.P))
        assert np.linalg.eigvalsh(rounded.P * np.outer(scale, scale))[0] > -1e-5


def test_bad_models_and_options_are_refused(robot):
    arm = mb.read_mjcf(mb.models.path("scara"))
    with pytest.raises(ProblemError, match="0 free joints"):
        base_estimator(arm, robot.feet, imu=CALIBRATED)
    with pytest.raises(ProblemError, match="without contacts"):
        base_estimator(robot.system, [], imu=CALIBRATED)
    with pytest.raises(UnknownNameError, match="trunc"):
        base_estimator(robot.system, robot.feet, imu=Imu("trunc"))
    some = Encoders(joints=("FL_hip",))
    with pytest.raises(ProblemError, match="joints without an encoder: 'FL_thigh'"):
        base_estimator(robot.system, robot.feet, imu=CALIBRATED, encoders=some)
    sliding = [mb.Contact("FL", slides=True)]
    with pytest.raises(ProblemError, match=r"'FL': .*slides True"):
        base_estimator(robot.system, sliding, imu=CALIBRATED)
    with pytest.raises(ProblemError, match="gyro_noise"):
        Imu("trunk", gyro_noise=0.0)
    with pytest.raises(ProblemError, match="false_alarm"):
        Footing(false_alarm=1.0)
    with pytest.raises(ProblemError, match=r"rest = 2\.0"):
        Footing(rest=2.0)
    with pytest.raises(ProblemError, match="bits = 0"):
        encoder_noise(0)


def test_nothing_is_concluded_before_the_first_sample_of_the_imu(robot, estimator):
    """An estimator that waits for its IMU starts as one does that is started then."""
    f, z = estimator.function, estimator.z0
    y, rng = estimator.y0, np.random.default_rng(0)
    for _ in range(3):
        waited = f(y=y, valid=[0, *np.ones(12)], mask=np.ones(4), dt=DT, z=z)
        z = waited["z_next"]
        assert int(waited["status"]) == 3
    fresh = estimator.z0
    for _ in range(20):
        noisy = y + 1e-3 * rng.standard_normal(y.size)
        a, b = (f(y=noisy, valid=np.ones(13), mask=np.ones(4), dt=DT, z=x) for x in (z, fresh))
        z, fresh = a["z_next"], b["z_next"]
        for name in ("q", "v", "covariance"):
            assert np.array(a[name]) == pytest.approx(np.array(b[name]), abs=1e-9), name
    assert np.abs(np.array(a["v"])[:6]).max() < 0.05, "it rests"


def test_a_first_force_of_legs_that_nothing_holds_yet_is_no_vertical(robot, compiled, estimator):
    """Of the size of g and 130° off, as one tick without control has it; then the robot rests."""
    still = np.concatenate([np.zeros(3), [0, 0, 9.81], robot.q0[7:], np.zeros(12)])
    falls, z = still.copy(), estimator.z0
    falls[3:6] = [-7.5, 0.0, -6.3]
    for y in (falls, still, still, still):
        z = np.array(compiled(y, np.ones(13), np.ones(4), DT, z)[2]).ravel()
    own = state_of(z)
    tilt = np.degrees(np.arccos(np.clip(own.R[2, 2], -1, 1)))
    assert tilt < 1.0
    lying = still.copy()  # a robot that lies still is found where it lies, whatever q0 says
    lying[3:6] = [9.81, 0.0, 0.0]
    z = estimator.z0
    for _ in range(3):
        z = np.array(compiled(lying, np.ones(13), np.zeros(4), DT, z)[2]).ravel()
    assert state_of(z).R[2, 0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("periods", [0.5, 1.2, 2.0, 5.0])
@pytest.mark.every(2)
def test_rates_from_positions_are_stable_with_any_dt(robot, periods):
    """Ticks that are not of the usual period; encoders of positions only."""
    own = base_estimator(robot.system, robot.feet, imu=Imu("trunk"), q0=robot.q0, period=DT)
    f, z, rng, rates = own.function, own.z0, np.random.default_rng(0), []
    for _ in range(300):
        y = own.y0 + np.r_[np.zeros(6), 1e-4 * rng.standard_normal(own.y0.size - 6)]
        out = f(y=y, valid=np.ones(13), mask=np.ones(4), dt=periods * DT, z=z)
        z = out["z_next"]
        rates.append(np.array(out["v"]).ravel()[6:])
    assert np.abs(rates).max() < 1.0  # rad/s; the noise of a difference is 0.03 at most


def test_a_start_without_a_rotation_is_an_error(robot):
    with pytest.raises(ProblemError, match="expected one of length 1"):
        made(robot._replace(q0=0 * robot.q0))


def turned_memory(z, angle):
    """Return a memory turned about x with all that is seen, and a bias that hides it at rest."""
    z, E = np.array(z).ravel(), Rotation.from_rotvec([angle, 0, 0])
    right, up = Rotation.from_quat(z[:4], scalar_first=True), [0, 0, 9.81]
    wrong = E * right
    z[:4] = wrong.as_quat(scalar_first=True)
    z[13:16] += right.inv().apply(up) - wrong.inv().apply(up)
    z[16:28] = E.apply(z[16:28].reshape(4, 3)).ravel()
    return z


def test_a_tilt_that_hides_in_a_bias_out_of_its_range_is_found_at_rest(robot, estimator, compiled):
    """To feet and IMU at rest both are one; only the range of the bias tells them apart."""

    def run(z, ticks):
        for _ in range(ticks):
            out = compiled(y=estimator.y0, valid=np.ones(13), mask=np.ones(4), dt=DT, z=z)
            z = out["z_next"]
            assert np.all(np.isfinite(np.array(z)))
        return np.array(z).ravel(), np.array(out["q"]).ravel(), int(out["status"])

    settled, q, _ = run(estimator.z0, 300)
    assert np.abs(q[4:6]).max() < 1e-3
    wrong = turned_memory(settled, 0.08)
    assert np.abs(wrong[13:16]).max() > 0.7
    z, q, status = run(wrong, round(1 / DT))
    assert np.abs(q[4:6]).max() < 5e-3, "the tilt is gone within a second"
    assert np.abs(z[13:16]).max() < 0.1
    assert status == 0
    assert np.linalg.eigvalsh(state_of(z).P).min() > -1e-12
    small = turned_memory(settled, 0.01)  # of a bias that may be
    assert np.abs(run(small, 1)[0][13:16]).max() > 0.05, "it is not thrown away"
