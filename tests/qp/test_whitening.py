"""The substitution that makes a QP a least-distance problem: laws of its two directions."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.qp.whitening import whiten

COUPLED, UNCOUPLED = 3, 2
FREE = 7.0
ROUNDING = 1e-12


@pytest.fixture
def problem():
    rng = np.random.default_rng(6)
    root = rng.normal(size=(COUPLED, COUPLED))
    return root @ root.T + np.eye(COUPLED), rng.normal(size=COUPLED + UNCOUPLED), rng


def test_the_cost_is_half_the_squared_distance_from_the_unconstrained_optimum(problem):
    H, g, rng = problem
    whitened = whiten(ca.SX(H), ca.SX(g), FREE)
    whole = np.diag([0.0] * COUPLED + [FREE] * UNCOUPLED)
    whole[:COUPLED, :COUPLED] = H
    x = ca.DM(rng.normal(size=len(g)))
    y, y_0 = (np.array(ca.evalf(value)).ravel() for value in (whitened.unknown(x), whitened.y_0))
    distance = float(ca.evalf(whitened.distance))
    np.testing.assert_allclose(whole @ y_0, -g, atol=ROUNDING)
    excess = (float(ca.sumsqr(x)) - distance**2) / 2
    np.testing.assert_allclose(0.5 * y @ whole @ y + g @ y, excess)


def test_a_gradient_by_x_is_that_by_y_through_the_substitution(problem):
    H, g, rng = problem
    whitened, x, by_y = whiten(ca.SX(H), ca.SX(g), FREE), ca.SX.sym("x", len(g)), rng.normal(size=5)
    expected = ca.evalf(ca.jacobian(whitened.unknown(x), x)).full().T @ by_y
    by_x = ca.evalf(whitened.gradient(ca.SX(by_y))).full().ravel()
    np.testing.assert_allclose(by_x, expected, atol=ROUNDING)
