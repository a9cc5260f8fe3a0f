"""Least-distance problems with quadratic cones: Karush-Kuhn-Tucker, Clarabel, Farkas, any start."""

from types import SimpleNamespace

import clarabel
import numpy as np
import pytest
from scipy import sparse
from support.native_cones import NativeCones

from mbcasadi.description.qp_stages import APEX, C_PRIMAL_TOLERANCE, ON_CONE, SolverFlag
from mbcasadi.qp.cone_newton import newton
from mbcasadi.qp.cone_planes import split
from mbcasadi.qp.cone_program import _pose, _warm, solve_cone_program

EXACT = 1e-10  # residuals relative to x; nearly parallel rows cost a few of sixteen digits
SAME = 1e-9  # of x between two runs of the same method
AS_INTERIOR = 3e-4  # of x at a gap of 1e-12: Clarabel has its square root, and may end early
SIZES = ((3, 1, 2), (12, 4, 16), (24, 8, 20))  # unknowns, cones, linear rows


def problem(rng, n, cones, linear, kind):
    """Return rows and bounds: cones anywhere, around a point, or well around it; some are off."""
    A = rng.normal(size=(linear + 3 * cones, n))
    lower = -np.abs(rng.normal(size=linear)) * rng.choice([1.0, 3.0, 10.0])
    upper = 5 * np.abs(rng.normal(size=linear))
    apex = rng.normal(size=3 * cones) * rng.choice([0.1, 1.0, 4.0])
    if kind > 0:
        apex = 0.5 * A[linear:] @ rng.normal(size=n) * rng.choice([1.0, 5.0])
    if kind > 1:
        apex = apex - np.tile([abs(rng.normal()) * 3, 0.0, 0.0], cones)
    if kind == 3:
        A[linear : linear + 3], apex[:3] = 0.0, 0.0
    return A, np.concatenate([lower, apex]), np.concatenate([upper, apex])


def residuals(A, lower, upper, cones, x, lam):
    """Return violation, stationarity, distance of z from its cone, and gap, relative."""
    m, value, size = len(lower), A @ x, 1 + np.linalg.norm(x)
    linear = m - 3 * cones
    above, below = (value - upper)[:linear], (lower - value)[:linear]
    violation = [0.0, *above, *below]
    gaps = [np.where(lam[:linear] > 0, lam[:linear] * above, lam[:linear] * below)]
    outside = [0.0]
    for first in range(linear, m, 3):
        s, z = (value - lower)[first : first + 3], -lam[first : first + 3]
        violation.append(np.hypot(s[1], s[2]) - s[0])
        outside.append(np.hypot(z[1], z[2]) - z[0])
        gaps.append([s @ z])
    stationarity = np.linalg.norm(x + A.T @ lam)
    gap = np.abs(np.concatenate(gaps)).sum()
    relative = [max(violation), stationarity, max(outside), gap / size]
    return np.array(relative) / size


def by_clarabel(A, lower, upper, cones):
    """Return Clarabel's answer at 1e-12."""
    linear, n = len(lower) - 3 * cones, A.shape[1]
    rows = np.vstack([A[:linear], -A[:linear], -A[linear:]])
    right = np.concatenate([upper[:linear], -lower[:linear], -lower[linear:]])
    kinds = [clarabel.NonnegativeConeT(2 * linear)] + [clarabel.SecondOrderConeT(3)] * cones
    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    chosen.tol_gap_abs = chosen.tol_gap_rel = chosen.tol_feas = 1e-12
    identity = sparse.identity(n, format="csc")
    return clarabel.DefaultSolver(
        identity, np.zeros(n), sparse.csc_matrix(rows), right, kinds, chosen
    ).solve()


@pytest.mark.parametrize("size", SIZES)
def test_solutions_meet_the_conditions_and_clarabels_optimum(size):
    n, cones, linear = size
    rng, flags = np.random.default_rng(n), []
    for k in range(60):
        A, lower, upper = problem(rng, n, cones, linear, k % 4)
        found = solve_cone_program(A, lower, upper, cones, np.zeros(len(lower)))
        peer = by_clarabel(A, lower, upper, cones)
        flags.append(found.flag)
        if "Infeasible" in str(peer.status):
            assert found.flag == SolverFlag.INFEASIBLE, k
            continue
        assert found.flag == SolverFlag.OPTIMAL, k
        assert np.all(residuals(A, lower, upper, cones, found.x, found.lam) < EXACT), k
        x = np.array(peer.x)
        assert np.linalg.norm(found.x - x) < AS_INTERIOR * (1 + np.linalg.norm(x)), k
    assert flags.count(SolverFlag.OPTIMAL) >= 20
    assert flags.count(SolverFlag.INFEASIBLE) >= 3


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.every(3)
def test_the_generated_c_finds_the_same_from_any_start(size, tmp_path):
    n, cones, linear = size
    rng, native = np.random.default_rng(n + 1), NativeCones(linear + 3 * cones, n, cones, tmp_path)
    for k in range(80):
        A, lower, upper = problem(rng, n, cones, linear, k % 4)
        start = 2 * rng.normal(size=len(lower)) if k % 2 else np.zeros(len(lower))
        ours = solve_cone_program(A, lower, upper, cones, start)
        theirs = native(A, lower, upper, start)
        assert theirs.flag == ours.flag, k
        np.testing.assert_allclose(theirs.x, ours.x, atol=SAME * (1 + np.linalg.norm(ours.x)))
        if ours.flag != SolverFlag.OPTIMAL:
            assert not np.any(theirs.lam)
            assert not np.any(theirs.active)
            continue
        assert np.all(residuals(A, lower, upper, cones, theirs.x, theirs.lam) < EXACT), k
        again = native(A, lower, upper, theirs.active)
        np.testing.assert_allclose(again.x, theirs.x, atol=SAME * (1 + np.linalg.norm(ours.x)))


