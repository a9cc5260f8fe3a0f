"""Poses, Jacobians and bias accelerations of frames."""

import casadi as ca
import numpy as np
import pytest
from model_mechanisms import EVERY_JOINT, NEARLY_PARALLEL, Numbers, tree_of
from scipy.spatial.transform import Rotation

from mbcasadi import model

ROUNDING = 1e-13
DIFFERENCE = 1e-8  # central differences with steps of 1e-5

FRAMES = [
    (EVERY_JOINT, name)
    for name in ("on_drawer", "on_arm", "foot", "bob", "ground", "plate", "base", "world")
] + [(NEARLY_PARALLEL, "tip")]


@pytest.fixture(scope="module")
def robots():
    return {spec: Numbers(tree_of(spec)) for spec in (EVERY_JOINT, NEARLY_PARALLEL)}


@pytest.fixture(scope="module", params=FRAMES, ids=[name for _, name in FRAMES])
def case(request, robots):
    spec, name = request.param
    robot = robots[spec]
    frame = robot.frame(name)
    tree, q, v = robot.tree, robot.q, robot.v
    p, R = model.frame_pose(tree, frame, q)
    return {
        "robot": robot,
        "frame": frame,
        "p": robot.of(p, q),
        "R": robot.of(R, q),
        "J": robot.of(model.frame_jacobian(tree, frame, q), q),
        "velocity": robot.of(model.frame_velocity(tree, frame, q, v), q, v),
        "bias": robot.of(model.frame_bias(tree, frame, q, v), q, v),
        "states": [model.random_state(tree, np.random.default_rng(s)) for s in range(3)],
    }


def test_rotation_of_a_frame_is_a_rotation(case):
    for q, _ in case["states"]:
        R = case["R"](q)
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=ROUNDING)
        assert np.linalg.det(R) == pytest.approx(1.0)


def test_jacobian_is_the_rate_of_the_pose(case):
    step = 1e-5
    for q, v in case["states"]:
        robot, J = case["robot"], case["J"](q)
        ahead, behind = robot.integrate(q, step * v), robot.integrate(q, -step * v)
        linear = (case["p"](ahead) - case["p"](behind)) / (2 * step)
        turned = Rotation.from_matrix(case["R"](ahead) @ case["R"](behind).T)
        angular = turned.as_rotvec() / (2 * step)
        np.testing.assert_allclose(J @ v, np.r_[linear, angular], atol=DIFFERENCE)
        np.testing.assert_allclose(case["velocity"](q, v), J @ v, atol=ROUNDING * 10)


def test_bias_is_the_rate_of_the_jacobian_times_velocity(case):
    for q, v in case["states"]:
        expected = case["robot"].along(case["J"], q, v) @ v
        scale = max(1.0, abs(expected).max())
        np.testing.assert_allclose(case["bias"](q, v), expected, atol=DIFFERENCE * scale)


def test_only_joints_that_carry_the_frame_have_columns(robots):
    robot = robots[EVERY_JOINT]
    dof = {joint.name: joint.dof for joint in robot.tree.joints}
    J = model.frame_jacobian(robot.tree, robot.frame("foot"), robot.q)
    columns = set(J.sparsity().get_triplet()[1])
    assert columns == {*range(6), dof["hip"], dof["knee"]}
    ground = model.frame_jacobian(robot.tree, robot.frame("ground"), robot.q)
    assert ground.nnz() == 0
    assert model.frame_bias(robot.tree, robot.frame("ground"), robot.q, robot.v).nnz() == 0


def test_bias_without_gravity_needs_no_gravity(robots):
    """The acceleration of gravity cancels: the bias at rest is zero to rounding."""
    robot = robots[EVERY_JOINT]
    bias = model.frame_bias(robot.tree, robot.frame("on_drawer"), robot.q, robot.v)
    q, _ = model.random_state(robot.tree, np.random.default_rng(0))
    at_rest = robot.of(bias, robot.q, robot.v)(q, np.zeros(robot.tree.nv))
    np.testing.assert_allclose(at_rest, np.zeros(6), atol=1e-14 * abs(robot.tree.gravity).max())


def test_a_second_build_adds_no_operations(robots):
    """Built twice from the same symbols, kinematics merge into one."""
    robot = robots[EVERY_JOINT]
    tree, q, frame = robot.tree, robot.q, robot.frame("foot")

    def operations(*outputs):
        return ca.Function("f", [q], list(outputs), {"cse": True}).n_instructions()

    J = model.frame_jacobian(tree, frame, q)
    again = model.frame_jacobian(tree, frame, q)
    assert operations(J, again) == operations(J) + J.nnz()
