"""Motion with a virtual mass: any mass gives the same one; semidefinite inertias; generated C."""

import casadi as ca
import numpy as np
import pytest
from projector_problems import (
    CASES,
    euler_parameters,
    formulation_function,
    motion_reference,
    null_basis,
    problem,
    projector,
    semidefinite_problem,
)
from support.compiled import all_compiled

from mbcasadi.errors import ProblemError
from mbcasadi.formulation.lagrange import lagrange
from mbcasadi.formulation.virtual_mass import constraint_mass, mean_mass, virtual_mass

OPTIONS = [{}, {"virtual_mass": 0.02}, {"virtual_mass": 500.0}]
NAMES = ["mean", "light", "heavy"]
RELATIVE_TOL = 1e-10  # matrices of condition below 1e5


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
@pytest.mark.parametrize("options", OPTIONS, ids=NAMES)
def test_every_virtual_mass_gives_the_motion_whatever_the_rank(options, kind):
    """[A16, section 2.2]: μ has no effect on the solution."""
    rng = np.random.default_rng(71)
    for m, n, r in CASES:
        p = problem(rng, m, n, r)
        f = formulation_function("f", virtual_mass, kind, m, n, **options)
        a, f_c, lam = (x.full().ravel() for x in f(**p).values())
        a_reference, f_reference = motion_reference(**p)
        size = np.abs(p["M"]).max() * max(1, np.abs(a_reference).max()) * RELATIVE_TOL
        np.testing.assert_allclose(a, a_reference, atol=size)
        np.testing.assert_allclose(f_c, f_reference, atol=size)
        np.testing.assert_allclose(p["A"].T @ lam, f_c, atol=size)
        A_pinv = np.linalg.pinv(p["A"], 1e-9)
        np.testing.assert_allclose(lam, p["A"] @ (A_pinv @ lam), atol=size)  # minimum norm
        np.testing.assert_allclose(a - projector(p["A"]) @ a, -A_pinv @ p["c"], atol=size)


def test_constraint_mass_is_symmetric_positive_definite_at_every_rank():
    """[A16, Theorem 1 i, eq. 9], for inertias that are definite on null(A) only as well."""
    rng = np.random.default_rng(72)
    for build in (problem, semidefinite_problem):
        for m, n, r in CASES:
            p = build(rng, m, n, r)
            P, x = projector(p["A"]), rng.standard_normal(n)
            M_bar = constraint_mass(ca.DM(p["M"]), ca.DM(P), 0.3).full()
            np.testing.assert_allclose(M_bar, M_bar.T, atol=1e-13 * np.abs(M_bar).max())
            assert np.linalg.eigvalsh(M_bar)[0] > 1e-6
            along, across = P @ x, x - P @ x
            energy = along @ p["M"] @ along + 0.3 * across @ across
            np.testing.assert_allclose(x @ M_bar @ x, energy, rtol=1e-10)
            np.testing.assert_allclose(along @ M_bar @ along, along @ p["M"] @ along, rtol=1e-10)


def test_default_virtual_mass_is_the_mean_inertia_of_the_free_motions():
    rng = np.random.default_rng(73)
    M, P, rank = ca.SX.sym("M", 6, 6), ca.SX.sym("P", 6, 6), ca.SX.sym("rank")
    f = ca.Function("mean_mass", [M, P, rank], [mean_mass(M, P, rank)])
    for r in (0, 2, 5):
        p = problem(rng, 5, 6, r)
        Z = null_basis(p["A"])
        values = np.linalg.eigvalsh(Z.T @ p["M"] @ Z)
        found = float(f(p["M"], projector(p["A"]), r))
        np.testing.assert_allclose(found, values.mean(), rtol=1e-12)
        assert values[0] * (1 - 1e-12) <= found <= values[-1] * (1 + 1e-12)
    stuck = float(f(p["M"], np.zeros((6, 6)), 6))
    np.testing.assert_allclose(stuck, np.trace(p["M"]) / 6, rtol=1e-12)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_virtual_mass_needs_the_inertia_only_on_the_null_space(kind):
    rng = np.random.default_rng(74)
    f = formulation_function("f", virtual_mass, kind, 5, 6)
    for _ in range(5):
        p = semidefinite_problem(rng, 5, 6, 3)
        a, f_c = motion_reference(**p)
        across = p["M"] @ np.linalg.pinv(p["A"], 1e-9) @ p["c"]
        assert np.linalg.norm(across) > 0.01  # the motion across the constraint takes part
        found = f(**p)
        scale = np.abs(a).max()
        np.testing.assert_allclose(found["a"].full().ravel(), a, atol=1e-8 * scale)
        np.testing.assert_allclose(found["f_c"].full().ravel(), f_c, atol=1e-8 * scale)


