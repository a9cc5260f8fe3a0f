"""Motions: rates against differences of high order, SciPy's splines, laws of rest and of frames."""

import pickle

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline

import mbcasadi as mb
from mbcasadi import control, motion
from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError
from mbcasadi.motion import Pose

STEP = 2e-3
WEIGHTS = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60  # sixth order
DIFFERENCE = 3e-9  # STEP⁶ times seventh derivatives, and rounding over STEP

TIMES = np.array([0.2, 1.0, 1.7, 2.5, 3.1])


def poses(seed=0):
    rng = np.random.default_rng(seed)
    turns = np.cumsum(rng.normal(scale=0.4, size=(len(TIMES), 3)), axis=0)
    return [
        Pose.from_rotation(p, Rotation.from_rotvec(turn))
        for p, turn in zip(rng.normal(size=(len(TIMES), 3)), turns, strict=True)
    ]


def expression():
    t = ca.SX.sym("t")
    turned = Pose.exp(ca.vertcat(0, 0, 0, ca.sin(t), t, 0.3 * t**2)).quaternion
    return motion.pose_motion(t, ca.vertcat(ca.sin(t), t**2, 1), turned, end=4.0)


START = Pose([0.5, 0.1, 0.3], [0.9, 0.1, -0.3, 0.2])
MOTIONS = {
    "line": motion.line(START, Pose([0, 0.4, 1], [0, 1, 0.2, 0]), 2.0, begin=0.5),
    "circle": motion.circle(START, [0.2, 0, 0], [0, 0.3, 1], 1.7, ramp=0.5),
    "turning arc": motion.circle(
        START, [0.2, 0, 0], [0, 0.3, 1], 1.7, ramp=0.5, turns=1.2, turns_along=True
    ),
    "spline": motion.spline(TIMES, poses()),
    "spline with free ends": motion.spline(TIMES, poses(), rest=False),
    "expression": expression(),
}


def rate(values, t):
    """Return the derivative of a function of time by differences of sixth order."""
    return sum(w * values(t + k * STEP) for k, w in zip(range(-3, 4), WEIGHTS, strict=True)) / STEP


def turning(moving, t):
    """Return the angular velocity, world axes, from rotation matrices."""
    R = moving(t).pose.rotation_matrix
    spin = rate(lambda s: moving(s).pose.rotation_matrix, t) @ R.T
    return np.array([spin[2, 1], spin[0, 2], spin[1, 0]])


@pytest.mark.parametrize("name", MOTIONS)
def test_rates_are_the_derivatives_of_the_pose(name):
    moving = MOTIONS[name]
    for t in (0.83, 1.31, 2.22):
        sample = moving(t)
        velocity = np.append(rate(lambda s: moving(s).pose.position, t), turning(moving, t))
        assert np.abs(velocity).max() > 1e-3
        size = np.abs(sample.acceleration).max() + 1
        np.testing.assert_allclose(sample.velocity, velocity, atol=DIFFERENCE * size)
        acceleration = rate(lambda s: moving(s).velocity, t)
        np.testing.assert_allclose(sample.acceleration, acceleration, atol=DIFFERENCE * size)


@pytest.mark.parametrize("name", ["line", "turning arc", "spline"])
def test_motions_from_rest_to_rest_have_no_rates_at_their_ends_and_beyond(name):
    moving = MOTIONS[name]
    assert np.abs(moving((2 * moving.start + moving.end) / 3).acceleration).max() > 1e-2
    for t in (moving.start - 1.0, moving.start, moving.end, moving.end + 1.0):
        sample = moving(t)
        np.testing.assert_allclose(sample.velocity, 0, atol=1e-12)
        np.testing.assert_allclose(sample.acceleration, 0, atol=1e-11)
    beyond = moving(moving.end + 1.0).pose.matrix
    np.testing.assert_allclose(beyond, moving(moving.end).pose.matrix)


@pytest.mark.parametrize("rest", [True, False])
def test_splines_pass_through_their_poses_with_continuous_accelerations(rest):
    moving = motion.spline(TIMES, poses(), rest=rest)
    for t, pose in zip(TIMES, poses(), strict=True):
        np.testing.assert_allclose(moving(t).pose.matrix, pose.matrix, atol=1e-12)
    for t in TIMES[1:-1]:
        before, after = moving(t - 1e-9), moving(t + 1e-9)
        np.testing.assert_allclose(before.acceleration, after.acceleration, atol=1e-5)


