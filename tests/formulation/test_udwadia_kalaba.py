"""Udwadia and Kalaba: Gauss's principle, non-ideal forces, roots, rank, C, derivatives."""

import functools

import casadi as ca
import numpy as np
import pytest
from formulation_problems import (
    CASES,
    as_function,
    assert_derivatives_hold,
    motion_shapes,
    numbers,
    pinv,
    problem,
    reference_motion,
    with_zero_and_repeated_rows,
)
from support.compiled import compiled

from mbcasadi.errors import ShapeError, UnknownNameError
from mbcasadi.formulation.root import ROOTS
from mbcasadi.formulation.udwadia_kalaba import nonideal_split, udwadia_kalaba

KINDS = [ca.SX, ca.MX]
RELATIVE_TOL = 1e-10  # matrices of condition below 1e4
SPLIT = ("a", "f_ideal", "f_n", "lam")


def motion(kind, root, m, n):
    return as_function(functools.partial(udwadia_kalaba, root=root), kind, motion_shapes(m, n))


def split(kind, root, m, n):
    shapes = motion_shapes(m, n) | {"C": (n,)}
    return as_function(functools.partial(nonideal_split, root=root), kind, shapes, SPLIT)


def forced(rng, m, n, r):
    return problem(rng, m, n, r) | {"C": rng.standard_normal(n)}


@pytest.mark.parametrize("root", ROOTS)
def test_zero_and_repeated_rows_change_nothing_but_the_multipliers(root):
    p = forced(np.random.default_rng(42), 3, 5, 3)
    q = with_zero_and_repeated_rows(p)
    once, again = numbers(split(ca.SX, root, 3, 5), **p), numbers(split(ca.SX, root, 5, 5), **q)
    for key in ("a", "f_ideal", "f_n"):
        np.testing.assert_allclose(again[key], once[key], atol=1e-11, err_msg=key)
    lam = np.concatenate([[0], once["lam"][:2], once["lam"][2:] / 2, once["lam"][2:] / 2])
    np.testing.assert_allclose(again["lam"], lam, atol=1e-11)


@pytest.mark.parametrize("root", ROOTS)
def test_nonideal_force_asks_nothing_of_the_multipliers(root):
    """`A M⁻¹ f_n = 0`: the ideal part is the same with and without it  [L15, eq. 11-12]."""
    p = forced(np.random.default_rng(45), 5, 7, 3)
    with_it = numbers(split(ca.SX, root, 5, 7), **p)
    without = numbers(split(ca.SX, root, 5, 7), **(p | {"C": np.zeros(7)}))
    assert np.linalg.norm(with_it["a"] - without["a"]) > 1e-2
    np.testing.assert_allclose(with_it["lam"], without["lam"], atol=1e-12)
    across = p["A"] @ np.linalg.solve(p["M"], with_it["f_n"])
    np.testing.assert_allclose(across, 0, atol=1e-12)
    np.testing.assert_allclose(without["f_n"], 0, atol=0)


def test_nonideal_force_is_the_formula_of_the_paper():
    """`f_n = M^{1/2} (I - B⁺ B) M^{-1/2} C`, `B = A M^{-1/2}`  [L15, eq. 12].

    Work, Newton's law and Gauss's principle of both parts are looked at in `tests/dynamics`.
    """
    rng = np.random.default_rng(46)
    for m, n, r in CASES:
        p = forced(rng, m, n, r)
        values, vectors = np.linalg.eigh(p["M"])
        half, inverse = (vectors @ np.diag(values**e) @ vectors.T for e in (0.5, -0.5))
        B = p["A"] @ inverse
        f_n = half @ (np.eye(n) - pinv(B) @ B) @ inverse @ p["C"]
        a, f_c, _ = reference_motion(**({k: p[k] for k in "MhAc"} | {"f": p["f"] + p["C"]}))
        f_ideal = f_c + p["C"] - f_n
        size = RELATIVE_TOL * (1 + np.abs(f_c).max())
        for root in ROOTS:
            found = numbers(split(ca.SX, root, m, n), **p)
            for key, expected in (("a", a), ("f_n", f_n), ("f_ideal", f_ideal)):
                np.testing.assert_allclose(found[key], expected, atol=size, err_msg=key)
            np.testing.assert_allclose(p["A"].T @ found["lam"], f_ideal, atol=size)


