"""The motion along a branch at singular poses, against the motion in one coordinate."""

import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from dynamics_states import consistent_state, the_case
from support.compiled import compiled

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from twins import slider_crank

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.description.status import BranchStatus
from mbcasadi.dynamics import branch_motion, forward_dynamics
from mbcasadi.dynamics.formulations import FORMULATIONS

EXACT = 1e-12
LENGTH, MASS, GRAVITY = 1.3, 0.7, 9.81
CROSSED = np.array([np.pi / 2, -np.pi])  # the crank upright, the rod folded back on it
TURNING, FOLDED = np.array([0.5, -1.0]), np.array([0.5, 0.0])
FORCE = np.array([0.3, -0.2])


@pytest.fixture(scope="module")
def crank():
    return slider_crank.system(MASS, LENGTH)


def numbers(outputs):
    return [np.array(x, dtype=float).ravel() for x in outputs]


def on_one_coordinate(tangent, bend, M, h, f, speed):
    """Return a and f_c of q(s): `a = q' s̈ + q'' ṡ²`, s̈ from `q'ᵀ (M a + h - f) = 0`."""
    bending = bend * speed**2
    push = tangent @ (f - h - M @ bending) / (tangent @ M @ tangent)
    a = tangent * push + bending
    return a, M @ a + h - f


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("v", [TURNING, FOLDED])
def test_it_is_the_motion_of_the_branch_and_forward_dynamics_is_not(crank, v, formulation):
    M, h = crank.mass_matrix(CROSSED).full(), crank.bias_force(CROSSED, v).full().ravel()
    a_branch, force = on_one_coordinate(v / v[0], np.zeros(2), M, h, FORCE, v[0])
    a, f_c, _, status = numbers(branch_motion(crank, formulation)(CROSSED, v, FORCE))
    np.testing.assert_allclose(a, a_branch, atol=EXACT)
    np.testing.assert_allclose(f_c, force, atol=EXACT)
    assert status == BranchStatus.TAKEN
    free = np.linalg.solve(M, FORCE - h)
    found = numbers(forward_dynamics(crank, formulation, derivatives=False)(CROSSED, v, FORCE))[0]
    np.testing.assert_allclose(found, free, atol=EXACT)
    if v is TURNING:
        np.testing.assert_allclose(a, [0.1183, -0.2367], atol=5e-5)
        np.testing.assert_allclose(found, [0.2536, -0.1691], atol=5e-5)


@pytest.mark.parametrize("v", [TURNING, FOLDED])
def test_it_is_the_limit_of_forward_dynamics_from_both_sides(crank, v):
    branch, regular = branch_motion(crank), forward_dynamics(crank, derivatives=False)
    a, f_c, *_ = numbers(branch(CROSSED, v, FORCE))
    step = 1e-4
    sides = [numbers(regular(CROSSED + sign * step * v, v, FORCE)) for sign in (1, -1)]
    np.testing.assert_allclose(np.mean([side[0] for side in sides], axis=0), a, atol=1e-7)
    np.testing.assert_allclose(np.mean([side[1] for side in sides], axis=0), f_c, atol=1e-6)


def test_a_curved_branch_bends_as_its_second_derivative_says():
    """In Cartesian coordinates and with unequal weights; both branches, by hand."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)  # pin x, pin y, slider x
    M = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]])
    loop = ca.vertcat(q[0] ** 2 + q[1] ** 2 - 1, (q[2] - q[0]) ** 2 + q[1] ** 2 - 1)
    twice = ca.vertcat(loop, loop[0] - 3 * loop[1])  # and one row that repeats the others
    system = mb.from_equations(q, v, M=M, h=[0, 2.0, 0], phi=twice)
    motion, f, speed = branch_motion(system), np.array([0.7, -0.4, 1.1]), 1.7
    turning = np.array([-1.0, 0, -2]), np.array([0, -1.0, 0])  # (cos s, sin s, 2 cos s) at π/2
    folded = np.array([-1.0, 0, 0]), np.array([0, -1.0, 0])  # (cos s, sin s, 0)
    for tangent, bend in (turning, folded):
        expected = on_one_coordinate(tangent, bend, M, np.array([0, 2.0, 0]), f, speed)
        a, f_c, _, status = numbers(motion([0, 1, 0], speed * tangent, f))
        np.testing.assert_allclose(a, expected[0], atol=EXACT)
        np.testing.assert_allclose(f_c, expected[1], atol=EXACT)
        assert status == BranchStatus.TAKEN


def test_third_derivatives_of_the_rows_count():
    """(y - x - x³) (y + sin x) = 0: a_y = 6 x ẋ² + … on one branch; at x = 0 the bend is y''."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    curves = (lambda x: x + 2 * x**2, 1.0, 4.0), (lambda x: 3 * x**2 - ca.sin(x), -1.0, 6.0)
    phi = (q[1] - curves[0][0](q[0])) * (q[1] - curves[1][0](q[0])) * ca.exp(q[0])
    system = mb.from_equations(q, v, M=np.diag([1.0, 2.0]), h=[0, 0], phi=phi)
    for _, slope, bend in curves:
        tangent = np.array([1.0, slope])
        expected, _ = on_one_coordinate(
            tangent, np.array([0, bend]), np.diag([1.0, 2.0]), np.zeros(2), FORCE, -0.8
        )
        a, *_, status = numbers(branch_motion(system)([0, 0], -0.8 * tangent, FORCE))
        np.testing.assert_allclose(a, expected, atol=EXACT)
        assert status == BranchStatus.TAKEN