def test_a_spline_does_not_depend_on_the_frames_of_its_orientations():
    left, right = poses(1)[:2]
    seen = motion.spline(TIMES, [left @ pose @ right for pose in poses()])
    for t in (0.5, 1.3, 2.9):
        expected = left.rotation_matrix @ MOTIONS["spline"](t).pose.rotation_matrix
        ours = seen(t).pose.rotation_matrix
        np.testing.assert_allclose(ours, expected @ right.rotation_matrix, atol=1e-12)


def test_free_splines_of_positions_are_scipys_cubic_ones():
    points = np.array([pose.position for pose in poses()])
    theirs, ours = CubicSpline(TIMES, points), MOTIONS["spline with free ends"]
    vectors = motion.vector_spline(TIMES, points, rest=False)
    for t in (0.2, 0.9, 2.0, 3.1):
        sample, vector = ours(t), vectors(t)
        for order, found in enumerate((sample.pose.position, sample.velocity[:3],
                                       sample.acceleration[:3])):  # fmt: skip
            np.testing.assert_allclose(found, theirs(t, order), atol=1e-11)
        np.testing.assert_allclose([vector.q, vector.v, vector.a], [theirs(t, k) for k in range(3)])


def test_splines_of_orientations_tend_to_scipys_as_way_points_get_closer():
    """Both interpolate the same smooth rotation to fourth order of the interval."""

    def apart(count):
        t = np.linspace(0, 2, count)
        rotations = Rotation.from_rotvec(np.c_[np.sin(t), 0.5 * t, 0.2 * t**2])
        ours = motion.spline(t, [Pose([0, 0, 0], q) for q in np.roll(rotations.as_quat(), 1, 1)],
                             rest=False)  # fmt: skip
        theirs = RotationSpline(t, rotations)
        return max(
            (theirs(s).inv() * ours(s).pose.to_rotation()).magnitude()
            for s in np.linspace(0.8, 1.2, 23)
        )

    coarse, fine = apart(13), apart(25)
    assert 1e-9 < coarse < 1e-4
    assert fine < coarse / 12  # 2⁴, less what the ends still add


def test_two_way_points_are_the_line_of_least_jerk():
    start, end = np.array([0.1, -0.2]), np.array([1.0, 3.0])
    spline, line = motion.vector_spline([0, 2], [start, end]), motion.vector_line(start, end, 2.0)
    for t in (0.0, 0.4, 1.9, 2.0):
        np.testing.assert_allclose(spline.values(t), line.values(t), atol=1e-12)


def test_a_circle_keeps_its_radius_its_period_and_its_sense():
    round_ = motion.circle(Pose([2, 0, 1]), [1, 0, 1], [0, 0, 2], 4.0, ramp=0.0)
    np.testing.assert_allclose(round_(1.0).pose.position, [1, 1, 1], atol=1e-12)
    np.testing.assert_allclose(round_(1.0).velocity, [-np.pi / 2, 0, 0, 0, 0, 0], atol=1e-12)
    along = motion.circle(Pose([2, 0, 1]), [1, 0, 1], [0, 0, 2], 4.0, turns=1.5, turns_along=True)
    expected = Pose([0, 0, 1], [0, 0, 0, 1])
    np.testing.assert_allclose(along(99.0).pose.matrix, expected.matrix, atol=1e-12)


def test_motions_are_read_from_csv(tmp_path):
    path = tmp_path / "way.csv"
    heading = "t [s],q.base.x [m],q.base.y [m],q.base.z [m],q.base.qw,q.base.qx,q.base.qy,q.base.qz"
    rows = [",".join(map(str, [t, *pose.qpos])) for t, pose in zip(TIMES, poses(), strict=True)]
    path.write_text("\n".join([heading, *rows]))
    read = motion.read_pose_motion(path, "q.base.")
    expected = MOTIONS["spline with free ends"]
    np.testing.assert_allclose(read.values(1.3), expected.values(1.3), atol=1e-12)
    vector = motion.read_vector_motion(path, ["q.base.z", "q.base.x"])
    np.testing.assert_allclose(vector(1.3).q, expected(1.3).pose.position[[2, 0]], atol=1e-12)
    with pytest.raises(UnknownNameError, match=r"q\.base\.x"):
        motion.read_pose_motion(path)
    path.write_text("t,x\n0,1\n1,none")
    with pytest.raises(ProblemError, match="expected a number in each row"):
        motion.read_vector_motion(path, ["x"])


