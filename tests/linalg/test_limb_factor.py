"""Equations by limbs against singular values, 50 digits and the count of operations."""

import casadi as ca
import mpmath
import numpy as np
import pytest

from mbcasadi import linalg

RANK_TOL = 1e-10
SINGULAR_TOL = 1e-8  # of the reference: singular values below it are zero
EXACT = 1e-12  # conditions are below 1e3
BASE, LEG, LEGS = 6, 3, 4


def block_arrow(limbs, base):
    """Return flags of (rows, own columns) of each limb beside `base` shared columns in front."""
    rows, columns = (sum(limb[k] for limb in limbs) for k in (0, 1))
    pattern = np.zeros((rows, base + columns), dtype=bool)
    pattern[:, :base] = True
    i, j = 0, base
    for m, n in limbs:
        pattern[i : i + m, j : j + n] = True
        i, j = i + m, j + n
    return pattern


PATTERNS = {
    "four legs": block_arrow([(LEG, LEG)] * LEGS, BASE),
    "feet with more rows than joints": block_arrow([(6, 4), (6, 4)], BASE),
    "loops apart": block_arrow([(3, 5), (3, 3), (2, 4)], 0),
    "one loop": np.ones((5, 7), dtype=bool),
    "more rows than columns": np.ones((7, 4), dtype=bool),
    "one row": np.ones((1, 3), dtype=bool),
    "no row": np.ones((0, 3), dtype=bool),
}


def sparsity(pattern):
    return ca.Sparsity.triplet(*pattern.shape, *(index.tolist() for index in np.nonzero(pattern)))


def nearest_fun(pattern):
    """Return (G, y0, c) → (y, lam, rank); rows are dropped at `RANK_TOL` of their length or 1."""
    G = ca.SX.sym("G", sparsity(pattern))
    m, n = G.shape
    y0, c = ca.SX.sym("y0", n), ca.SX.sym("c", m)
    factor = linalg.limb_factor(G, RANK_TOL**2 * ca.fmax(ca.densify(ca.sum2(G**2)), 1))
    rank = ca.sum1(factor.inverse > 0)
    return ca.Function("nearest", [G, y0, c], [*factor.nearest(y0, c), rank])


def solve(function, G, y0, c):
    found = function(ca.project(ca.DM(G), function.sparsity_in(0)), y0, c)
    return [np.array(x).ravel() for x in found]


def reference(G, y0, c):
    """Return y, lam and the rank by singular values."""
    pinv = np.linalg.pinv(G, SINGULAR_TOL) if G.size else np.zeros(G.shape[::-1])
    y = y0 - pinv @ (G @ y0 + c)
    return y, pinv.T @ (y - y0), np.linalg.matrix_rank(G, SINGULAR_TOL) if G.size else 0


def with_repeated_rows(rng, G):
    G[-1:] = 0
    G[: len(G) // 2] = rng.standard_normal((len(G) // 2, 1)) * G[:1]
    return G


def switched_off(rng, G):
    return G * (rng.random((len(G), 1)) > 0.4)


def without_own_columns(rng, G):
    G[:, BASE:] = 0
    return G


CHANGES = [lambda _, G: G, with_repeated_rows, switched_off, without_own_columns]


@pytest.mark.parametrize("name", PATTERNS)
def test_the_nearest_point_and_least_multipliers_are_those_of_singular_values(name):
    """c is random, so that rows which depend on each other contradict each other."""
    pattern = PATTERNS[name]
    function, rng = nearest_fun(pattern), np.random.default_rng(3)
    ranks = set()
    for _ in range(5):
        for change in CHANGES:
            G = change(rng, rng.standard_normal(pattern.shape)) * pattern
            y0, c = rng.standard_normal(G.shape[1]), rng.standard_normal(G.shape[0])
            expected, found = reference(G, y0, c), solve(function, G, y0, c)
            size = 1 + max(np.abs(x).max(initial=0) for x in expected[:2]) ** 2
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=EXACT * size)
            ranks.add(int(expected[2]))
    assert len(ranks) > 1 or not pattern.shape[0]


@pytest.mark.parametrize("name", PATTERNS)
def test_the_shortest_point_on_the_kept_rows_is_that_of_singular_values(name):
    """Rows that are dropped follow from the others where b is consistent, else they do not hold."""
    pattern, rng = PATTERNS[name], np.random.default_rng(7)
    G = ca.SX.sym("G", sparsity(pattern))
    b = ca.SX.sym("b", G.shape[0], 2)
    factor = linalg.limb_factor(G, RANK_TOL**2 * ca.fmax(ca.densify(ca.sum2(G**2)), 1))
    shortest = ca.Function("shortest", [G, b], [factor.shortest(b)])
    for change in CHANGES:
        rows = change(rng, rng.standard_normal(pattern.shape)) * pattern
        consistent = rows @ rng.standard_normal((rows.shape[1], 2))
        x = shortest(ca.project(ca.DM(rows), shortest.sparsity_in(0)), consistent).full()
        expected = np.linalg.pinv(rows, SINGULAR_TOL) @ consistent if rows.size else 0 * x
        np.testing.assert_allclose(
            x, expected, atol=EXACT * (1 + np.abs(expected).max(initial=0) ** 2)
        )


