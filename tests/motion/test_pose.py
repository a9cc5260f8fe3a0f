"""Poses: laws of the group, and SciPy, MuJoCo and placements of others as references."""

from types import SimpleNamespace

import casadi as ca
import mujoco
import numpy as np
import pytest
from scipy.spatial import transform

import mbcasadi as mb
from mbcasadi.errors import MissingExtraError, ProblemError, ShapeError
from mbcasadi.motion import Pose, frame_pose

ROUNDING = 1e-13
HALF_TURN = Pose([0.3, -0.2, 0.5], [0.0, 0.6, 0.0, -0.8])
SMALL = Pose.exp([0.1, 0.2, 0.3, 1e-9, -2e-9, 1e-9])


has_rigid_transform = pytest.mark.skipif(
    not hasattr(transform, "RigidTransform"), reason="SciPy has it from 1.16 on"
)


def random_poses(count, seed=0):
    rng = np.random.default_rng(seed)
    return [Pose(rng.normal(size=3), rng.normal(size=4)) for _ in range(count)]


def test_products_and_inverses_are_those_of_matrices():
    for a, b in zip(random_poses(10), random_poses(10, 1), strict=True):
        np.testing.assert_allclose((a @ b).matrix, a.matrix @ b.matrix, atol=ROUNDING)
        np.testing.assert_allclose(a.inverse().matrix, np.linalg.inv(a.matrix), atol=ROUNDING)


def test_products_and_inverses_are_those_of_mujoco():
    for a, b in zip(random_poses(10), random_poses(10, 1), strict=True):
        p, q = np.zeros(3), np.zeros(4)
        mujoco.mju_mulPose(p, q, a.position, a.quaternion, b.position, b.quaternion)
        np.testing.assert_allclose((a @ b).qpos, [*p, *q], atol=ROUNDING)
        mujoco.mju_negPose(p, q, a.position, a.quaternion)
        np.testing.assert_allclose(a.inverse().qpos, [*p, *q], atol=ROUNDING)
        mujoco.mju_trnVecPose(p, a.position, a.quaternion, b.position)
        np.testing.assert_allclose(a.act(b.position), p, atol=ROUNDING)


@has_rigid_transform
@pytest.mark.parametrize("pose", [*random_poses(5), HALF_TURN, SMALL, Pose()])
def test_exponential_and_logarithm_are_those_of_scipy(pose):
    theirs = transform.RigidTransform.from_matrix(pose.matrix)
    ours, turn_first = pose.log(), theirs.as_exp_coords()
    np.testing.assert_allclose(Pose.exp(ours).matrix, pose.matrix, atol=ROUNDING)
    np.testing.assert_allclose(np.linalg.norm(ours[3:]), np.linalg.norm(turn_first[:3]), atol=1e-9)
    back = transform.RigidTransform.from_exp_coords(np.roll(ours, 3))
    np.testing.assert_allclose(back.as_matrix(), pose.matrix, atol=ROUNDING)


def test_an_interpolation_is_a_line_and_scipys_slerp():
    a, b = random_poses(2, 3)
    slerp = transform.Slerp(
        [0, 1], transform.Rotation.concatenate([a.to_rotation(), b.to_rotation()])
    )
    for s in (0.0, 0.3, 1.0):
        between = a.interpolate(b, s)
        np.testing.assert_allclose(between.position, (1 - s) * a.position + s * b.position)
        np.testing.assert_allclose(between.rotation_matrix, slerp(s).as_matrix(), atol=ROUNDING)


def test_points_are_moved_one_by_one():
    pose, points = random_poses(1)[0], np.arange(12.0).reshape(4, 3)
    moved = pose.act(points)
    for k in range(4):
        np.testing.assert_allclose(moved[k], (pose.matrix @ [*points[k], 1])[:3], atol=ROUNDING)
        np.testing.assert_allclose(pose.act(points[k]), moved[k], atol=ROUNDING)


def test_all_forms_lead_back_to_the_pose():
    for pose in (*random_poses(3), HALF_TURN):
        placement = SimpleNamespace(translation=pose.position, rotation=pose.rotation_matrix)
        for back in (
            Pose.from_matrix(pose.matrix),
            Pose.from_xmat(pose.position, pose.rotation_matrix.ravel()),
            Pose.from_qpos(pose.qpos),
            Pose.from_rotation(pose.position, pose.to_rotation()),
            Pose.from_se3(placement),
        ):
            np.testing.assert_allclose(back.matrix, pose.matrix, atol=ROUNDING)