def test_a_start_at_the_solution_needs_no_more_than_one_turn_of_each_plane(tmp_path):
    n, cones, linear = 12, 4, 16
    rng, native = np.random.default_rng(3), NativeCones(linear + 3 * cones, n, cones, tmp_path)
    counts = []
    for _ in range(100):
        A, lower, upper = problem(rng, n, cones, linear, 2)
        first = native(A, lower, upper, np.zeros(len(lower)))
        if first.flag == SolverFlag.OPTIMAL and np.all(first.active[linear::3] != APEX):
            native(A, lower, upper, first.active)
            counts.append(native.iterations)
    assert len(counts) >= 20
    assert np.median(counts) <= cones


def test_a_normal_is_split_though_the_active_ones_are_nearly_orthonormal():
    """One pass leaves an error of the size of that of Q, two leave its square."""
    rng, error = np.random.default_rng(4), 1e-6
    Q = np.linalg.qr(rng.normal(size=(6, 3)))[0] @ (np.eye(3) + error * rng.normal(size=(3, 3)))
    normal = rng.normal(size=6)
    h, length = split(SimpleNamespace(Q=Q), SimpleNamespace(normal=normal))
    rest = normal - Q @ h
    assert np.abs(Q.T @ rest).max() < 100 * error**2
    assert length == pytest.approx(np.linalg.norm(rest), rel=1e-13)


def test_a_start_of_a_cone_is_used_though_that_of_another_one_is_no_direction():
    p = np.array([1.0, 4.0, 0.0])  # outside a cone, as below
    A, apices = np.eye(6), -np.concatenate([p, p])
    solution = solve_cone_program(A, apices, apices, 2, np.zeros(6)).active
    _, progress = _pose(A, apices, apices, 2)
    _warm(progress, np.array([0.0, 9.0, np.nan, *solution[3:]]))
    assert len(progress.planes) == 1


@pytest.mark.parametrize("angle", [0.0, 0.7, 2.9, -1.2])
def test_the_nearest_point_of_a_cone_is_its_projection(angle):
    # s = x + p: the nearest point of the cone to p is on its surface, half way to it
    direction, height, across = np.array([np.cos(angle), np.sin(angle)]), 1.0, 4.0
    p = np.array([height, *(across * direction)])
    found = solve_cone_program(np.eye(3), -p, -p, 1, np.zeros(3))
    middle = (height + across) / 2
    np.testing.assert_allclose(found.x + p, middle * np.array([1.0, *direction]), atol=1e-12)
    np.testing.assert_allclose(found.active, [ON_CONE, *direction], atol=1e-12)


def test_newtons_method_turns_a_plane_until_the_point_is_on_the_cone():
    A, p = np.array([[1.0, 0, 0], [0.1, 1, 0], [0, 0.1, 2]]), np.array([1.0, 4.0, 0.0])
    _, progress = _pose(A, -p, -p, 1)
    _warm(progress, np.array([ON_CONE, np.cos(0.3), np.sin(0.3)]))

    def outside():
        s = A @ progress.x + p
        return np.hypot(s[1], s[2]) - s[0]

    assert outside() > 0.1
    assert newton(progress, float(np.linalg.norm(progress.x)), None)
    assert abs(outside()) < EXACT


def test_below_the_polar_cone_the_nearest_point_is_the_apex():
    p = np.array([-3.0, 1.0, 1.0])
    found = solve_cone_program(np.eye(3), -p, -p, 1, np.zeros(3))
    np.testing.assert_allclose(found.x, -p, atol=1e-12)
    assert found.active[0] == APEX


@pytest.mark.parametrize(
    ("apart", "flag"), [(0.5, SolverFlag.OPTIMAL), (2.0, SolverFlag.INFEASIBLE)]
)
def test_rows_that_rounding_parts_are_no_contradiction_beside_a_cone(apart, flag, tmp_path):
    A, start = np.vstack([np.eye(3)[[0, 0]], np.eye(3)]), np.zeros(5)
    below = 1 - apart * C_PRIMAL_TOLERANCE
    lower, upper = np.array([1.0, below, 0, 0, 0]), np.array([9.0, below, 0, 0, 0])
    assert NativeCones(5, 3, 1, tmp_path)(A, lower, upper, start).flag == flag
    assert solve_cone_program(A, lower, upper, 1, start).flag == flag


def test_numbers_that_are_none_stop_it_and_impossible_rows_are_infeasible():
    A, apex = np.eye(3), np.zeros(3)
    for bad in (np.array([np.nan, 0, 0]), np.array([0, 0, np.nan])):
        assert solve_cone_program(A, bad, bad, 1, np.zeros(3)).flag == SolverFlag.STOPPED
    assert solve_cone_program(A * np.nan, apex, apex, 1, apex).flag == SolverFlag.STOPPED
    outside = np.array([1.0, 0.0, 0.0])  # s = -lba is below the apex, and x moves nothing
    found = solve_cone_program(0 * A, outside, outside, 1, np.zeros(3))
    assert found.flag == SolverFlag.INFEASIBLE