def test_rows_that_move_with_time_have_their_terms():
    """The branches y = g(t) and y = x + g(t) meet at x = 0."""
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    g, rate, second = np.sin(0.4) * 2, np.cos(0.4) * 2, -np.sin(0.4) * 2
    level = 2 * ca.sin(t)
    phi = (q[1] - level) * (q[1] - q[0] - level)
    system = mb.from_equations(q, v, M=np.eye(2), h=[0, 0], phi=phi, t=t)
    motion = branch_motion(system)
    a, *_, status = numbers(motion([0, g], [0.6, rate], FORCE, 0.4))
    np.testing.assert_allclose(a, [FORCE[0], second], atol=EXACT)
    assert status == BranchStatus.TAKEN
    a, *_, status = numbers(motion([0, g], [0.6, 0.6 + rate], FORCE, 0.4))
    along = (FORCE.sum() - second) / 2  # (a_x, a_x + g̈), pushed along (1, 1)
    np.testing.assert_allclose(a, [along, along + second], atol=EXACT)
    assert status == BranchStatus.TAKEN


def test_at_rest_and_off_the_branches_it_says_so_and_moves_as_forward_dynamics(crank):
    cases = {
        (0.0, 0.0): BranchStatus.AT_REST,
        (1e-9, -2e-9): BranchStatus.AT_REST,
        (1.0, 1.0): BranchStatus.OFF_BRANCH,
        (1e-5, 1e-5): BranchStatus.OFF_BRANCH,
        (1e-5, -2e-5): BranchStatus.TAKEN,
    }
    for v, expected in cases.items():
        a, *_, status = numbers(branch_motion(crank)(CROSSED, v, FORCE))
        free = numbers(forward_dynamics(crank, derivatives=False)(CROSSED, v, FORCE))[0]
        assert status == expected, v
        assert np.allclose(a, free, atol=EXACT) == (expected != BranchStatus.TAKEN)
    beside = CROSSED + 0.3 * TURNING
    assert numbers(branch_motion(crank)(beside, [0, 0], FORCE))[3] == BranchStatus.REGULAR


def status_of(phi, q, v, place, speed):
    system = mb.from_equations(q, v, M=np.eye(q.numel()), h=np.zeros(q.numel()), phi=phi)
    force = 1.0 + np.arange(q.numel())
    a, *_, status = numbers(branch_motion(system)(place, speed, force))
    return a, status


def test_a_velocity_that_branches_share_leaves_the_motion_undetermined():
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    crossing = q[0] * q[1]  # two planes, which meet along the third axis
    assert status_of(crossing, q, v, [0, 0, 0], [0, 0, 1])[1] == BranchStatus.DEGENERATE
    a, status = status_of(crossing, q, v, [0, 0, 0], [0, 1, 1])
    assert status == BranchStatus.TAKEN
    np.testing.assert_allclose(a, [0, 2, 3], atol=EXACT)
    cusp, touching = q[0] ** 3 - q[1] ** 2, q[1] ** 2 - q[0] ** 4
    for phi in (cusp, touching, q[0] ** 2 * q[1]):
        assert status_of(phi, q, v, [0, 0, 0], [1, 0, 0])[1] == BranchStatus.DEGENERATE


def test_branches_of_different_dimension_each_have_their_motion():
    """x z = x y = 0: the plane x = 0, and the line y = z = 0."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    phi = q[0] * q[1:]
    for speed, expected in (([0, 1, 2], [0, 2, 3]), ([1, 0, 0], [1, 0, 0])):
        a, status = status_of(phi, q, v, [0, 0, 0], speed)
        np.testing.assert_allclose(a, expected, atol=EXACT)
        assert status == BranchStatus.TAKEN


def test_a_row_that_the_mask_switches_off_adds_nothing(crank):
    motion = branch_motion(crank.with_mask())
    for mask, expected in ((1, BranchStatus.TAKEN), (0, BranchStatus.REGULAR)):
        _, f_c, _, status = numbers(motion(CROSSED, TURNING, FORCE, mask))
        assert status == expected
        assert np.any(np.abs(f_c) > 1e-3) == bool(mask)


@pytest.mark.parametrize("name", ["four_bar", "bricard", "spatial_loop", "standing_quadruped"])
def test_redundant_rows_of_regular_poses_change_nothing(name):
    case, rng = the_case(name), np.random.default_rng(3)
    motion, regular = branch_motion(case.system), forward_dynamics(case.system, derivatives=False)
    for _ in range(4):
        q, v = consistent_state(case, rng)
        f = rng.standard_normal(case.system.nv)
        *found, status = numbers(motion(q, v, f))
        assert status == BranchStatus.REGULAR
        assert numbers(motion(q, 0 * v, f))[3] == BranchStatus.REGULAR
        for value, expected in zip(found, numbers(regular(q, v, f)), strict=True):
            np.testing.assert_allclose(value, expected, atol=1e-9 * (1 + np.abs(expected).max()))


def test_the_generated_c_does_the_same(crank, tmp_path):
    motion = branch_motion(crank)
    program = compiled(motion, tmp_path)
    for v in (TURNING, FOLDED, [1, 1], [0, 0]):
        for found, expected in zip(
            numbers(program(CROSSED, v, FORCE)), numbers(motion(CROSSED, v, FORCE)), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=EXACT)


def test_rows_for_velocities_are_refused_by_name(crank):
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rolling = crank.with_rows(q, v, psi=v[0] * v[1])
    with pytest.raises(err.UnsupportedFeatureError, match="rows phi1 of 'slider_crank' hold for"):
        branch_motion(rolling)
    with pytest.raises(err.ProblemError, match="rest_speed = 0"):
        branch_motion(crank, rest_speed=0.0)
