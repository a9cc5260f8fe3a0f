"""`either` computes one of two branches of matrices, and gives the same for scalars."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.linalg.branches import either


@pytest.mark.parametrize("kind", [ca.MX, ca.SX])
def test_the_condition_chooses_the_branch(kind):
    x, y, condition = kind.sym("x", 2, 2), kind.sym("y", 2), kind.sym("c")
    given = {"x": x, "y": y}

    def one(values):
        return [values["x"] @ values["y"], values["y"]]

    def other(values):
        return [values["y"] - 1, 0 * values["y"]]

    f = ca.Function("f", [condition, x, y], either("chosen", condition, given, one, other))
    X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0])
    for value, expected in ((1, (X @ Y, Y)), (0, (Y - 1, 0 * Y))):
        for result, right in zip(f(value, X, Y), expected, strict=True):
            assert np.array_equal(np.array(result).ravel(), right)


def test_the_other_branch_of_matrices_is_not_computed():
    """Nothing of a branch that is not a number is in the result: it was not multiplied by zero."""
    x, condition = ca.MX.sym("x"), ca.MX.sym("c")
    roots = either("safe", condition, {"x": x}, lambda v: [1 / v["x"]], lambda v: [v["x"]])
    f = ca.Function("f", [condition, x], roots)
    assert f(0, 0) == 0
    assert np.isinf(float(f(1, 0)))