def test_a_heavy_body_does_not_turn_a_row_into_a_repeated_one():
    """Rows of `A M^{-1/2}` are parallel to 1e-6 here, below `rank_tol`; those of `A` are not."""
    heavy, rank_tol = 1e13, 1e-4
    values = {
        "M": np.diag([1.0, heavy, heavy]),
        "h": np.zeros(3),
        "f": np.array([1.0, 2.0, 3.0]),
        "A": np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]),
        "c": np.array([0.5, 0.25]),
    }
    for root in ROOTS:
        rule = functools.partial(udwadia_kalaba, root=root, rank_tol=rank_tol)
        a = numbers(as_function(rule, ca.SX, motion_shapes(2, 3)), **values)["a"]
        np.testing.assert_allclose(a[:2], [-0.375, -0.125], rtol=1e-9)


def test_a_sliding_block_with_friction_comes_out_as_in_the_textbook():
    """On a slope of angle s, `a = g (sin s - mu cos s)` along it, and the normal force is ideal."""
    slope, mu, mass, gravity = 0.6, 0.3, 2.0, 9.81
    down = np.array([np.cos(slope), -np.sin(slope)])
    normal = np.array([np.sin(slope), np.cos(slope)])
    values = {
        "M": mass * np.eye(2),
        "h": np.array([0.0, mass * gravity]),
        "f": np.zeros(2),
        "A": normal[None, :],
        "c": np.zeros(1),
        "C": -mu * mass * gravity * np.cos(slope) * down,
    }
    for root in ROOTS:
        found = numbers(split(ca.SX, root, 1, 2), **values)
        size = gravity * (np.sin(slope) - mu * np.cos(slope))
        np.testing.assert_allclose(found["a"], size * down, atol=1e-13)
        np.testing.assert_allclose(found["lam"], [mass * gravity * np.cos(slope)], rtol=1e-13)


def test_cholesky_factor_costs_a_fraction_of_the_symmetric_root():
    cholesky, symmetric = (motion(ca.SX, root, 6, 10).n_instructions() for root in ROOTS)
    assert cholesky < symmetric / 3


@pytest.mark.parametrize("root", ROOTS)
def test_large_problems_become_loops_without_a_general_solver(root):
    m, n, r = 30, 32, 20
    p = problem(np.random.default_rng(47), m, n, r)
    f = motion(ca.MX, root, m, n)
    np.testing.assert_allclose(numbers(f, **p)["a"], reference_motion(**p)[0], atol=1e-7)
    code = ca.CodeGenerator("motion.c")
    code.add(f)
    assert "casadi_qr" not in code.dump()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("root", ROOTS)
def test_derivatives_hold_with_redundant_rows(root, kind):
    rng = np.random.default_rng(48)
    p = forced(rng, 2, 4, 2)
    S = np.array([[1.0, 0.0], [0.5, 2.0], [0.0, 0.0]])  # three rows of rank two, moving together

    def build(M, h, f, A, c, C):
        redundant = (M, h, f, S @ A, S @ c)
        return udwadia_kalaba(*redundant, root=root, f_nonideal=C)

    f = as_function(build, kind, motion_shapes(2, 4) | {"C": (4,)})
    for name in ("A", "C"):
        assert_derivatives_hold(f, p, name)


def test_generated_c_of_the_split_equals_the_function(tmp_path):
    f = split(ca.SX, "symmetric", 3, 4)
    external = compiled(f, tmp_path)
    rng = np.random.default_rng(49)
    for r in (0, 2, 3):
        p = forced(rng, 3, 4, r)
        expected, found = numbers(f, **p), numbers(external, **p)
        for key in expected:
            np.testing.assert_allclose(found[key], expected[key], rtol=1e-12, atol=1e-13)


def test_wrong_options_are_refused_with_what_was_expected():
    M, h, A, c = ca.SX.eye(3), ca.SX.zeros(3), ca.SX.ones(1, 3), ca.SX.zeros(1)
    with pytest.raises(UnknownNameError, match="unknown root 'lu'; valid: 'cholesky', 'symmetric'"):
        udwadia_kalaba(M, h, h, A, c, root="lu")
    with pytest.raises(ShapeError, match=r"f_nonideal has shape \(2, 1\), expected \(3, 1\)"):
        udwadia_kalaba(M, h, h, A, c, f_nonideal=ca.SX.zeros(2))
