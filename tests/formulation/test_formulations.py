"""Formulations against laws, a null-space reference, closed forms, each other and generated C."""

import casadi as ca
import numpy as np
import pytest
from support.compiled import compiled

from mbcasadi.formulation import (
    constraint_inertia,
    lagrange,
    limbwise,
    null_space,
    projection,
    quasi_velocity,
    udwadia_kalaba,
    virtual_mass,
)

FORMULATIONS = [
    limbwise,
    lagrange,
    projection,
    virtual_mass,
    quasi_velocity,
    udwadia_kalaba,
    null_space,
]
CASES = [(4, 6, 4), (6, 6, 3), (3, 5, 0), (0, 4, 0), (5, 4, 2), (2, 7, 2)]
RELATIVE_TOL = 1e-10  # matrices of condition below 1e4


def function(equations, kind, m, n):
    symbols = [kind.sym("M", n, n), *(kind.sym(x, n) for x in "hf"), kind.sym("A", m, n)]
    symbols.append(kind.sym("c", m))
    names = ["M", "h", "f", "A", "c"]
    motion = equations(*symbols)
    return ca.Function(equations.__name__, symbols, list(motion), names, ["a", "f_c", "lam"])


def problem(rng, m, n, r):
    X = rng.standard_normal((n, n))
    return {
        "M": X @ X.T + np.eye(n),
        "h": rng.standard_normal(n),
        "f": rng.standard_normal(n),
        "A": rng.standard_normal((m, r)) @ rng.standard_normal((r, n)),
        "c": rng.standard_normal(m),
    }


def null_space_reference(M, h, f, A, c):
    """Return `a = -A⁺c + Z y` with Z from a singular value decomposition."""
    _, s, Vt = np.linalg.svd(A) if A.size else (None, np.zeros(0), np.eye(A.shape[1]))
    Z = Vt[np.sum(s > 1e-9) :].T
    a_0 = -np.linalg.pinv(A, 1e-9) @ c
    return a_0 + Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (f - h - M @ a_0))


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
@pytest.mark.parametrize("equations", FORMULATIONS)
def test_motion_obeys_newton_and_the_constraints_whatever_the_rank(equations, kind):
    rng = np.random.default_rng(31)
    for m, n, r in CASES:
        p = problem(rng, m, n, r)
        a, f_c, lam = (x.full().ravel() for x in function(equations, kind, m, n)(**p).values())
        size = np.abs(p["M"]).max() * max(1, np.abs(a).max()) * RELATIVE_TOL
        A_pinv = np.linalg.pinv(p["A"], 1e-9)
        newton = p["M"] @ a + p["h"] - p["f"]
        np.testing.assert_allclose(newton, p["A"].T @ lam, atol=size)
        np.testing.assert_allclose(newton, f_c, atol=size)
        # c is random here: redundant rows contradict each other and hold by least squares
        np.testing.assert_allclose(A_pinv @ p["A"] @ a, -A_pinv @ p["c"], atol=size)
        np.testing.assert_allclose(lam, p["A"] @ (A_pinv @ lam), atol=size)  # minimum norm
        np.testing.assert_allclose(a, null_space_reference(**p), atol=size)


@pytest.mark.parametrize("equations", FORMULATIONS)
def test_constraint_force_does_no_work_on_admissible_velocities(equations):
    rng = np.random.default_rng(32)
    p = problem(rng, 5, 7, 3)
    f_c = function(equations, ca.SX, 5, 7)(**p)["f_c"].full().ravel()
    assert np.linalg.norm(f_c) > 0.1
    v = np.linalg.svd(p["A"])[2][3:].T @ rng.standard_normal(4)
    assert abs(f_c @ v) < RELATIVE_TOL * np.linalg.norm(f_c) * np.linalg.norm(v)


@pytest.mark.parametrize("equations", FORMULATIONS)
def test_doubling_every_row_changes_nothing_but_the_multipliers(equations):
    rng = np.random.default_rng(33)
    p = problem(rng, 3, 5, 3)
    once = function(equations, ca.SX, 3, 5)(**p)
    twice = p | {"A": np.vstack([p["A"], p["A"]]), "c": np.concatenate([p["c"], p["c"]])}
    double = function(equations, ca.SX, 6, 5)(**twice)
    for key in ("a", "f_c"):
        np.testing.assert_allclose(double[key], once[key], rtol=RELATIVE_TOL, atol=1e-10)
    shared = np.tile(once["lam"].full().ravel() / 2, 2)
    np.testing.assert_allclose(double["lam"].full().ravel(), shared, rtol=1e-8, atol=1e-10)