def parallel_legs(rng, strength, turn):
    """Return rows of four legs whose weakest direction has this strength.

    `turn` is how far apart the shared parts of these directions are: they are four equal rows
    where it is zero.
    """
    common = rng.standard_normal(BASE)
    left = [common + turn * rng.standard_normal(BASE) for _ in range(LEGS)]
    return straight_legs(rng, strength, left)


def straight_legs(rng, strength, left):
    """Return rows of legs with this strength in a direction whose shared part is given."""
    G = rng.standard_normal((LEG * LEGS, BASE + LEG * LEGS)) * PATTERNS["four legs"]
    for k in range(LEGS):
        rows, own = slice(LEG * k, LEG * k + LEG), slice(BASE + LEG * k, BASE + LEG * k + LEG)
        U, _ = np.linalg.qr(rng.standard_normal((LEG, LEG)))
        V, _ = np.linalg.qr(rng.standard_normal((LEG, LEG)))
        G[rows, own] = U @ np.diag([1.0, 0.4, strength]) @ V.T
        G[rows, :BASE] += np.outer(U[:, 2], left[k] - U[:, 2] @ G[rows, :BASE])
    return G


def in_many_digits(G, y0, c):
    """Return y and lam of independent rows from `[I, -Gᵀ; G, 0]` in 50 digits."""
    with mpmath.workdps(50):
        G = mpmath.matrix(G.tolist())
        gap = G * mpmath.matrix(y0.tolist()) + mpmath.matrix(c.tolist())
        lam = -mpmath.lu_solve(G * G.T, gap)
        y = mpmath.matrix(y0.tolist()) + G.T * lam
    return [np.array([float(x) for x in part]) for part in (y, lam)]


@pytest.mark.parametrize("decade", range(17))
@pytest.mark.every(3)
def test_a_leg_is_exact_from_full_strength_to_none(decade):
    """Weak directions of four legs at once, of all sizes from one to rounding, and zero."""
    function, rng = nearest_fun(PATTERNS["four legs"]), np.random.default_rng(4)
    for strength in (10.0**-decade, 3 * 10.0 ** -(decade + 1), 0.0):
        G = parallel_legs(rng, strength, turn=1.0)
        y0, c = rng.standard_normal(G.shape[1]), rng.standard_normal(G.shape[0])
        y, lam, rank = solve(function, G, y0, c)
        assert rank == len(G)
        y_exact, lam_exact = in_many_digits(G, y0, c)
        condition = np.linalg.cond(G)
        assert condition < 1e3
        np.testing.assert_allclose(y, y_exact, atol=1e-15 * condition**2 * np.abs(y_exact).max())
        size = np.abs(lam_exact).max()
        np.testing.assert_allclose(lam, lam_exact, atol=1e-15 * condition**2 * size)


@pytest.mark.parametrize("decade", range(1, 9))
def test_weak_legs_that_pull_at_the_base_alike_lose_no_more_digits_than_the_problem(decade):
    """At no strength three of the four rows repeat the first one."""
    function, rng = nearest_fun(PATTERNS["four legs"]), np.random.default_rng(5)
    G = parallel_legs(rng, 10.0**-decade, turn=0.0)
    y0 = rng.standard_normal(G.shape[1])
    c = -G @ rng.standard_normal(G.shape[1])
    y, _, rank = solve(function, G, y0, c)
    assert rank == len(G)
    exact, _ = in_many_digits(G, y0, c)
    atol = 1e-14 * np.linalg.cond(G) * np.abs(exact).max()
    np.testing.assert_allclose(y, exact, atol=atol)
    np.testing.assert_allclose(G @ y + c, 0, atol=1e-10)
    none = parallel_legs(rng, 0.0, turn=0.0)
    assert solve(function, none, y0, c)[2] == len(G) - 3 == reference(none, y0, c)[2]


