"""Single precision is refused where a rank would be decided below its rounding."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import linalg, models
from mbcasadi.codegen.batches.rank_decisions import decides_rank_below_float
from mbcasadi.errors import ProblemError


def forward_dynamics(model):
    return mb.forward_dynamics(mb.read_mjcf(models.path(model)))


@pytest.mark.parametrize("model", ["four_bar", "planar_3rrr", "slider_crank"])
def test_closed_loops_are_refused_in_float(model):
    function = forward_dynamics(model)
    with pytest.raises(ProblemError, match="use real='double'"):
        mb.batch(function, real="float")


@pytest.mark.parametrize("model", ["quadruped", "humanoid"])
def test_mechanisms_without_loops_are_taken_in_float(model):
    assert not decides_rank_below_float(forward_dynamics(model))


@pytest.mark.parametrize("rows", [2, 12])
def test_every_factorisation_by_a_small_tolerance_is_found(rows):
    pattern = ca.Sparsity.dense(rows, 14)
    for function in (linalg.pinv_fun, linalg.projector_fun, linalg.rank_fun, linalg.null_basis_fun):
        assert decides_rank_below_float(function(pattern)), (function, rows)
    assert not decides_rank_below_float(linalg.pinv_fun(ca.Sparsity.dense(2, 3), rank_tol=0.01))


def test_the_tolerance_is_followed_into_nested_functions_maps_and_vectors():
    x, tol = ca.SX.sym("x", 3), ca.SX.sym("tol", 3)
    inner = ca.Function("inner", [x, tol], [x < tol])
    y = ca.MX.sym("y", 3)

    def outer(bound):
        return ca.Function("outer", [y], [inner.map(2)(ca.horzcat(y, y), bound)])

    small = ca.horzcat(ca.MX(ca.DM([1, 1e-9, 1])), y)
    assert decides_rank_below_float(outer(small))
    assert decides_rank_below_float(outer(ca.horzcat(1e-9 * y, y)))
    assert not decides_rank_below_float(outer(ca.horzcat(1e-3 * y, y)))
    assert not decides_rank_below_float(ca.Function("sum", [y], [1e-9 * y + y]))


def test_float_in_place_of_double_would_decide_another_rank():
    """What the refusal prevents: a dependent row that float cannot tell from its rounding."""
    function = linalg.rank_fun(ca.Sparsity.dense(3, 4))
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 3, 4))
    A[:, 2] = A[:, 0] / 3 - A[:, 1] * 7
    names = function.name_in()
    exact = mb.batch(function)(**{names[0]: A})[function.name_out()[0]]
    assert np.all(exact == 2)
    rounded = mb.batch(function)(**{names[0]: A.astype(np.float32)})[function.name_out()[0]]
    assert np.any(rounded == 3)
