"""Fixes of the base estimator: consistent, equal to a filter written anew, late, rejected, in C."""

import casadi as ca
import numpy as np
import pytest
from estimation.dense_base_filter import DenseFilter, N, state_of
from estimation.drawn_walk import drawn_walk
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

import mbcasadi as mb
from mbcasadi.description.status import Flag
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.estimation import Encoders, FirstEstimate, Fix, Footing, Imu, base_estimator

FEET, DT, FIRST = ["FL", "FR", "RL", "RR"], 0.005, 13
IMU = Imu("trunk", gyro_bias=1e-3, accelerometer_bias=0.01)
# The drawn feet are points, and slip at rest too. None is rejected: the reference has no gate.
POINTS = Footing(rolling=1e-9, rest=1.0, settling=0.02, bounce=1e-12)
ENCODERS = Encoders(rate_noise=0.02)
MOVING = 239  # ticks after which the drawn robot turns and trots
LEG = Fix("pose", "FL_thigh", 2e-3, "body", turn_noise=4e-3, longest_delay=0.03)


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(mb.models.path("quadruped"))


def made(system, fixes, yaw=0.0, away=(0, 0, 0), footing=POINTS, **options):
    """Return an estimator that starts turned and shifted."""
    q = np.array(system.tree.keyframes["stand"], dtype=float)
    q[:3] += away
    q[3:7] = Rotation.from_euler("z", yaw).as_quat(scalar_first=True)
    return base_estimator(
        system, [mb.Contact(name) for name in FEET], imu=IMU, encoders=ENCODERS, footing=footing,
        q0=q, period=DT, fixes=fixes, **options,
    )  # fmt: skip


def walk_of(system, runs, seed):
    stand = np.array(system.tree.keyframes["stand"], dtype=float)
    return drawn_walk(system, FEET, stand, IMU, ENCODERS, POINTS, runs=runs, dt=DT, seed=seed)


def drawn(fix, R, p, rng):
    """Return a sample of a fix of the IMU's frame."""
    noise = fix.noise * rng.standard_normal(3)
    match fix.kind:
        case "yaw":
            return [np.arctan2(R[1, 0], R[0, 0]) + noise[0]]
        case "height":
            return [p[2] + noise[0]]
        case "magnetometer":
            return R.T @ fix.field + noise
        case "position":
            return p + noise
    turn = Rotation.from_rotvec(fix.turn_noise * rng.standard_normal(3)) * Rotation.from_matrix(R)
    return np.append(p + noise, turn.as_quat(scalar_first=True))


@pytest.mark.parametrize(
    ("kinds", "yaw"),
    [
        (("magnetometer", "height", "position"), np.deg2rad(30)),
        (("yaw", "height"), np.deg2rad(-30)),
        (("pose",), np.deg2rad(150)),
    ],
)
@pytest.mark.every(2)
def test_a_start_of_wrong_heading_comes_right_and_errors_are_what_the_covariance_says(
    system, kinds, yaw, is_thorough
):
    runs = 25 if is_thorough else 10
    noise = {"yaw": 0.03, "magnetometer": 0.02, "position": 0.02, "height": 0.01, "pose": 0.01}
    fixes = [Fix(kind, "trunk", noise[kind]) for kind in kinds]
    away = (20.0, -30.0, 2.0) if fixes[-1].seen[2] else (0, 0, 2.0)
    own, rng = made(system, fixes, yaw, away), np.random.default_rng(1)
    tick, walk = own.function.map(runs), walk_of(system, runs, 3)
    z, found = np.tile(own.z0[:, None], (1, runs)), []
    for k in range(1, 101):
        y, on = walk.step()
        samples = [
            np.concatenate([drawn(fix, R, p, rng) for fix in fixes])
            for R, p in zip(walk.R, walk.p, strict=True)
        ]
        valid = np.ones((FIRST + len(fixes), runs))
        valid[FIRST:] = k % 4 == 0
        mask = np.tile(on[:, None].astype(float), (1, runs))
        out = tick(np.hstack([y, samples]).T, valid, mask, np.full((1, runs), DT), z)
        z = np.array(out[2])
        assert not np.array(out[5]).any()
        if k in (60, 100):  # before, roll and pitch are better than told
            q, P = np.array(out[0]), np.array(out[3]).reshape(12, runs, 12).transpose(1, 0, 2)
            turn = Rotation.from_matrix(walk.R).inv() * Rotation.from_quat(
                q[3:7].T, scalar_first=True
            )
            e = np.hstack([q[:3].T - walk.p, turn.as_rotvec()])
            kept = [0, 1, 2, 3, 4, 5] if fixes[-1].seen[2] else [2, 3, 4, 5]
            pairs = zip(e[:, kept], P[:, kept][:, :, kept], strict=True)
            found.append(sum(x @ np.linalg.solve(p, x) for x, p in pairs))
    low, high = chi2.ppf([1e-4, 1 - 1e-4], runs * len(kept))
    assert all(low < each < high for each in found), (low, found, high)
    assert np.abs(e[:, 5]).max() < 0.05


