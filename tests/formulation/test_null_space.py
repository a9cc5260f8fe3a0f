"""Null-space reduction: motion, inverse dynamics against the QP, consistency, C, derivatives."""

import functools

import casadi as ca
import numpy as np
import pytest
from formulation_problems import (
    CASES,
    as_function,
    assert_derivatives_hold,
    motion_shapes,
    null_columns,
    numbers,
    pinv,
    problem,
    reference_motion,
)
from support.compiled import compiled

from mbcasadi.formulation.null_space import inconsistency, null_space_inverse, reduced_equations

KINDS = [ca.SX, ca.MX]
RELATIVE_TOL = 1e-10  # matrices of condition below 1e4
ACTUATION_RANKS = (0, 2, 4)


def inverse(kind, m, n, nu, pivot=True):
    shapes = {"M": (n, n), "h": (n,), "A": (m, n), "B": (n, nu), "a": (n,)}
    build = functools.partial(null_space_inverse, pivot=pivot)
    return as_function(build, kind, shapes, ("u", "lam", "residual"))


def inverse_problem(rng, m, n, r, nu, rank_B):
    p = problem(rng, m, n, r)
    B = rng.standard_normal((n, rank_B)) @ rng.standard_normal((rank_B, nu))
    return {"M": p["M"], "h": p["h"], "A": p["A"], "B": B, "a": rng.standard_normal(n)}


def quadratic_program(M, h, A, B, a):
    """Return (u, lam): `min |u|` under the least-squares solution of `B u + Aᵀ lam = M a + h`.

    First the force closest to the required one among those that actuators and constraints can
    give together without acting against each other, then its decomposition: the dense
    optimality conditions of [S20, eq. 22], singular ones solved in the least-squares sense.
    """
    required = M @ a + h
    n, nu, m = len(h), B.shape[1], A.shape[0]
    both = np.hstack([B, A.T])
    reached = both @ pinv(both) @ required
    KKT = np.zeros((nu + m + n, nu + m + n))
    KKT[:nu, :nu] = np.eye(nu)
    KKT[nu + m :, : nu + m] = both
    KKT[: nu + m, nu + m :] = both.T
    solution = pinv(KKT) @ np.concatenate([np.zeros(nu + m), reached])
    return solution[:nu], solution[nu : nu + m]


@pytest.mark.parametrize("kind", KINDS)
def test_reduced_equations_are_those_of_the_motion(kind):
    """`M_r y + h_r = Zᵀ f`, `A Z = 0`, `ZᵀZ` is the identity on the columns in use."""
    rng = np.random.default_rng(54)
    names = ("Z", "M_r", "h_r", "a_across")
    for m, n, r in CASES:
        p = problem(rng, m, n, r)
        shapes = {key: s for key, s in motion_shapes(m, n).items() if key != "f"}
        f = as_function(reduced_equations, kind, shapes, names)
        found = {key: f(**{k: p[k] for k in shapes})[key].full() for key in names}
        Z, a = found["Z"], reference_motion(**p)[0]
        used = np.abs(Z).max(axis=0) > 0
        assert used.sum() == n - r
        np.testing.assert_allclose(p["A"] @ Z, 0, atol=1e-13 * (1 + np.abs(p["A"]).max(initial=0)))
        np.testing.assert_allclose(Z.T @ Z, np.diag(used.astype(float)), atol=1e-14)
        y = Z.T @ (a - found["a_across"].ravel())
        left = found["M_r"] @ y + found["h_r"].ravel() - Z.T @ p["f"]
        np.testing.assert_allclose(left, 0, atol=RELATIVE_TOL * (1 + np.abs(p["M"]).max()))
        np.testing.assert_allclose(np.diag(found["M_r"])[~used], 1)
        assert np.linalg.eigvalsh(found["M_r"]).min() > 0.5  # M is I and a positive part