def test_a_rigid_body_in_euler_parameters_obeys_eulers_equation():
    """The motivation of [A16, section 1]: four coordinates, an inertia of rank three."""
    body = euler_parameters(np.random.default_rng(75))
    assert np.linalg.matrix_rank(body.problem["M"]) == 3
    assert abs(body.problem["c"][0]) > 0.1
    found = formulation_function("f", virtual_mass, ca.SX, 1, 4)(**body.problem)
    np.testing.assert_allclose(found["a"].full().ravel(), body.a, rtol=1e-12, atol=1e-12)
    P = projector(body.problem["A"])
    M, P_dm = ca.DM(body.problem["M"]), ca.DM(P)
    M_bar = constraint_mass(M, P_dm, mean_mass(M, P_dm, 1)).full()
    np.testing.assert_allclose(np.linalg.cond(M_bar), 1.1 / 0.5, rtol=1e-10)  # inertias of the body


def test_the_motion_has_the_derivatives_of_finite_differences_where_the_rank_is_constant():
    rng = np.random.default_rng(76)
    p = problem(rng, 4, 5, 2)
    K, B = rng.standard_normal((4, 2)), rng.standard_normal((2, 5))
    turn = {key: rng.standard_normal(np.shape(p[key])) for key in ("M", "h", "f", "c")}
    turn["M"] = turn["M"] + turn["M"].T
    B_turn, x = rng.standard_normal((2, 5)), ca.SX.sym("x")
    moved = {key: ca.DM(p[key]) + x * ca.DM(turn[key]) for key in turn}
    moved["A"] = ca.DM(K) @ (ca.DM(B) + ca.sin(x) * ca.DM(B_turn))
    for options in OPTIONS:
        out = ca.vertcat(*virtual_mass(**moved, **options))
        f, slope = ca.Function("f", [x], [out]), ca.Function("slope", [x], [ca.jacobian(out, x)])
        step = 1e-5
        numeric, exact = (f(0.3 + step) - f(0.3 - step)) / (2 * step), slope(0.3).full()
        assert np.abs(exact).max() > 0.1
        # the difference quotient has errors of step² and 1e-16 / step
        np.testing.assert_allclose(exact, numeric, atol=1e-8 * np.abs(exact).max())


def test_a_virtual_mass_that_is_not_positive_is_refused():
    args = (ca.DM.eye(2), ca.DM([0, 0]), ca.DM([0, 0]), ca.DM([[1, 0]]), ca.DM([0]))
    with pytest.raises(ProblemError, match=r"virtual_mass is 0, expected a positive number"):
        virtual_mass(*args, virtual_mass=0)


def test_generated_c_equals_the_reference(tmp_path):
    functions = [
        formulation_function(f"virtual_mass_{name}", virtual_mass, ca.SX, 4, 6, **options)
        for name, options in zip(NAMES, OPTIONS, strict=True)
    ]
    reference = formulation_function("reference", lagrange, ca.SX, 4, 6)
    rng = np.random.default_rng(77)
    problems = [problem(rng, 4, 6, r) for r in (0, 2, 4)]
    for f in all_compiled(functions, tmp_path).values():
        for p in problems:
            expected, found = reference(**p), f(**p)
            for key in expected:
                scale = max(1.0, float(ca.norm_inf(expected[key])))
                np.testing.assert_allclose(found[key], expected[key], atol=RELATIVE_TOL * scale)
