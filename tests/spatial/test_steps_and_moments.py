"""Elementary motions and mass moments, against plain matrices and clouds of point masses."""

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mbcasadi.spatial import (
    PAIRS,
    Moments,
    Move,
    Rotate,
    Turn,
    body_moments,
    moments_to_parent,
    vec3,
    vector_to_child,
    vector_to_parent,
    wrench_to_parent,
)

ROUNDING = 1e-13
ANGLE = 0.7


def matrix_of(step):
    """Return R and p of a step as arrays."""
    if isinstance(step, Move):
        return np.eye(3), np.array(step.by)
    if isinstance(step, Rotate):
        return np.array(step.R), np.zeros(3)
    angle = np.arctan2(step.sin, step.cos)
    return Rotation.from_rotvec(angle * np.eye(3)[step.axis]).as_matrix(), np.zeros(3)


def moments_of_points(masses, points):
    """Return the moments of point masses, by summing."""
    E = np.einsum("n,ni,nj->ij", masses, points, points)
    return Moments(
        float(masses.sum()), vec3(masses @ points), tuple(float(E[i, j]) for i, j in PAIRS)
    )


def cloud(seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 2.0, 6), rng.standard_normal((6, 3))


STEPS = [
    Move((0.3, -0.2, 0.5)),
    *(Turn(axis, np.cos(ANGLE), np.sin(ANGLE)) for axis in range(3)),
    *(Turn(axis, 0.0, sine) for axis in range(3) for sine in (1.0, -1.0)),
    Turn(1, -1.0, 0.0),
    Rotate(tuple(vec3(r) for r in Rotation.from_rotvec([0.3, 0.8, -0.4]).as_matrix())),
]


@pytest.mark.parametrize("step", STEPS)
def test_vectors_turn_like_matrices_and_back(step):
    R, _ = matrix_of(step)
    x = vec3([0.3, -1.2, 0.7])
    np.testing.assert_allclose(vector_to_parent(step, x), R @ x, atol=ROUNDING)
    np.testing.assert_allclose(vector_to_child(step, vector_to_parent(step, x)), x, atol=ROUNDING)


@pytest.mark.parametrize("step", STEPS)
def test_power_of_a_wrench_does_not_depend_on_the_frame(step):
    R, p = matrix_of(step)
    rng = np.random.default_rng(0)
    force, moment, v, w = rng.standard_normal((4, 3))
    f_out, n_out = wrench_to_parent(step, vec3(force), vec3(moment))
    # Velocity of the parent's origin for a body that has (v, w) at the child's.
    v_out, w_out = R @ v - np.cross(R @ w, p), R @ w
    assert np.dot(f_out, v_out) + np.dot(n_out, w_out) == pytest.approx(
        force @ v + moment @ w, abs=ROUNDING
    )


@pytest.mark.parametrize("step", STEPS)
def test_moments_move_with_their_points(step):
    R, p = matrix_of(step)
    masses, points = cloud(1)
    found = moments_to_parent(step, moments_of_points(masses, points))
    expected = moments_of_points(masses, points @ R.T + p)
    np.testing.assert_allclose(found.mass, expected.mass, atol=ROUNDING)
    np.testing.assert_allclose(found.first, expected.first, atol=ROUNDING)
    np.testing.assert_allclose(found.second, expected.second, atol=10 * ROUNDING)


def test_unit_accelerations_of_point_masses_give_the_columns_of_the_inertia():
    masses, points = cloud(2)
    moments = moments_of_points(masses, points)
    for k, axis in enumerate(np.eye(3)):
        for (force, moment), a in (
            (moments.translation_wrench(k), np.tile(axis, (6, 1))),
            (moments.rotation_wrench(k), np.cross(axis, points)),
        ):
            np.testing.assert_allclose(force, masses @ a, atol=ROUNDING)
            np.testing.assert_allclose(moment, masses @ np.cross(points, a), atol=10 * ROUNDING)


def test_body_moments_follow_steiner():
    masses, points = cloud(3)
    com = masses @ points / masses.sum()
    arms = points - com
    inertia = sum(
        m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms, strict=True)
    )
    m, s, E = body_moments(masses.sum(), com, inertia)
    expected = moments_of_points(masses, points)
    assert m == pytest.approx(expected.mass)
    np.testing.assert_allclose(s, expected.first, atol=ROUNDING)
    np.testing.assert_allclose([E[i, j] for i, j in PAIRS], expected.second, atol=10 * ROUNDING)


def test_quarter_turns_and_zeros_leave_no_operations():
    x = ca.SX.sym("x", 3)
    turned = vector_to_parent(Turn(2, 0.0, 1.0), (x[0], x[1], x[2]))
    moved, _ = wrench_to_parent(Move((0.0, 0.0, 0.0)), turned, turned)
    f = ca.Function("f", [x], [ca.vertcat(*moved)])
    inputs, outputs, signs = 3, 3, 1
    assert f.n_instructions() == inputs + outputs + signs