@pytest.mark.parametrize("pivot", [True, False])
@pytest.mark.parametrize("rank_B", ACTUATION_RANKS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.every(3)
def test_controls_and_multipliers_are_those_of_the_quadratic_program(kind, rank_B, pivot):
    rng, compared = np.random.default_rng(55), 0
    for m, n, r in CASES:
        p = inverse_problem(rng, m, n, r, nu=4, rank_B=min(rank_B, n))
        found = numbers(inverse(kind, m, n, 4, pivot), **p)
        Z, required = null_columns(p["A"]), p["M"] @ p["a"] + p["h"]
        size = RELATIVE_TOL * (1 + np.abs(required).max())
        u = pinv(Z.T @ p["B"]) @ Z.T @ required
        np.testing.assert_allclose(found["u"], u, atol=size * (1 + np.abs(u).max()))
        left = required - p["B"] @ found["u"]
        size *= 1 + np.abs(left).max()
        np.testing.assert_allclose(found["lam"], pinv(p["A"]).T @ left, atol=size)
        np.testing.assert_allclose(left, p["A"].T @ found["lam"] + found["residual"], atol=size)
        np.testing.assert_allclose(p["A"] @ found["residual"], 0, atol=size)
        u_qp, lam_qp = quadratic_program(**p)
        if np.linalg.norm(found["residual"]) < size:  # else there is no motion to compare
            np.testing.assert_allclose(found["u"], u_qp, atol=10 * size)
            force = p["B"] @ u_qp + p["A"].T @ lam_qp
            np.testing.assert_allclose(force, required, atol=10 * size)
            compared += 1
    assert compared


def test_redundant_actuators_share_the_work_and_one_that_fights_the_constraint_rests():
    """Two motors on one joint, and one that only pushes into the wall: minimum norm says how."""
    values = {
        "M": np.diag([2.0, 3.0]),
        "h": np.zeros(2),
        "A": np.array([[0.0, 5.0]]),
        "B": np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 7.0]]),
        "a": np.array([1.5, 0.0]),
    }
    found = numbers(inverse(ca.SX, 1, 2, 3), **values)
    np.testing.assert_allclose(found["u"], [1.5, 1.5, 0.0], atol=1e-14)
    np.testing.assert_allclose(found["lam"], [0.0], atol=1e-14)
    np.testing.assert_allclose(found["residual"], 0, atol=1e-14)


def test_residual_says_what_neither_actuators_nor_constraints_can_give():
    values = {
        "M": np.eye(3),
        "h": np.array([1.0, 0.0, 0.0]),
        "A": np.array([[0.0, 0.0, 1.0]]),
        "B": np.array([[0.0], [1.0], [0.0]]),
        "a": np.array([2.0, 4.0, 0.0]),
    }
    found = numbers(inverse(ca.SX, 1, 3, 1), **values)
    np.testing.assert_allclose(found["u"], [4.0], atol=1e-14)
    np.testing.assert_allclose(found["residual"], [3.0, 0.0, 0.0], atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_inconsistency_is_zero_exactly_where_a_control_exists(kind):
    rng = np.random.default_rng(56)
    for n, nu, r in [(5, 3, 3), (5, 4, 2), (3, 5, 3), (4, 2, 0)]:
        B = rng.standard_normal((n, r)) @ rng.standard_normal((r, nu))
        w = rng.standard_normal(n)
        f = as_function(
            lambda B, w: [inconsistency(B, w)], kind, {"B": (n, nu), "w": (n,)}, ["found"]
        )
        expected = np.linalg.norm(w - B @ pinv(B) @ w)
        np.testing.assert_allclose(float(f(B, w)), expected, atol=1e-13)
        assert float(f(B, B @ rng.standard_normal(nu))) < 1e-13
        assert r == n or expected > 0.1


def test_inconsistency_of_the_reduced_equations_is_the_length_of_the_residual():
    p = inverse_problem(np.random.default_rng(57), 3, 6, 2, nu=2, rank_B=2)
    residual = numbers(inverse(ca.SX, 3, 6, 2), **p)["residual"]
    assert np.linalg.norm(residual) > 0.1
    Z = null_columns(p["A"])
    found = inconsistency(ca.DM(Z.T @ p["B"]), ca.DM(Z.T @ (p["M"] @ p["a"] + p["h"])))
    np.testing.assert_allclose(float(found), np.linalg.norm(residual), rtol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_hold_with_redundant_rows_and_actuators(kind):
    rng = np.random.default_rng(58)
    S = np.array([[1.0, 0.0], [0.5, 2.0], [0.0, 0.0]])  # three rows of rank two, moving together

    def backward(M, h, A, B, a):
        return null_space_inverse(M, h, S @ A, B @ S.T, a)

    p = inverse_problem(rng, 2, 4, 2, nu=2, rank_B=2)
    shapes = {key: value.shape for key, value in p.items()}
    function = as_function(backward, kind, shapes, ("u", "lam", "residual"))
    for name in ("A", "B", "a"):
        assert_derivatives_hold(function, p, name)


def test_generated_c_of_the_inverse_equals_the_function(tmp_path):
    rng = np.random.default_rng(59)
    f = inverse(ca.SX, 3, 4, 3)
    external = compiled(f, tmp_path)
    for r in (0, 2, 3):
        p = inverse_problem(rng, 3, 4, r, nu=3, rank_B=2)
        expected, found = numbers(f, **p), numbers(external, **p)
        for key in expected:
            np.testing.assert_allclose(found[key], expected[key], rtol=1e-12, atol=1e-13)
