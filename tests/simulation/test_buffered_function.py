"""Functions called on buffers: by position, and by name."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.errors import ShapeError
from mbcasadi.simulation.buffered_function import BufferedFunction
from mbcasadi.validation.closed_loop.compiled_law import Caller


def lower_times_diagonal() -> ca.Function:
    """Return (L, x) → (L diag(x), diag(x)), every matrix sparse."""
    L, x = ca.SX.sym("L", ca.Sparsity.lower(3)), ca.SX.sym("x", 3)
    return ca.Function("f", [L, x], [L @ ca.diag(x), ca.diag(x)], ["L", "x"], ["product", "D"])


def test_sparse_inputs_and_outputs_are_whole_vectors_column_by_column():
    rng = np.random.default_rng(0)
    L, x = rng.normal(size=(3, 3)), rng.normal(size=3)
    product, D = BufferedFunction(lower_times_diagonal())(L.ravel(order="F"), x)
    assert np.array_equal(D.reshape(3, 3), np.diag(x))
    assert np.allclose(product.reshape(3, 3, order="F"), np.tril(L) @ np.diag(x), atol=1e-15)


def test_calls_by_name_take_what_they_need_and_answers_are_copies():
    call, values = Caller(lower_times_diagonal()), {"x": np.ones(3), "L": np.eye(3), "y": None}
    first = call(values)
    call(values | {"x": np.zeros(3)})
    assert np.array_equal(first["D"].reshape(3, 3), np.eye(3))
    assert (call.size("L"), call.size("y")) == (9, 0)


def test_a_vector_of_another_size_is_refused():
    with pytest.raises(ShapeError, match="x has 2 elements, expected 3"):
        Caller(lower_times_diagonal())({"L": np.eye(3), "x": np.ones(2)})
