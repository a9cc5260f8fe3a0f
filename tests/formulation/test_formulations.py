"""Every formulation against laws, a null-space reference, closed forms and its generated C."""

from functools import cache, partial

import casadi as ca
import numpy as np
import pytest
from formulation_problems import (
    CASES,
    as_function,
    assert_derivatives_hold,
    euler_parameters,
    motion_shapes,
    null_columns,
    pinv,
    problem,
    reference_motion,
    semidefinite_problem,
    with_zero_and_repeated_rows,
)
from support.compiled import all_compiled

from mbcasadi.formulation import (
    lagrange,
    limbwise,
    null_space,
    projection,
    quasi_velocity,
    udwadia_kalaba,
    virtual_mass,
)
from mbcasadi.formulation.metric import in_metric
from mbcasadi.formulation.projection import INERTIAS
from mbcasadi.formulation.root import ROOTS

SEMIDEFINITE = {
    "virtual_mass": virtual_mass,
    "virtual_mass_light": partial(virtual_mass, virtual_mass=0.02),
    "virtual_mass_heavy": partial(virtual_mass, virtual_mass=500.0),
    "projection_M_c_second": partial(projection, inertia="M_c_second"),
    "projection_small_gamma": partial(projection, inertia="M_c_second", gamma=0.05),
    "projection_large_gamma": partial(projection, inertia="M_c_second", gamma=300.0),
    "null_space": null_space,
    "null_space_in_order": partial(null_space, pivot=False),
}
"""Name → those that need an inertia that is definite on null(A) only."""
FORMULATIONS = (
    {"limbwise": limbwise, "lagrange": lagrange}
    | {f"projection_{name}": partial(projection, inertia=name) for name in INERTIAS}
    | {f"quasi_velocity_{root}": partial(quasi_velocity, root=root) for root in ROOTS}
    | {f"quasi_in_order_{root}": partial(quasi_velocity, root=root, pivot=False) for root in ROOTS}
    | {f"udwadia_kalaba_{root}": partial(udwadia_kalaba, root=root) for root in ROOTS}
    | SEMIDEFINITE
)
ONE_OF_EACH = (
    "limbwise", "lagrange", "projection_M_c", "virtual_mass", "quasi_velocity_cholesky",
    "udwadia_kalaba_cholesky", "null_space",
)  # fmt: skip
RELATIVE_TOL = 1e-10  # matrices of condition below 1e5
KINDS = [ca.SX, ca.MX]


@cache
def function(name, kind, m, n):
    return as_function(FORMULATIONS[name], kind, motion_shapes(m, n), name=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.every(3)
def test_motion_obeys_newton_and_the_constraints_whatever_the_rank(name, kind):
    rng = np.random.default_rng(31)
    for m, n, r in CASES:
        p = problem(rng, m, n, r)
        a, f_c, lam = (x.full().ravel() for x in function(name, kind, m, n)(**p).values())
        size = np.abs(p["M"]).max() * max(1, np.abs(a).max()) * RELATIVE_TOL
        A_pinv = pinv(p["A"])
        newton = p["M"] @ a + p["h"] - p["f"]
        np.testing.assert_allclose(newton, p["A"].T @ lam, atol=size)
        np.testing.assert_allclose(newton, f_c, atol=size)
        # c is random here: redundant rows contradict each other and hold by least squares
        np.testing.assert_allclose(A_pinv @ p["A"] @ a, -A_pinv @ p["c"], atol=size)
        np.testing.assert_allclose(lam, p["A"] @ (A_pinv @ lam), atol=size)  # minimum norm
        np.testing.assert_allclose(a, reference_motion(**p)[0], atol=size)
        power = null_columns(p["A"]).T @ f_c
        np.testing.assert_allclose(power, 0, atol=size)
        assert m == 0 or r == 0 or np.linalg.norm(f_c) > 0.01


@pytest.mark.parametrize("name", FORMULATIONS)
def test_zero_and_repeated_rows_change_nothing_but_the_multipliers(name):
    p = problem(np.random.default_rng(33), 3, 5, 3)
    once = function(name, ca.SX, 3, 5)(**p)
    again = function(name, ca.SX, 5, 5)(**with_zero_and_repeated_rows(p))
    for key in ("a", "f_c"):
        np.testing.assert_allclose(again[key], once[key], rtol=RELATIVE_TOL, atol=1e-10)
    lam = once["lam"].full().ravel()
    shared = np.concatenate([[0], lam[:2], lam[2:] / 2, lam[2:] / 2])
    np.testing.assert_allclose(again["lam"].full().ravel(), shared, rtol=1e-8, atol=1e-10)


def indefinite_problem(rng, m, n, r):
    p = problem(rng, m, n, r)
    rows = np.linalg.svd(p["A"])[2][:r]
    indefinite = p["M"] - np.linalg.eigvalsh(p["M"]).max() * rows.T @ rows
    assert np.linalg.eigvalsh(indefinite).min() < 0
    return p | {"M": indefinite}


@pytest.mark.parametrize("build", [semidefinite_problem, indefinite_problem])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SEMIDEFINITE)
def test_some_need_the_inertia_only_on_the_null_space(name, kind, build):
    rng = np.random.default_rng(48)
    for _ in range(5):
        p = build(rng, 5, 6, 3)
        a, f_c, _ = reference_motion(**p)
        across = p["M"] @ pinv(p["A"]) @ p["c"]
        assert np.linalg.norm(across) > 0.01  # the motion across the constraint takes part
        found = function(name, kind, 5, 6)(**p)
        scale = np.abs(a).max()
        np.testing.assert_allclose(found["a"].full().ravel(), a, atol=1e-8 * scale)
        np.testing.assert_allclose(found["f_c"].full().ravel(), f_c, atol=1e-8 * scale)


