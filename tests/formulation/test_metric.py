"""Weighted metrics: what they project and minimise, and what they cannot change."""

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
    problem,
)

from mbcasadi.dynamics import FORMULATIONS
from mbcasadi.errors import ShapeError
from mbcasadi.formulation.metric import (
    in_metric,
    length_metric,
    limit_metric,
    metric_projector,
    metric_root,
)
from mbcasadi.formulation.udwadia_kalaba import udwadia_kalaba
from mbcasadi.linalg import projector

RELATIVE_TOL = 1e-9  # problems and metrics of condition below 1e3 each
ACROSS = ("a", "f_c", "lam")


def random_metric(rng, n, dense):
    X = rng.standard_normal((n, n)) if dense else np.diag(rng.uniform(0.1, 3.0, n))
    return X @ X.T + 0.1 * np.eye(n)


@pytest.mark.parametrize(("kind", "dense"), [(ca.SX, True), (ca.MX, False)])
@pytest.mark.parametrize("name", list(FORMULATIONS))
@pytest.mark.every(3)
def test_motion_and_forces_have_no_metric(name, kind, dense):
    rng = np.random.default_rng(61)
    for m, n, r in CASES:
        p, W = problem(rng, m, n, r), random_metric(rng, n, dense)
        shapes = motion_shapes(m, n)
        plain = numbers(as_function(FORMULATIONS[name], kind, shapes), **p)
        weighted = numbers(as_function(in_metric(FORMULATIONS[name], W), kind, shapes), **p)
        size = 1 + np.abs(plain["f_c"]).max()
        for key in ACROSS:
            close = {"atol": RELATIVE_TOL * size, "err_msg": f"{name} {key} {m, n, r}"}
            np.testing.assert_allclose(weighted[key], plain[key], **close)


def test_any_metric_gives_a_projector_that_moves_with_the_coordinates():
    """`W^{-1/2} P_W W^{1/2}` projects orthogonally in the metric W, whatever coordinates."""
    rng = np.random.default_rng(62)
    A, W, D = (problem(rng, 3, 5, 2)["A"], random_metric(rng, 5, True), random_metric(rng, 5, True))
    inv = np.linalg.inv(D)
    W_new = inv @ W @ inv  # coordinates D v, with D symmetric here
    found = []
    for rows, metric in ((A, W), (A @ inv, W_new)):
        root = metric_root(metric)
        P_W = metric_projector(ca.DM(rows), metric)
        found.append((root.inverse @ P_W @ root.root).full())
    here, there = found
    np.testing.assert_allclose(there, D @ here @ inv, atol=1e-11)
    np.testing.assert_allclose(here @ here, here, atol=1e-12)
    np.testing.assert_allclose(A @ here, 0, atol=1e-12)
    np.testing.assert_allclose(W @ here, (W @ here).T, atol=1e-12)
    np.testing.assert_allclose(here @ null_columns(A), null_columns(A), atol=1e-12)


def test_force_of_least_weighted_norm_keeps_the_motion_and_suits_the_limits():
    """`f = W^{1/2} P_W W^{-1/2} w` is the least, in units of the limits, that moves as w does."""
    rng = np.random.default_rng(63)
    A, limits, w = rng.standard_normal((2, 5)), np.array([80.0, 3.0, 60.0, 2.0, 1.0]), 5.0
    desired = w * rng.standard_normal(5)
    W = limit_metric(limits)
    root = metric_root(W)
    f = (root.root @ metric_projector(ca.DM(A), W) @ root.inverse @ desired).full().ravel()
    Z = null_columns(A)
    np.testing.assert_allclose(Z.T @ f, Z.T @ desired, atol=1e-12)
    least = np.linalg.norm(f / limits)
    assert least < 0.9 * np.linalg.norm(projector(ca.DM(A)).full() @ desired / limits)
    for step in rng.standard_normal((5, 2)):
        assert np.linalg.norm((f + A.T @ step) / limits) > least


def test_nonideal_force_is_taken_into_the_metric():
    rng = np.random.default_rng(64)
    p = problem(rng, 3, 5, 2) | {"C": rng.standard_normal(5)}
    shapes, W = motion_shapes(3, 5) | {"C": (5,)}, random_metric(rng, 5, True)
    found = []
    for equations in (udwadia_kalaba, in_metric(udwadia_kalaba, W)):

        def build(M, h, f, A, c, C, equations=equations):
            return equations(M, h, f, A, c, f_nonideal=C)

        found.append(numbers(as_function(build, ca.SX, shapes), **p))
    for key in ACROSS:
        np.testing.assert_allclose(found[1][key], found[0][key], atol=1e-11, err_msg=key)


def test_metric_may_depend_on_the_state():
    """A metric given as an expression: here the inertia itself, so that M_W is the identity."""
    rng = np.random.default_rng(65)
    p = problem(rng, 3, 5, 3) | {"A": np.eye(3, 5) + 0.3 * rng.standard_normal((3, 5))}

    def build(M, h, f, A, c):
        return in_metric(udwadia_kalaba, M)(M, h, f, A, c)

    plain = numbers(as_function(udwadia_kalaba, ca.SX, motion_shapes(3, 5)), **p)
    for kind in (ca.SX, ca.MX):
        f = as_function(build, kind, motion_shapes(3, 5))
        np.testing.assert_allclose(numbers(f, **p)["a"], plain["a"], atol=1e-11)
        assert_derivatives_hold(f, p, "A")


def test_diagonal_metric_keeps_the_zeros_of_the_inertia():
    M = ca.diag(ca.SX.sym("M", 4))
    M[0, 1] = M[1, 0] = ca.SX.sym("coupling")
    root = metric_root(np.diag([1.0, 4.0, 9.0, 16.0]))
    assert (root.inverse @ M @ root.inverse).nnz() == 6
    np.testing.assert_allclose(root.root, np.diag([1.0, 2.0, 3.0, 4.0]))


def test_metrics_weigh_velocities_by_the_square():
    np.testing.assert_allclose(length_metric([False, True], 0.5), np.diag([1.0, 0.25]))
    np.testing.assert_allclose(limit_metric([10.0, 2.0]), np.diag([100.0, 4.0]))
    W = random_metric(np.random.default_rng(66), 4, True)
    root, inverse = (x.full() for x in metric_root(W))
    np.testing.assert_allclose(root @ root, W, atol=1e-13)
    np.testing.assert_allclose(root @ inverse, np.eye(4), atol=1e-13)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (np.ones((2, 3)), r"metric has shape \(2, 3\), expected \(nv, nv\)"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "not symmetric"),
        (np.array([[1.0, 1e-10], [0.0, 1.0]]), "not symmetric"),
        (np.diag([1.0, np.nan]), "not symmetric and finite"),
        (np.diag([1.0, -2.0]), "eigenvalue -2; expected a positive definite"),
        (np.diag([1.0, 0.0]), "eigenvalue 0; expected a positive definite"),
    ],
)
def test_a_wrong_metric_is_refused(metric, message):
    with pytest.raises(ShapeError, match=message):
        metric_root(metric)


def test_wrong_lengths_limits_and_sizes_are_refused():
    with pytest.raises(ShapeError, match="length holds 0; expected positive numbers"):
        length_metric([True], 0)
    with pytest.raises(ShapeError, match="force_limits holds inf; expected positive numbers"):
        limit_metric([1.0, np.inf])
    p = problem(np.random.default_rng(67), 1, 3, 1)
    with pytest.raises(ShapeError, match=r"metric has shape \(2, 2\), expected \(3, 3\)"):
        in_metric(udwadia_kalaba, np.eye(2))(*(ca.DM(x) for x in p.values()))
