"""Steps on the manifold of configurations."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from model_mechanisms import EVERY_JOINT, Numbers, tree_of

from mbcasadi import model

ROUNDING = 1e-13
STEP = 1e-6
DIFFERENCE = 1e-9


@pytest.fixture(scope="module")
def robot():
    return Numbers(tree_of(EVERY_JOINT))


def states(robot, count=5):
    return [model.random_state(robot.tree, np.random.default_rng(s)) for s in range(count)]


def test_difference_inverts_integrate(robot):
    for size in (0.0, 1e-9, 0.03, 0.5):  # rotations stay below half a turn
        for q, v in states(robot):
            dv = size * v
            found = robot.difference(q, robot.integrate(q, dv))
            np.testing.assert_allclose(found, dv, atol=ROUNDING)


def test_integrate_inverts_difference(robot):
    for (q0, _), (q1, _) in zip(states(robot), states(robot)[1:], strict=False):
        found = robot.integrate(q0, robot.difference(q0, q1))
        for joint in robot.tree.joints:
            if joint.kind in ("free", "ball"):  # a quaternion and its negative are one rotation
                row = joint.qpos + (3 if joint.kind == "free" else 0)
                rows = slice(row, row + 4)
                found[rows] *= np.sign(found[rows] @ q1[rows])
        np.testing.assert_allclose(found, q1, atol=ROUNDING)


def test_integrate_and_difference_are_those_of_mujoco(robot):
    compiled = mujoco.MjModel.from_xml_string(EVERY_JOINT)
    for (q0, v), (q1, _) in zip(states(robot), states(robot)[1:], strict=False):
        moved, dv = q0.copy(), np.zeros(compiled.nv)
        mujoco.mj_integratePos(compiled, moved, v, 1.0)
        mujoco.mj_differentiatePos(compiled, dv, 1.0, q0, q1)
        np.testing.assert_allclose(robot.integrate(q0, v), moved, atol=ROUNDING)
        np.testing.assert_allclose(robot.difference(q0, q1), dv, atol=ROUNDING)


def test_velocity_map_is_the_derivative_of_integrate_at_zero(robot):
    tree, q, dv = robot.tree, robot.q, robot.v
    N = robot.of(model.velocity_map(tree, q), q)
    slope = robot.of(ca.jacobian(model.integrate(tree, q, dv), dv), q, dv)
    for q0, _ in states(robot):
        np.testing.assert_allclose(slope(q0, np.zeros(tree.nv)), N(q0), atol=ROUNDING)


def test_derivative_of_difference_at_zero_is_the_identity(robot):
    tree, q, dv = robot.tree, robot.q, robot.v
    step = model.difference(tree, q, model.integrate(tree, q, dv))
    slope = robot.of(ca.jacobian(step, dv), q, dv)
    for q0, _ in states(robot):
        at_zero = slope(q0, np.zeros(tree.nv))
        np.testing.assert_allclose(at_zero, np.eye(tree.nv), atol=ROUNDING)


def test_derivatives_of_difference_agree_with_finite_differences(robot):
    tree, q, dv = robot.tree, robot.q, robot.v
    q1 = ca.SX.sym("q1", tree.nq)
    moved = model.difference(tree, q, model.integrate(tree, q1, dv))
    slope = robot.of(ca.jacobian(moved, dv), q, q1, dv)
    (q0, _), (qe, _) = states(robot, 2)
    exact = slope(q0, qe, np.zeros(tree.nv))
    for k, unit in enumerate(np.eye(tree.nv)):
        found = robot.along(lambda x: robot.difference(q0, x), qe, unit, STEP)
        np.testing.assert_allclose(exact[:, k], found, atol=DIFFERENCE)


def test_velocity_map_has_orthogonal_columns_on_unit_quaternions(robot):
    N = robot.of(model.velocity_map(robot.tree, robot.q), robot.q)
    for q, _ in states(robot):
        gram = N(q).T @ N(q)
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=ROUNDING)


def test_random_states_have_unit_quaternions_and_repeat_with_the_seed(robot):
    (q, v), (q_again, v_again) = (
        model.random_state(robot.tree, np.random.default_rng(4)) for _ in range(2)
    )
    assert np.array_equal(q, q_again)
    assert np.array_equal(v, v_again)
    assert np.linalg.norm(q[3:7]) == pytest.approx(1.0)
