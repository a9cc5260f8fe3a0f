"""Derivatives of matrix operations that become loops: against differences."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi import linalg
from mbcasadi.linalg.scalars import in_scalars

STEP = 1e-6  # errors of 1e-12 from the curvature, 1e-10 from rounding
SAME = 1e-8


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("solve", ["lower", "transposed", "upper rows", "upper rows transposed"])
def test_solves_depend_on_their_right_side_and_their_factor(solve, columns):
    n, rng = 5, np.random.default_rng(3)
    functions = {
        "lower": linalg.tree_solve_lower,
        "transposed": linalg.tree_solve_transposed,
        "upper rows": lambda L, b: linalg.solve_upper(L.T, 1 / ca.diag(L), b),
        "upper rows transposed": lambda L, b: linalg.solve_upper_transposed(L.T, 1 / ca.diag(L), b),
    }
    L, b = ca.MX.sym("L", ca.Sparsity.lower(n)), ca.MX.sym("b", n, columns)
    x = functions[solve](L, b)
    f = ca.Function("f", [L, b], [x])
    slopes = ca.Function("slopes", [L, b], [ca.jacobian(x, L), ca.jacobian(x, b)])
    at = [np.tril(rng.standard_normal((n, n))) + 3 * np.eye(n), rng.standard_normal((n, columns))]
    for i, slope in enumerate(slopes(*at)):
        ahead, behind = [list(at), list(at)]
        direction = rng.standard_normal(at[i].shape) * (at[i] != 0)
        ahead[i], behind[i] = at[i] + STEP * direction, at[i] - STEP * direction
        expected = (np.array(f(*ahead)) - np.array(f(*behind))).ravel(order="F") / (2 * STEP)
        found = np.array(slope) @ direction.ravel(order="F")
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(found, expected, atol=SAME)


def test_what_scalars_have_in_common_is_computed_once():
    x = ca.MX.sym("x")
    (value,) = in_scalars("twice", lambda k: [ca.sin(k["x"]) * ca.exp(ca.sin(k["x"]))], {"x": x})
    twice = ca.Function("outer", [x], [value]).find_function("twice")
    kinds = [twice.instruction_id(k) for k in range(twice.n_instructions())]
    assert kinds.count(ca.OP_SIN) == 1