def test_constraint_inertia_has_the_kinetic_energy_of_the_inertia():
    """`xᵀ M_c x = xᵀ M x`  [A05, Theorem 2]; for P = I and P = 0 it is M itself."""
    rng = np.random.default_rng(34)
    M = problem(rng, 1, 6, 1)["M"]
    B = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    P = np.eye(6) - B @ B.T
    M_c = constraint_inertia(ca.DM(M), ca.DM(P)).full()
    for x in rng.standard_normal((5, 6)):
        np.testing.assert_allclose(x @ M_c @ x, x @ M @ x, rtol=1e-12)
    assert np.abs(M_c - M_c.T).max() > 0.1
    np.testing.assert_allclose(constraint_inertia(ca.DM(M), ca.DM.eye(6)), M, rtol=1e-14)


def slider_crank(q, v, gravity=9.81):
    """Two links of 1 m with 1 kg at their ends, absolute angles; the end stays at height zero.

    `phi = sin q1 + sin q2` vanishes with its Jacobian where both links are upright
    [A05, section 8, with point masses at the link ends].
    """
    cos, sin = np.cos(q[0] - q[1]), np.sin(q[0] - q[1])
    return {
        "M": np.array([[2.0, cos], [cos, 1.0]]),
        "h": np.array([sin * v[1] ** 2, -sin * v[0] ** 2])
        + gravity * np.array([2 * np.cos(q[0]), np.cos(q[1])]),
        "f": np.array([0.7, -0.3]),
        "A": np.cos(q)[None, :],
        "c": np.array([-np.sin(q) @ v**2]),
    }


BRANCH_TOL = 1e-5  # a row of 1e-10 carries rounding errors of 1e-16 / 1e-10


@pytest.mark.parametrize("equations", FORMULATIONS)
def test_singular_slider_crank_takes_the_branch_or_the_free_acceleration_never_a_third(equations):
    f = function(equations, ca.SX, 1, 2)
    seen = set()
    for offset in [0.0, *(s * 10.0**-k for k in range(1, 16) for s in (1, -1))]:
        q = np.array([np.pi / 2 + offset, -np.pi / 2 - offset])
        v = 0.8 * np.array([1.0, -1.0])  # along the branch q2 = -q1
        p = slider_crank(q, v)
        Z = np.array([1.0, -1.0])
        branch = Z * (Z @ (p["f"] - p["h"])) / (Z @ p["M"] @ Z)
        free = np.linalg.solve(p["M"], p["f"] - p["h"])
        assert np.linalg.norm(branch - free) > 0.1
        a = f(**p)["a"].full().ravel()
        near = [
            name
            for name, value in (("branch", branch), ("free", free))
            if np.linalg.norm(a - value) < BRANCH_TOL * np.linalg.norm(value)
        ]
        assert near, f"offset {offset}: {a} is neither {branch} nor {free}"
        seen.update(near)
        if abs(offset) > 1e-9:
            assert near == ["branch"]
    assert seen == {"branch", "free"}


def test_large_systems_agree_with_the_reference_in_both_formulations():
    rng = np.random.default_rng(35)
    p = problem(rng, 60, 62, 40)
    expected = null_space_reference(**p)
    for equations in FORMULATIONS:
        found = function(equations, ca.MX, 60, 62)(**p)["a"].full().ravel()
        # M has a condition of 1e5
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("equations", FORMULATIONS)
def test_generated_c_of_a_formulation_equals_the_function(equations, tmp_path):
    f = function(equations, ca.SX, 4, 6)
    external = compiled(f, tmp_path)
    rng = np.random.default_rng(36)
    for r in (0, 2, 4):
        p = problem(rng, 4, 6, r)
        expected, found = f(**p), external(**p)
        for key in expected:
            np.testing.assert_allclose(found[key], expected[key], rtol=1e-12, atol=1e-13)