@pytest.fixture(scope="module")
def arm():
    system = mb.read_mjcf(mb.models.path("arm_gripper"))
    tasks = [
        control.FrameTask("tool", orientation="", position="xz", name="hand"),
        control.FrameTask("tool", position="", name="turn"),
        control.PostureTask(),
    ]
    return system, control.InverseDynamicsQP(system, tasks)


def test_a_reference_takes_poses_and_samples_by_the_names_of_tasks(arm, tmp_path):
    system, law = arm
    sample = MOTIONS["spline"](1.2)
    q = np.linspace(0, 1, system.nv)
    vector = motion.VectorSample(q, 2 * q, 3 * q)
    ref = law.reference(hand=sample, turn=sample, posture=vector)
    by_slice = law.reference(
        hand_position=sample.pose.position[[0, 2]],
        hand_velocity=sample.velocity[[0, 2]],
        hand_acceleration=sample.acceleration[[0, 2]],
        turn_quaternion=sample.pose.quaternion,
        turn_angular_velocity=sample.velocity[3:],
        turn_angular_acceleration=sample.acceleration[3:],
        posture_q=q, posture_v=2 * q, posture_a=3 * q,
    )  # fmt: skip
    assert np.abs(by_slice).min() < np.abs(by_slice).max()
    np.testing.assert_array_equal(ref, by_slice)
    still = law.reference_at(system.tree.q0, {"hand": sample.pose})
    expected = law.reference_at(system.tree.q0, {"hand.position": sample.pose.position[[0, 2]]})
    np.testing.assert_array_equal(still, expected)
    follow = control.follow_motions(law, {"hand": MOTIONS["spline"], "turn": MOTIONS["spline"]})
    expected = law.reference(hand=sample, turn=sample)
    in_c = mb.export_c(follow.function, tmp_path / "reference").load(flags=("-O0",))
    for reference in (follow, pickle.loads(pickle.dumps(follow))):  # as campaigns send it
        np.testing.assert_array_equal(reference(1.2), expected)
    for t in (-1.0, 1.2, 9.0):
        np.testing.assert_allclose(np.array(in_c(t)).ravel(), follow(t), atol=1e-14)


def test_what_does_not_fit_a_task_is_refused_in_words(arm):
    system, law = arm
    with pytest.raises(UnknownNameError, match="hand"):
        law.reference(hnad=Pose())
    with pytest.raises(ProblemError, match="no slice that a pose gives"):
        law.reference(posture=Pose())
    with pytest.raises(ShapeError, match=f"2 entries, expected {system.nv}"):
        control.follow_motions(law, {"posture": motion.vector_line([0, 0], [1, 1], 1.0)})
    with pytest.raises(ProblemError, match="expressions"):
        law.reference(hand=Pose(ca.SX.sym("p", 3)))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: motion.spline([0, 1], [Pose()] * 3), ShapeError, r"expected \(3,\)"),
        (lambda: motion.spline([0, 0], [Pose()] * 2), ProblemError, "later than that before"),
        (lambda: motion.spline([0, 1, 2], [Pose()] * 3, rest=False), ProblemError, "at least 4"),
        (
            lambda: motion.spline([0, 1], [Pose(), Pose([0, 0, 0], [0.1, 1, 0, 0])]),
            ProblemError,
            "turns by 169°",
        ),
        (lambda: motion.circle(START, START.position, [0, 0, 1], 1.0), ProblemError, "radius"),
        (lambda: motion.circle(START, [0, 0, 0], [0, 0, 0], 1.0), ProblemError, "axis is zero"),
        (lambda: motion.line(START, START, 0.0), ProblemError, "duration"),
        (
            lambda: motion.vector_motion(ca.SX.sym("t"), ca.SX.sym("x")),
            ProblemError,
            "expected time alone",
        ),
    ],
)
def test_what_is_no_motion_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