@has_rigid_transform
def test_a_rigid_transform_of_scipy_leads_back_to_the_pose():
    for pose in (*random_poses(3), HALF_TURN):
        back = Pose.from_rigid_transform(pose.to_rigid_transform())
        np.testing.assert_allclose(back.matrix, pose.matrix, atol=ROUNDING)


def test_a_scipy_without_rigid_transforms_is_named(monkeypatch):
    monkeypatch.delattr(transform, "RigidTransform", raising=False)
    with pytest.raises(MissingExtraError, match=r"scipy>=1\.16"):
        Pose().to_rigid_transform()


def test_pinocchio_gets_translation_and_rotation(monkeypatch):
    pose = random_poses(1)[0]

    class Quaternion:
        def __init__(self, w, x, y, z):
            self.rotation = transform.Rotation.from_quat([x, y, z, w])

        def matrix(self):
            return self.rotation.as_matrix()

    def placement(R, p):
        return SimpleNamespace(rotation=R, translation=p)

    module = SimpleNamespace(SE3=placement, Quaternion=Quaternion)
    monkeypatch.setitem(__import__("sys").modules, "pinocchio", module)
    np.testing.assert_allclose(Pose.from_se3(pose.to_se3()).matrix, pose.matrix, atol=ROUNDING)
    monkeypatch.setitem(__import__("sys").modules, "pinocchio", None)
    with pytest.raises(MissingExtraError, match="pip install pin"):
        pose.to_se3()


def test_a_frame_has_the_pose_that_mujoco_gives():
    path = mb.models.path("arm_gripper")
    model = mujoco.MjModel.from_xml_path(str(path))
    data, system = mujoco.MjData(model), mb.read_mjcf(path)
    data.qpos[:3] = 0.3, -0.4, 0.5
    mujoco.mj_kinematics(model, data)
    name = model.body(model.nbody - 1).name
    theirs = Pose.from_xmat(data.body(name).xpos, data.body(name).xmat)
    ours = frame_pose(system, name, data.qpos, kind="body")
    np.testing.assert_allclose(ours.matrix, theirs.matrix, atol=ROUNDING)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_expressions_give_what_numbers_give(kind):
    a, b = random_poses(2)
    x, y = kind.sym("x", 7), kind.sym("y", 7)
    A, B = Pose(x[:3], x[3:]), Pose(y[:3], y[3:])
    outputs = [
        (A @ B.inverse()).matrix, A.log(), A.interpolate(B, 0.4).qpos, A.act([1.0, 2.0, 3.0]),
        A.act(ca.DM([[1, 2, 3], [4, 5, 6]]).full()), (A @ b).qpos, Pose.exp(A.log()).matrix,
    ]  # fmt: skip
    function = ca.Function("f", [x, y], outputs)
    numbers = [
        (a @ b.inverse()).matrix, a.log(), a.interpolate(b, 0.4).qpos, a.act([1.0, 2.0, 3.0]),
        a.act([[1, 2, 3], [4, 5, 6]]), (a @ b).qpos, a.matrix,
    ]  # fmt: skip
    for symbolic, number in zip(function(a.qpos, b.qpos), numbers, strict=True):
        expected = number if number.ndim == 2 else number[:, None]
        np.testing.assert_allclose(symbolic.full(), expected, atol=ROUNDING)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Pose([0, 0], [1, 0, 0, 0]), ShapeError, r"position has shape \(2,\)"),
        (lambda: Pose([0, 0, 0], [0, 0, 0, 0]), ProblemError, "length zero"),
        (lambda: Pose([0, 0, np.nan]), ShapeError, "NaN"),
        (lambda: Pose(ca.SX.sym("p", 2)), ShapeError, r"expected \(3, 1\)"),
        (lambda: Pose.from_matrix(np.ones((4, 4))), ProblemError, "last row"),
        (lambda: Pose.from_xmat([0, 0, 0], -np.eye(3)), ProblemError, "no rotation"),
        (lambda: Pose.from_rotation([0, 0, 0], 3), ProblemError, "expected a scipy"),
        (lambda: Pose.from_se3(3), ProblemError, "expected a pinocchio"),
        (lambda: Pose().act(np.eye(2)), ShapeError, r"expected \(3,\) or \(n, 3\)"),
        (lambda: Pose(ca.SX.sym("p", 3)).to_rotation(), ProblemError, "expected numbers"),
    ],
)
def test_what_is_no_pose_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
