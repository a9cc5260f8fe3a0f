"""The dynamics in coordinates of the kinetic energy, as a loop in C."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen.compiled_function import compiled_function
from mbcasadi.control.inverse_dynamics import condensed_dynamics
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Rooted, rooted

ROUNDING = 1e-12


class Matrices:
    """What `rooted` takes of a mechanism's dynamics."""

    def __init__(self, **matrices):
        self.__dict__.update(matrices)


@pytest.fixture(scope="module")
def humanoid():
    """Return (M, f, G, v) → the root in Python and in C, and M, B and G at random poses."""
    system = mb.read_mjcf(models.path("humanoid"))
    nv, pattern = system.nv, system.mass_matrix.sparsity_out("M")
    B = np.vstack([np.zeros((6, nv - 6)), np.diag(1.0 + np.arange(nv - 6))])
    G = ca.sparsify(ca.DM(np.hstack([np.ones((3, 12)), np.zeros((3, nv - 12))])))
    kept = condensed_dynamics.LEAST_DOFS
    condensed_dynamics.LEAST_DOFS = 1
    s = {"M": ca.MX.sym("M", pattern), "f": ca.MX.sym("f", nv), "G": ca.MX.sym("G", G.sparsity())}
    v = ca.MX.sym("v", nv)
    root = rooted(Matrices(**s, B=ca.MX(ca.sparsify(ca.DM(B)))), v, rows=1000)
    condensed_dynamics.LEAST_DOFS = kept
    outputs = [ca.densify(x) for x in root]
    f = ca.Function("rooted", [*s.values(), v], outputs, [*s, "v"], [*Rooted._fields])
    return system, B, G.sparsity(), (f, compiled_function(f))


def test_the_loop_makes_the_inertia_the_identity(humanoid):
    system, B, pattern, functions = humanoid
    rng = np.random.default_rng(3)
    for _ in range(5):
        q = system.integrate(system.tree.q0, 0.4 * rng.standard_normal(system.nv))
        M = np.array(system.mass_matrix(q))
        f, v = rng.standard_normal((2, system.nv))
        G = ca.DM(pattern, rng.standard_normal(pattern.nnz()))
        for function in functions:
            found = Rooted(*(np.array(x) for x in function(M, f, G, v)))
            np.testing.assert_array_equal(found.L, np.tril(found.L))
            np.testing.assert_allclose(found.L.T @ found.L, M, atol=ROUNDING * M.max())
            np.testing.assert_allclose(found.X @ found.L, np.array(G), atol=1e2 * ROUNDING)
            np.testing.assert_allclose(found.Z @ found.L, B.T, atol=1e2 * ROUNDING)
            np.testing.assert_allclose(M @ found.fall, f[:, None], atol=1e3 * ROUNDING)
            np.testing.assert_allclose(found.rates, found.L @ v[:, None], atol=ROUNDING)
            energy = f @ np.linalg.solve(M, f)
            np.testing.assert_allclose(found.a_fall**2, energy, rtol=1e3 * ROUNDING)
            share = np.min(np.diag(found.L) ** 2 / np.diag(M))
            np.testing.assert_allclose(found.definite, share, rtol=ROUNDING)