def test_a_row_that_repeats_others_is_recognised_behind_a_weak_one():
    """In their order, the second row leaves 1e-8, and what is noise of it the third one."""
    rng = np.random.default_rng(6)
    G = rng.standard_normal((3, 5))
    G[1] = G[0] + 1e-8 * G[2]
    pattern = np.ones((3, 5), dtype=bool)
    y0 = rng.standard_normal(5)
    c = -G @ rng.standard_normal(5)
    y, _, rank = solve(nearest_fun(pattern), G, y0, c)
    assert rank == 2
    np.testing.assert_allclose(y, reference(G[[0, 2]], y0, c[[0, 2]])[0], atol=1e-7)
    in_order = linalg.row_basis_fun(sparsity(pattern), pivot=False)(G)
    assert float(in_order[3]) == 3


def test_without_a_tolerance_independent_rows_are_kept_and_rows_of_zeros_are_not():
    pattern = PATTERNS["four legs"]
    G = ca.SX.sym("G", sparsity(pattern))
    y0, c = ca.SX.sym("y0", G.shape[1]), ca.SX.sym("c", G.shape[0])
    factor = linalg.limb_factor(G, ca.SX.zeros(G.shape[0]))
    rank = ca.sum1(factor.inverse > 0)
    function = ca.Function("nearest", [G, y0, c], [*factor.nearest(y0, c), rank])
    rng = np.random.default_rng(16)
    values = rng.standard_normal(pattern.shape) * pattern
    values[3:6] = 0
    at, bias = rng.standard_normal(G.shape[1]), rng.standard_normal(G.shape[0])
    expected, found = reference(values, at, bias), solve(function, values, at, bias)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=EXACT * 1e2)


def test_limbs_are_the_legs_beside_the_base_and_loops_that_share_nothing():
    legs = linalg.limbs_of(sparsity(PATTERNS["four legs"]))
    assert legs.shared == tuple(range(BASE))
    assert [limb.rows for limb in legs.groups] == [(3 * k, 3 * k + 1, 3 * k + 2) for k in range(4)]
    assert [limb.columns[0] for limb in legs.groups] == [6, 9, 12, 15]
    loops = linalg.limbs_of(sparsity(PATTERNS["loops apart"]))
    assert loops.shared == ()
    assert [len(limb.rows) for limb in loops.groups] == [3, 3, 2]
    dense = linalg.limbs_of(sparsity(PATTERNS["one loop"]))
    assert [limb.rows for limb in dense.groups] == [(0, 1, 2, 3, 4)]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize(("rows", "groups"), [(2, 3), (3, 1)])
def test_a_row_that_repeats_those_of_other_limbs_is_recognised_behind_a_weak_one(
    rows, groups, order
):
    """Each of three limbs has one own column and leaves rows of the base: w, w + 1e-8 d and d."""
    pattern = block_arrow([(rows, 1)] * 3, 4)
    assert len(linalg.limbs_of(sparsity(pattern)).groups) == groups
    rng = np.random.default_rng(9)
    G = rng.standard_normal(pattern.shape) * pattern
    w, d = rng.standard_normal((2, 4))
    left = (w, w + 1e-8 * d, d)
    for k in range(3):
        first = rows * k
        G[first + 1 : first + rows] = np.outer(np.full(rows - 1, 0.5), G[first])
        G[first + 1, :4] += left[order[k]]
    y0 = rng.standard_normal(G.shape[1])
    c = -G @ rng.standard_normal(G.shape[1])
    y, _, rank = solve(nearest_fun(pattern), G, y0, c)
    assert rank == 5
    nearly_repeated = rows * order.index(1) + 1
    independent = [i for i in range(3 * rows) if i % rows < 2 and i != nearly_repeated]
    expected, _, _ = reference(G[independent], y0, c[independent])
    np.testing.assert_allclose(y, expected, atol=1e-6)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 3, 0, 2)])
def test_of_straight_legs_one_that_repeats_others_is_recognised_behind_a_weak_one(order):
    """What the four legs leave to the base is w, `w + 1e-8 d`, d and `w - d`: two of four."""
    rng = np.random.default_rng(10)
    w, d = rng.standard_normal((2, BASE))
    left = (w, w + 1e-8 * d, d, w - d)
    G = straight_legs(rng, 0.0, [left[k] for k in order])
    y0 = rng.standard_normal(G.shape[1])
    c = -G @ rng.standard_normal(G.shape[1])
    y, _, rank = solve(nearest_fun(PATTERNS["four legs"]), G, y0, c)
    assert rank == 10
    np.testing.assert_allclose(G @ y + c, 0, atol=1e-6)


def test_four_legs_with_their_solution_take_less_than_three_quarters_of_a_dense_factor():
    pattern = sparsity(PATTERNS["four legs"])
    count = nearest_fun(PATTERNS["four legs"]).n_instructions()
    assert count < 14_000  # 12.9 k
    assert 4 * count < 3 * linalg.operations(pattern, True)