@pytest.mark.parametrize("name", SEMIDEFINITE)
def test_a_rigid_body_in_euler_parameters_obeys_eulers_equation(name):
    """The motivation of [A16, section 1]: four coordinates, an inertia of rank three."""
    body = euler_parameters(np.random.default_rng(49))
    assert np.linalg.matrix_rank(body.problem["M"]) == 3
    assert abs(body.problem["c"][0]) > 0.1
    found = function(name, ca.SX, 1, 4)(**body.problem)
    np.testing.assert_allclose(found["a"].full().ravel(), body.a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, ca.SX) for name in FORMULATIONS), *((name, ca.MX) for name in ONE_OF_EACH)],
)
@pytest.mark.every(3)
def test_derivatives_hold_with_redundant_rows(name, kind):
    S = np.array([[1.0, 0.0], [0.5, 2.0], [0.0, 0.0]])  # three rows of rank two, moving together

    def redundant(M, h, f, A, c):
        return FORMULATIONS[name](M, h, f, S @ A, S @ c)

    motion = as_function(redundant, kind, motion_shapes(2, 4))
    p = problem(np.random.default_rng(58), 2, 4, 2)
    for x in p:
        assert_derivatives_hold(motion, p, x)


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


@pytest.mark.parametrize("name", FORMULATIONS)
def test_singular_slider_crank_takes_the_branch_or_the_free_acceleration_never_a_third(name):
    f = function(name, ca.SX, 1, 2)
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
            word
            for word, value in (("branch", branch), ("free", free))
            if np.linalg.norm(a - value) < BRANCH_TOL * np.linalg.norm(value)
        ]
        assert near, f"offset {offset}: {a} is neither {branch} nor {free}"
        seen.update(near)
        if abs(offset) > 1e-9:
            assert near == ["branch"]
    assert seen == {"branch", "free"}


def test_large_systems_agree_with_the_reference():
    p = problem(np.random.default_rng(35), 60, 62, 40)
    expected = reference_motion(**p)[0]
    for name in ONE_OF_EACH:
        found = function(name, ca.MX, 60, 62)(**p)["a"].full().ravel()
        # M has a condition of 1e5
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_generated_c_of_every_formulation_equals_the_function(tmp_path):
    functions = [function(name, ca.SX, 3, 4) for name in FORMULATIONS]
    in_a_metric = in_metric(projection, np.eye(4) + np.outer(np.arange(4), np.arange(4)))
    functions.append(as_function(in_a_metric, ca.SX, motion_shapes(3, 4), name="in_a_metric"))
    loaded, rng = all_compiled(functions, tmp_path), np.random.default_rng(36)
    for p in [problem(rng, 3, 4, r) for r in (0, 2, 3)]:
        for f in functions:
            found = loaded[f.name()](**p)
            for key, expected in f(**p).items():
                close = {"rtol": 1e-11, "atol": 1e-12, "err_msg": f"{f.name()} {key}"}
                np.testing.assert_allclose(found[key], expected, **close)