@pytest.mark.long
def test_without_a_sample_nothing_is_seen(system):
    """What no fix told stays as it is without fixes, its covariance too."""
    told = FirstEstimate(heading=1e-3, position=1e-3)
    fixes = [Fix("pose", "trunk", 1e-3), Fix("yaw", "trunk", 1e-2), Fix("height", "trunk", 0.1)]
    bare, seen, walk = made(system, [], start=told), made(system, fixes, start=told), None
    assert len(bare.unobservable) == 2
    assert seen.unobservable == ()
    walk, z, w = walk_of(system, 1, 5), bare.z0, seen.z0
    for _ in range(30):
        y, on = walk.step()
        valid = np.append(np.ones(FIRST), np.zeros(3))
        first = bare.function(y[0], np.ones(FIRST), on.astype(float), DT, z)
        second = seen.function(np.append(y[0], np.zeros(9)), valid, on.astype(float), DT, w)
        z, w = first[2], second[2]
        for a, b in zip(first[:4], second[:4], strict=True):
            assert np.array(a) == pytest.approx(np.array(b)[: a.shape[0]], rel=1e-9, abs=1e-12)


def spot_of(system, joints, rates):
    """Return a function of an age: place, rotation and J of the leg's frame from the IMU."""
    q = ca.SX.sym("q", 12)
    full = ca.vertcat(0, 0, 0, 1, 0, 0, 0, q)
    (p_I, R_I), (p, R) = (
        system.frame("trunk").pose(full),
        system.frame("FL_thigh", "body").pose(full),
    )
    J = system.frame("FL_thigh", "body").jacobian(full)[:, 6:]
    turned = ca.vertcat(R_I.T @ J[:3, :], R_I.T @ J[3:, :])
    f = ca.Function("spot", [q], [R_I.T @ (p - p_I), R_I.T @ R, turned])

    def spot(tau):
        place, rotation, jacobian = (np.array(x) for x in f(joints - tau * rates))
        return place.ravel(), rotation, jacobian

    return spot


