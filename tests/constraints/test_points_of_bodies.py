"""Independent rows of points on one body against singular values, on the ground and off it."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.constraints import independent_rows, points_of_bodies

ROUNDING = 1e-13
SINGULAR_TOL = 1e-9
CORNERS = [(0.1, 0.05, -0.02), (0.1, -0.05, -0.02), (-0.08, 0.05, -0.02), (-0.08, -0.05, -0.02)]
ON_A_LINE = [(0.1, 0.02, 0.0), (0.2, 0.04, 0.0), (0.4, 0.08, 0.0)]
BESIDE_A_LINE = [(0.1, 0.02, 0.0), (0.2, 0.04, 1e-7), (0.4, 0.08, 0.0)]  # by more than rounding
SAME_PLACE = [(0.1, 0.0, 0.3)] * 2


def held_box(points, *, world_first=False):
    """Return a floating arm of two boxes, the second one held to the world at points."""
    spec = mujoco.MjSpec()
    base = spec.worldbody.add_body(name="base", pos=[0, 0, 1])
    base.add_freejoint()
    base.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.2, 0.1, 0.1], contype=0, conaffinity=0)
    foot = base.add_body(name="foot", pos=[0.1, 0.0, -0.3], quat=[0.9, 0.1, -0.3, 0.2])
    foot.add_joint(axis=[0, 1, 0])
    foot.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.1, 0.1, 0.1], contype=0, conaffinity=0)
    for k, point in enumerate(points):
        equality = spec.add_equality()
        equality.type, equality.objtype = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_BODY
        first = world_first and k % 2
        equality.name1, equality.name2 = ("world", "foot") if first else ("foot", "world")
        equality.data[:3] = (0.1, 0.02 * k, 0.7) if first else point
    return mb.read_mjcf(spec)


def functions(system, *, masked=False, least=2):
    """Return (q, [mask]) → (A, A_r, Q)."""
    q, groups = ca.SX.sym("q", system.nq), points_of_bodies(system.tree, system.equalities, least)
    mask = ca.SX.sym("mask", system.nc) if masked else None
    A = system.loop_jacobian(q)
    A = A if mask is None else ca.diag(mask) @ A
    rows = independent_rows(system.tree, groups, A, q, mask)
    return ca.Function("rows", [q] if mask is None else [q, mask], [A, *map(ca.densify, rows)])


def poses(system, count):
    rng = np.random.default_rng(7)
    return [system.integrate(system.tree.q0, rng.standard_normal(system.nv)) for _ in range(count)]


@pytest.mark.parametrize("world_first", [False, True])
@pytest.mark.parametrize(
    ("points", "rank"), [(CORNERS, 6), (CORNERS[:3], 6), (ON_A_LINE, 5), (SAME_PLACE, 3)]
)
def test_rows_are_a_constant_map_of_as_many_as_are_independent(points, rank, world_first):
    """Also off the manifold: the world does not move."""
    system = held_box(points, world_first=world_first and points is CORNERS)
    rows = functions(system)
    for q in poses(system, 10):
        A, A_r, Q = (x.full() for x in rows(q))
        assert A_r.shape == (rank, system.nv)
        np.testing.assert_allclose(Q.T @ Q, np.eye(rank), atol=ROUNDING)
        np.testing.assert_allclose(Q @ A_r, A, atol=ROUNDING)
        assert np.linalg.matrix_rank(A, SINGULAR_TOL) == rank


def test_points_beside_a_line_hold_the_turn_about_it():
    system = held_box(BESIDE_A_LINE)
    A, A_r, Q = (x.full() for x in functions(system)(poses(system, 1)[0]))
    assert A_r.shape[0] == 6
    np.testing.assert_allclose(Q @ A_r, A, atol=ROUNDING)


def test_what_a_turn_adds_to_the_rate_of_the_rows_is_quadratic_in_it():
    (group,) = points_of_bodies(*_numbers(held_box(CORNERS, world_first=True)))
    w = np.random.default_rng(9).standard_normal(3)
    inwards = np.cross(w, np.cross(w, group.arms)) * group.signs[:, None]
    np.testing.assert_allclose(w @ group.of_rate @ w, group.turning.T @ inwards.ravel(), atol=1e-12)


def test_switched_rows_keep_the_map_and_the_rank_of_every_mask():
    system = held_box(CORNERS)
    rows, rng = functions(system, masked=True), np.random.default_rng(8)
    ranks = set()
    masks = [np.ones(12), np.zeros(12), *(rng.integers(0, 2, (12, 12)))]
    masks += [np.repeat(on, 3) for on in ([1, 0, 0, 0], [1, 0, 0, 1], [0, 1, 1, 1])]
    for mask, q in zip(masks, poses(system, len(masks)), strict=True):
        A, A_r, Q = (x.full() for x in rows(q, mask.astype(float)))
        assert A_r.shape == (6, system.nv)
        np.testing.assert_allclose(Q @ A_r, A, atol=ROUNDING)
        used = np.linalg.norm(Q, axis=0) > 0.5
        np.testing.assert_allclose(Q.T @ Q, np.diag(used), atol=ROUNDING)
        assert used.sum() == np.linalg.matrix_rank(A, SINGULAR_TOL)
        ranks.add(int(used.sum()))
    assert {0, 3, 5, 6} <= ranks


def test_points_that_stand_alone_and_pairs_of_moving_bodies_stay_as_they_are():
    assert points_of_bodies(*_numbers(held_box(CORNERS[:1]))) == ()
    assert points_of_bodies(*_numbers(held_box(CORNERS[:2])), 3) == ()
    four_bar = mb.read_mjcf(mb.models.path("four_bar"))
    assert points_of_bodies(*_numbers(four_bar)) == ()
    rows = functions(four_bar)
    for q in poses(four_bar, 3):
        A, A_r, Q = (x.full() for x in rows(q))
        np.testing.assert_array_equal(A, A_r)
        np.testing.assert_array_equal(Q, np.eye(four_bar.nc))


def _numbers(system):
    return system.tree, system.equalities
