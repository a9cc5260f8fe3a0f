"""Motion with a virtual mass: any mass gives the same one; semidefinite inertias; generated C."""

import casadi as ca
import numpy as np
import pytest
from formulation_problems import (
    CASES,
    euler_parameters,
    null_columns,
    problem,
    projector,
    semidefinite_problem,
)

from mbcasadi.errors import ProblemError
from mbcasadi.formulation.virtual_mass import constraint_mass, mean_mass, virtual_mass


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
        Z = null_columns(p["A"])
        values = np.linalg.eigvalsh(Z.T @ p["M"] @ Z)
        found = float(f(p["M"], projector(p["A"]), r))
        np.testing.assert_allclose(found, values.mean(), rtol=1e-12)
        assert values[0] * (1 - 1e-12) <= found <= values[-1] * (1 + 1e-12)
    stuck = float(f(p["M"], np.zeros((6, 6)), 6))
    np.testing.assert_allclose(stuck, np.trace(p["M"]) / 6, rtol=1e-12)


def test_the_mean_mass_of_a_rigid_body_in_euler_parameters_leaves_the_ratio_of_its_inertias():
    body = euler_parameters(np.random.default_rng(75))
    P = projector(body.problem["A"])
    M, P_dm = ca.DM(body.problem["M"]), ca.DM(P)
    M_bar = constraint_mass(M, P_dm, mean_mass(M, P_dm, 1)).full()
    np.testing.assert_allclose(np.linalg.cond(M_bar), 1.1 / 0.5, rtol=1e-10)  # inertias of the body


def test_a_virtual_mass_that_is_not_positive_is_refused():
    args = (ca.DM.eye(2), ca.DM([0, 0]), ca.DM([0, 0]), ca.DM([[1, 0]]), ca.DM([0]))
    with pytest.raises(ProblemError, match=r"virtual_mass is 0, expected a positive number"):
        virtual_mass(*args, virtual_mass=0)
