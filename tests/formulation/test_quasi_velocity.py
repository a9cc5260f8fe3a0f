"""Motion in quasi-velocities: laws, references, units, the rank, derivatives and generated C."""

import casadi as ca
import numpy as np
import pytest
from formulation_problems import (
    CASES,
    as_function,
    motion_shapes,
    numbers,
    problem,
)

from mbcasadi.errors import UnknownNameError
from mbcasadi.formulation.quasi_velocity import quasi_velocity
from mbcasadi.formulation.root import ROOTS, constraint_basis, root_factor

RELATIVE_TOL = 1e-10  # matrices of condition below 1e4
KEYS = ("a", "f_c", "lam")


def motion(kind, m, n, **options):
    return as_function(lambda *p: quasi_velocity(*p, **options), kind, motion_shapes(m, n))


def size(p, a):
    return float(np.abs(p["M"]).max() * max(1.0, np.abs(a).max()))


@pytest.mark.parametrize("root", ROOTS)
def test_a_heavy_body_does_not_make_a_row_look_like_a_repeated_one(root):
    """Its row of A_W is 1e-12 long, below every tolerance; that of A is 1."""
    n = 2
    p = {
        "M": np.diag([1.0, 1e24 if root == "cholesky" else 1e12]),
        "h": np.zeros(n),
        "f": np.ones(n),
        "A": np.eye(n),
        "c": np.array([2.0, 3.0]),
    }
    found = numbers(motion(ca.SX, n, n, root=root), **p)
    np.testing.assert_allclose(found["a"], [-2.0, -3.0], rtol=1e-12)


@pytest.mark.parametrize("root", ROOTS)
def test_motion_does_not_depend_on_the_units_of_coordinates_and_rows(root):
    """`q = S q'`, rows `A' = D A S`: `a = S a'`, `S f_c = f_c'` for rows without contradiction."""
    rng = np.random.default_rng(54)
    p = problem(rng, 5, 7, 3)
    p["c"] = p["A"] @ rng.standard_normal(7)
    S = np.diag(10.0 ** np.array([3, 0, -2, 1, 0, 3, -1]))  # mm, m, degrees …
    D = np.diag(10.0 ** np.array([2, -1, 0, 3, 0]))
    other = {
        "M": S @ p["M"] @ S,
        "h": S @ p["h"],
        "f": S @ p["f"],
        "A": D @ p["A"] @ S,
        "c": D @ p["c"],
    }
    f = motion(ca.SX, 5, 7, root=root)
    once, twice = numbers(f, **p), numbers(f, **other)
    # M' has a condition of 1e14; the symmetric root does not scale with the units as L does
    tol = 1e-9 if root == "cholesky" else 1e-6
    np.testing.assert_allclose(S @ twice["a"], once["a"], atol=tol * np.abs(once["a"]).max())
    force = np.linalg.solve(S, twice["f_c"])
    np.testing.assert_allclose(force, once["f_c"], atol=tol * np.abs(once["f_c"]).max())


def test_quasi_velocities_of_the_triangular_root_are_the_same_in_all_units():
    rng = np.random.default_rng(55)
    M, v = problem(rng, 1, 6, 1)["M"], rng.standard_normal(6)
    S = np.diag(10.0 ** np.array([3, 0, -2, 1, 0, 3]))
    for root in ROOTS:
        W = root_factor(ca.DM(M), root).W.full()
        W_other = root_factor(ca.DM(S @ M @ S), root).W.full()
        v_bar, v_bar_other = W.T @ v, W_other.T @ np.linalg.solve(S, v)
        np.testing.assert_allclose(W @ W.T, M, atol=1e-12 * np.abs(M).max())
        assert v_bar @ v_bar == pytest.approx(v @ M @ v, rel=1e-12)
        # the kinetic energy has no units to choose, and the symmetric root has others
        assert v_bar_other @ v_bar_other == pytest.approx(v @ M @ v, rel=1e-6)
        same = np.allclose(v_bar, v_bar_other, rtol=1e-9, atol=1e-9)
        assert same == (root == "cholesky")


@pytest.mark.parametrize("root", ROOTS)
def test_the_basis_across_spans_the_rows_in_quasi_velocities(root):
    rng = np.random.default_rng(56)
    for m, n, r in CASES:
        p = problem(rng, m, n, r)
        factor = root_factor(ca.DM(p["M"]), root)
        rows = constraint_basis(factor, ca.DM(p["A"]))
        V1 = rows.V1.full()
        A_W = p["A"] @ np.linalg.inv(factor.W.full().T)
        projector = V1 @ V1.T
        assert np.trace(projector) == pytest.approx(r, abs=1e-12)
        np.testing.assert_allclose(A_W @ projector, A_W, atol=1e-10)


def test_an_unknown_root_is_refused_with_the_names():
    with pytest.raises(UnknownNameError, match="unknown root 'lu'; valid: 'cholesky', 'symmetric'"):
        motion(ca.SX, 1, 2, root="lu")
