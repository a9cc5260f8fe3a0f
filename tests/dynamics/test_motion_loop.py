"""Constrained motion as one dense loop in C, for rows of any rank."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen.compiled_function import compiled_function
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.formulation import limbwise
from mbcasadi.linalg.response_loops import constrained_motion

N, M_ROWS = 8, 5
RANK_TOL = 1e-7
ROUNDING = 1e-12


def independent(rng):
    return rng.standard_normal((M_ROWS, N))


def repeated(rng):
    A = rng.standard_normal((M_ROWS, N))
    A[3], A[4] = A[0] - 2 * A[1], 3 * A[2]
    return A


def switched_off(rng):
    A = rng.standard_normal((M_ROWS, N))
    A[[0, 3]] = 0.0
    return A


def nearly_dependent(rng):
    """A row that differs by 1e-5 of its length counts."""
    A = rng.standard_normal((M_ROWS, N))
    A[1] = A[0] + 1e-5 * A[1]
    return A


def none(_):
    return np.zeros((M_ROWS, N))


@pytest.fixture(scope="module")
def motion():
    """Return (M, r, A, c, row_scale) → (a, f, lam) in Python and in C."""
    sizes = {"M": (N, N), "r": (N, 1), "A": (M_ROWS, N), "c": (M_ROWS, 1)}
    s = {key: ca.SX.sym(key, *size) for key, size in sizes.items()}
    s["row_scale"] = ca.SX.sym("row_scale", M_ROWS)
    rule = {"row_scale": s["row_scale"], "rank_tol": RANK_TOL}
    motion = limbwise(s["M"], ca.SX(N, 1), s["r"], s["A"], s["c"], **rule)
    made = ca.Function("made", [*s.values()], [ca.densify(x) for x in motion])
    given = made.mx_in()
    f = ca.Function("motion", given, constrained_motion(made, given, RANK_TOL))
    return f, compiled_function(f)


@pytest.mark.parametrize("rows", [independent, repeated, switched_off, nearly_dependent, none])
@pytest.mark.parametrize("agree", [True, False], ids=["agree", "contradict"])
def test_the_loop_is_the_motion_of_least_constraint_with_multipliers_of_least_norm(
    motion, rows, agree
):
    rng = np.random.default_rng(1)
    for _ in range(20):
        root, A, r = rng.standard_normal((N, N)), rows(rng), rng.standard_normal(N)
        M = root.T @ root + np.eye(N)
        c = A @ rng.standard_normal(N) if agree else rng.standard_normal(M_ROWS)
        inverse_root = np.linalg.inv(np.linalg.cholesky(M))  # M⁻¹ = its square
        G = A @ inverse_root.T
        pinv = np.linalg.pinv(G, 1e-9)
        step = pinv @ (G @ inverse_root @ r + c)
        a, lam = inverse_root.T @ (inverse_root @ r - step), -pinv.T @ step
        size = max(1.0, np.abs(pinv).max() ** 2 * max(1, np.abs(c).max()))
        for f in motion:
            found = [np.array(x).ravel() for x in f(M, r, A, c, np.ones(M_ROWS))]
            for mine, other in zip(found, (a, A.T @ lam, lam), strict=True):
                np.testing.assert_allclose(mine, other, atol=ROUNDING * size)
            if agree:  # the rows hold to rounding of the motion, however near to dependent
                bound = 20 * np.finfo(float).eps * (np.abs(A) @ np.abs(found[0])).max()
                assert np.abs(A @ found[0] + c).max() < max(bound, 1e-15)


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "four_bar"])
def test_forward_dynamics_in_a_loop_are_those_in_scalars(name):
    """Rows that the mask has off, and feet with redundant points, included."""
    system = mb.read_mjcf(models.path(name))
    plain = forward_dynamics(system, derivatives=False)
    loop = compiled_function(forward_dynamics(system, treatment=Treatment(compact=True)))
    rng = np.random.default_rng(2)
    for _ in range(5):
        q = system.integrate(system.tree.q0, 0.3 * rng.standard_normal(system.nv))
        inputs = {"q": q, "v": rng.standard_normal(system.nv), "f": rng.standard_normal(system.nv)}
        if system.mask is not None:
            inputs["mask"] = rng.integers(0, 2, system.nc)
        arguments = [inputs[key] for key in plain.name_in()]
        for mine, other in zip(loop(*arguments), plain(*arguments), strict=True):
            size = max(1.0, float(ca.norm_inf(other)))
            np.testing.assert_allclose(np.array(mine), np.array(other), atol=1e-10 * size)
