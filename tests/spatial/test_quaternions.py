"""Unit quaternions: laws, and values and derivatives near zero and near half turns."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mbcasadi.spatial import (
    conjugate,
    exponential,
    logarithm,
    multiply,
    normalise,
    quaternion_of,
    rotation,
    velocity_matrix,
)

ROUNDING = 1e-14
NEAR_HALF_TURN = 1e-9  # the angle is read from 2 atan2(sine, cosine) where cosine is about 0
STEP = 1e-6
DIFFERENCE = 1e-9  # central differences with STEP: STEP² plus rounding over STEP

w = ca.SX.sym("w", 3)
a = ca.SX.sym("a", 4)
b = ca.SX.sym("b", 4)


def parts(x, n):
    return tuple(x[i] for i in range(n))


exp_fun = ca.Function("exp", [w], [ca.vertcat(*exponential(parts(w, 3)))])
log_fun = ca.Function("log", [a], [ca.vertcat(*logarithm(parts(a, 4)))])
mul_fun = ca.Function("mul", [a, b], [ca.vertcat(*multiply(parts(a, 4), parts(b, 4)))])
rot_fun = ca.Function("rot", [a], [ca.vertcat(*[ca.horzcat(*r) for r in rotation(parts(a, 4))])])


def number(f, *args):
    return np.array(f(*args)).squeeze()


def random_quats(count, seed=0):
    q = np.random.default_rng(seed).standard_normal((count, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def test_product_of_quaternions_is_product_of_rotations():
    for qa, qb in zip(random_quats(20), random_quats(20, 1), strict=True):
        both = number(rot_fun, number(mul_fun, qa, qb))
        np.testing.assert_allclose(both, number(rot_fun, qa) @ number(rot_fun, qb), atol=ROUNDING)


@pytest.mark.parametrize("length", [1e-14, 1e-3, 1e9])
def test_quaternions_of_any_length_are_normalised_as_by_mujoco(length):
    quat = length * random_quats(1)[0]
    unit = quat.copy()
    mujoco.mju_normalize4(unit)
    np.testing.assert_allclose(normalise(tuple(quat)), unit, atol=ROUNDING)


def test_rotation_matrix_agrees_with_scipy():
    for quat in random_quats(20):
        reference = Rotation.from_quat(np.roll(quat, -1)).as_matrix()
        np.testing.assert_allclose(number(rot_fun, quat), reference, atol=ROUNDING)


def test_a_rotation_matrix_has_its_quaternion_at_half_turns_too():
    R = ca.SX.sym("R", 3, 3)
    quat_fun = ca.Function(
        "quat", [R], [ca.vertcat(*quaternion_of([parts(R[i, :], 3) for i in range(3)]))]
    )
    half_turns = [np.append(0.0, axis) for axis in np.eye(3)] + [np.array([0.0, 0.6, 0.0, -0.8])]
    near = [quat + 1e-9 for quat in half_turns]
    for quat in (*random_quats(20), *half_turns, *near, np.array([1.0, 0, 0, 0])):
        rotation_of = Rotation.from_quat(np.roll(quat, -1))
        ours, theirs = (
            number(quat_fun, rotation_of.as_matrix()),
            rotation_of.as_quat()[[3, 0, 1, 2]],
        )
        np.testing.assert_allclose(ours * np.sign(ours @ theirs), theirs, atol=ROUNDING)


def test_conjugate_is_the_inverse():
    quat = random_quats(1)[0]
    unit = ca.vertcat(*multiply(parts(a, 4), conjugate(parts(a, 4))))
    product = number(ca.Function("f", [a], [unit]), quat)
    np.testing.assert_allclose(product, [1, 0, 0, 0], atol=ROUNDING)


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-12, 1e-6, 0.03, 0.0317, 0.5, 2.0, 3.1])
def test_logarithm_inverts_exponential(angle):
    for direction in random_quats(5)[:, :3]:
        vector = angle * direction / np.linalg.norm(direction)
        found = number(log_fun, number(exp_fun, vector))
        np.testing.assert_allclose(found, vector, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.0316, 0.03163, 1.0, 3.0])
def test_exponential_agrees_with_scipy(angle):
    vector = angle * np.array([0.6, -0.48, 0.64])
    reference = np.roll(Rotation.from_rotvec(vector).as_quat(), 1)
    np.testing.assert_allclose(number(exp_fun, vector), reference, atol=ROUNDING)


def test_logarithm_takes_the_short_way():
    quat = number(exp_fun, [0.0, 0.0, 1.2])
    np.testing.assert_allclose(number(log_fun, -quat), [0.0, 0.0, 1.2], atol=ROUNDING)


def test_logarithm_of_a_half_turn_is_a_half_turn():
    found = number(log_fun, [0.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(found, [0.0, np.pi, 0.0], atol=NEAR_HALF_TURN)


def test_derivatives_at_zero_rotation_are_finite_and_right():
    jacobian = ca.Function("J", [w], [ca.jacobian(ca.vertcat(*exponential(parts(w, 3))), w)])
    expected = np.vstack([np.zeros(3), 0.5 * np.eye(3)])
    np.testing.assert_allclose(number(jacobian, np.zeros(3)), expected, atol=ROUNDING)
    back = ca.Function("J", [a], [ca.jacobian(ca.vertcat(*logarithm(parts(a, 4))), a)])
    at_identity = number(back, [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(at_identity[:, 1:], 2.0 * np.eye(3), atol=ROUNDING)
    assert np.all(np.isfinite(at_identity))


def test_second_derivatives_at_zero_rotation_are_finite():
    scalar = ca.sum1(ca.vertcat(*exponential(parts(w, 3))))
    hessian = number(ca.Function("H", [w], [ca.hessian(scalar, w)[0]]), np.zeros(3))
    # cos(|w|/2) = 1 - |w|²/8 has the Hessian -1/4; the vector part is odd and has none.
    np.testing.assert_allclose(hessian, -0.25 * np.eye(3), atol=ROUNDING)


@pytest.mark.parametrize("angle", [1e-4, 0.0316, 0.031623, 0.5, 2.5])
def test_derivatives_agree_with_differences_on_both_sides_of_the_series(angle):
    vector = angle * np.array([0.6, -0.48, 0.64])
    jacobian = ca.Function("J", [w], [ca.jacobian(ca.vertcat(*exponential(parts(w, 3))), w)])
    for k in range(3):
        step = STEP * np.eye(3)[k]
        slope = (number(exp_fun, vector + step) - number(exp_fun, vector - step)) / (2 * STEP)
        np.testing.assert_allclose(number(jacobian, vector)[:, k], slope, atol=DIFFERENCE)


def test_velocity_matrix_is_the_derivative_along_the_exponential():
    G = ca.Function("G", [a], [ca.vertcat(*[ca.horzcat(*r) for r in velocity_matrix(parts(a, 4))])])
    moved = ca.vertcat(*multiply(parts(a, 4), exponential(parts(w, 3))))
    slope = ca.Function("dq", [a, w], [ca.jacobian(moved, w)])
    for quat in random_quats(5):
        np.testing.assert_allclose(number(G, quat), number(slope, quat, np.zeros(3)), atol=ROUNDING)