def test_late_poses_of_a_leg_equal_those_of_a_filter_written_anew_that_runs_again(system):
    own, rng = made(system, [LEG], 0.4, (3.0, 1.0, 0.0)), np.random.default_rng(2)
    walk, z, other, ticks = walk_of(system, 1, 6), own.z0, None, []
    q = ca.SX.sym("q", 12)
    full = ca.vertcat(0, 0, 0, 1, 0, 0, 0, q)
    p_I, R_I = system.frame("trunk").pose(full)
    h = ca.vertcat(*(R_I.T @ (system.frame(f).pose(full)[0] - p_I) for f in FEET))
    sight = ca.Function("sight", [q], [h, ca.jacobian(h, q)])
    for k in range(MOVING + 31):
        y, on = walk.step()
        joints, turn = y[0, 6:18], Rotation.from_matrix(walk.R[0])
        place, rotation, _ = spot_of(system, joints, np.zeros(12))(0.0)
        pose = np.append(
            walk.p[0] + walk.R[0] @ place + LEG.noise * rng.standard_normal(3),
            (turn * Rotation.from_matrix(rotation)).as_quat(scalar_first=True),
        )
        due, age = k % 6 == 5, rng.uniform(0, 0.9 * LEG.longest_delay) if k > MOVING else 0.0
        valid = np.append(np.ones(FIRST), due)
        out = own.function(np.append(y[0], pose), valid, on.astype(float), age, DT, z)
        z = np.array(out[2]).ravel()
        if k < MOVING:
            continue
        if other is None:
            other = DenseFilter(state_of(z), POINTS, IMU, sight, ENCODERS)
            other.stood = np.where(on, z[28 + N * (N + 1) // 2 :][:4], 0.0)
            continue
        ticks.append([other.copied(), y[0], on, None])
        if due:
            back = int(age / DT)
            ticks[-1 - back][3] = pose, age - back * DT
        first = len(ticks) - 1 - (back if due else 0)
        other = ticks[first][0].copied()
        for j in range(first, len(ticks)):
            _, sample, stands, fix = ticks[j]
            ticks[j][0] = other.copied()
            other.tick(sample, stands, DT)
            if fix is not None:
                spot = spot_of(system, sample[6:18], sample[18:])
                motion = sample[:3], sample[3:6]
                other.fix(*fix, (LEG.noise, LEG.turn_noise), spot, motion)
        ours = state_of(z)
        gap = np.abs(DenseFilter.minus(ours, other.s)) / np.sqrt(np.diag(ours.P))
        assert gap.max() < 1e-4, f"tick {k}: means differ by {gap.max():.1e} of a deviation"
        size = np.sqrt(np.outer(np.diag(ours.P), np.diag(ours.P)))
        assert (np.abs(ours.P - other.s.P) / size).max() < 1e-4, f"tick {k}: covariances"


def test_outliers_are_rejected_and_said_until_they_last(system):
    fix = Fix("position", "trunk", 0.01)
    own = made(system, [fix])
    stand = np.array(system.tree.keyframes["stand"], dtype=float)
    y = np.concatenate([[0, 0, 0, 0, 0, 9.81], stand[7:], np.zeros(12)])
    z, flags, away, statuses = own.z0, [], [], []
    for k in range(200):
        place = stand[:3] + (5.0 * (k == 40) + 2.0 * (k >= 100)) * np.eye(3)[0]
        out = own.function(np.append(y, place), np.ones(FIRST + 1), np.ones(4), DT, z)
        z = out[2]
        flags.append(int(out[5]))
        statuses.append(int(out[4]))
        away.append(float(out[0][0]))
    assert [k for k in range(100) if flags[k]] == [40]
    assert set(flags[100:160]) == {int(Flag.GATED)}
    assert np.abs(away[:150]).max() < 0.02, "the robot feels that it stands"
    assert not any(flags[170:])
    assert not any(statuses[:103])
    assert set(statuses[103:160]) == {2}, "four samples in a row contradict feet and IMU"
    assert not any(statuses[170:])
    assert away[-1] == pytest.approx(2.0, abs=0.01)


def test_a_pose_mends_a_tilt_that_wrong_samples_left(system):
    lean, wrong = 0.04, 1.0  # rad; s for which the accelerometer reads the weight aside
    own = made(system, [Fix("pose", "trunk", 1e-3, turn_noise=3e-3)], footing=Footing())
    stand = np.array(system.tree.keyframes["stand"], dtype=float)
    y = np.concatenate([[0, 0, 0, 0, 0, 9.81], stand[7:], np.zeros(12), stand[:7]])
    z, tilts, statuses, ticks = own.z0, [], [], round(wrong / DT)
    for k in range(2 * ticks):
        now, valid = y.copy(), np.ones(FIRST + 1)
        now[4] = 9.81 * lean * (k < ticks)
        valid[-1] = k >= ticks  # the pose is not seen until then
        out = own.function(now, valid, np.ones(4), DT, z)
        z = out[2]
        tilts.append(2 * float(np.abs(np.array(out[0])[4:6]).max()))
        statuses.append(int(out[4]))
    assert tilts[ticks - 1] > lean / 2, "the wrong samples tilted it"
    assert 2 in statuses[ticks:], "its bias is small: heading and place cannot explain the pose"
    assert tilts[-1] < lean / 40
    assert statuses[-1] == 0


def test_no_fix_is_taken_before_the_imu_has_levelled_the_robot(system):
    own = made(system, [Fix("yaw", "trunk", 0.01)])
    stand = np.array(system.tree.keyframes["stand"], dtype=float)
    y = np.concatenate([[0, 0, 0, 0, 0, 9.81], stand[7:], np.zeros(12), [1.0]])
    blind, z = np.append(0.0, np.ones(FIRST)), own.z0
    for valid, yaw in ((blind, 0.0), (np.ones(FIRST + 1), 1.0)):
        out = own.function(y, valid, np.ones(4), DT, z)
        z, turn = out[2], Rotation.from_quat(np.array(out[0]).ravel()[3:7], scalar_first=True)
        assert turn.as_euler("ZYX")[0] == pytest.approx(yaw, abs=1e-6)


@pytest.mark.long
def test_a_start_that_is_told_is_gated_from_the_first_fix_on(system):
    told = FirstEstimate(heading=0.01, position=0.01)
    stand = np.array(system.tree.keyframes["stand"], dtype=float)
    y = np.concatenate([[0, 0, 0, 0, 0, 9.81], stand[7:], np.zeros(12)])
    for start, yaw in ((told, 0.0), (FirstEstimate(), 1.0)):
        own = made(system, [Fix("yaw", "trunk", 0.01)], start=start)
        out = own.function(np.append(y, 1.0), np.ones(FIRST + 1), np.ones(4), DT, own.z0)
        q = np.array(out[0]).ravel()
        assert Rotation.from_quat(q[3:7], scalar_first=True).as_euler("ZYX")[0] == pytest.approx(
            yaw, abs=1e-6
        )
        assert bool(out[5]) == (start is told)


@pytest.mark.parametrize(
    ("fixes", "words"),
    [
        (["yaw"], ["position of the base"]),
        (
            ["height"],
            ["horizontal position of the base", "rotation of the base about the vertical"],
        ),
        (["position"], ["rotation of the base about the vertical while it stands still"]),
        (["height", "magnetometer"], ["horizontal position of the base"]),
        (["pose"], []),
    ],
)
@pytest.mark.every(2)
def test_words_say_what_is_left_unseen(system, fixes, words):
    own = made(system, [Fix(kind, "trunk", 0.01) for kind in fixes])
    assert list(own.unobservable) == words
    labels = [f"trunk.{kind}" for kind in fixes]
    assert [c for s in own.outputs if s.name == "residual" for c in s.components][4:] == labels


def test_bad_fixes_are_refused(system):
    with pytest.raises(ProblemError, match="noise = 0"):
        Fix("yaw", "trunk", 0.0)
    with pytest.raises(ProblemError, match="horizontal part"):
        Fix("magnetometer", "trunk", 0.1, field=(0.0, 0.0, 1.0))
    with pytest.raises(ProblemError, match="false_alarm"):
        Fix("yaw", "trunk", 0.1, false_alarm=1.0)
    with pytest.raises(UnknownNameError, match="mast"):
        made(system, [Fix("yaw", "mast", 0.1)])


@pytest.mark.long
def test_in_float_it_is_near_and_hostile_fixes_leave_it_sound(system, tmp_path):
    """With a position that nobody knows at first: no small difference of large variances."""
    fixes = [Fix("pose", "trunk", 2e-3, longest_delay=0.03)]
    own, walk = made(system, fixes, 1.0, (5.0, -3.0, 1.0)), walk_of(system, 1, 7)
    single = mb.export_c(own.function, tmp_path, real="float").load(flags=("-O0",))
    z, w, rng = own.z0, own.z0, np.random.default_rng(3)
    for k in range(160):
        y, on = walk.step()
        samples = np.concatenate([drawn(fix, walk.R[0], walk.p[0], rng) for fix in fixes])
        valid = np.append(np.ones(FIRST), k % 4 == 3)
        args = np.append(y[0], samples), valid, on.astype(float), DT * (k > 20) * (k % 8 == 3), DT
        ours, other = own.function(*args, z), single(*args, w)
        z, w = np.array(ours[2]).ravel(), np.array(other[2]).ravel()
        a, b = state_of(z), state_of(w)
        gap = np.abs(DenseFilter.minus(b, a)) / np.sqrt(np.diag(a.P))
        assert k < 10 or gap.max() < 0.01, f"tick {k}"
        assert _least(b.P) > -1e-4
    home = np.array(system.tree.keyframes["stand"], dtype=float)
    stand = np.concatenate([[0, 0, 0, 0, 0, 9.81], home[7:], np.zeros(12), home[:7]])
    statuses, flags = set(), 0
    for k in range(600):
        y, valid, mask = stand.copy(), np.ones(FIRST + 1), np.ones(4)
        age, dt = rng.choice([0.0, 0.01, rng.uniform(0, 0.03)]), DT
        match rng.integers(6):
            case 0:
                y[30 + rng.integers(7)] = rng.choice([np.nan, np.inf, 1e300, -1e5, 1e7, 0.0])
            case 1:
                y[30:] += rng.normal(0, 10.0 ** rng.integers(-3, 4), 7)
            case 2:
                age = rng.choice([np.nan, -1.0, 1e9, 0.05, np.inf])
            case 3:
                valid = rng.choice([0.0, 1.0, np.nan], FIRST + 1)
            case 4:
                y[33:37] = 0.0
        out = [np.array(x) for x in single(y, valid, mask, age, dt, w)]
        w = out[2].ravel()
        assert all(np.isfinite(x).all() for x in out), f"tick {k}"
        assert _least(state_of(w).P) > -1e-4, f"tick {k}"
        statuses.add(int(out[4].item()))
        flags |= int(out[5].item())
    assert flags == Flag.GATED | Flag.OVERDUE
    assert 4 not in statuses
    for _ in range(200):  # a second of good samples
        out = single(stand, np.ones(FIRST + 1), np.ones(4), DT, DT, w)
        w = out[2]
    q = np.array(out[0]).ravel()
    assert np.abs(q[:3] - stand[30:33]).max() < 0.01


def _least(P):
    """The least eigenvalue of a covariance in the size of its deviations."""
    scale = 1 / np.sqrt(np.diag(P))
    return np.linalg.eigvalsh(P * np.outer(scale, scale))[0]
