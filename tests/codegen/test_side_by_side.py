"""Functions that do one thing for several sets of numbers, in C vectors, against each set alone."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.codegen import export_c
from mbcasadi.codegen.scalar_text.packs import packs_body
from mbcasadi.linalg.side_by_side import side_by_side

SETS = 8
FLAGS = {
    "vectors": ("-O3", "-march=native"),
    "common vectors": ("-O2",),
    "none": ("-O2", "-DSETS_SCALAR"),
}
ROUNDING = {"double": 1e-13, "float": 1e-4}  # of numbers of order one; joined products differ


def alone():
    """Return a scalar Function with each operation that vectors have."""
    x, y = ca.SX.sym("x", 2, 2), ca.SX.sym("y", 3)
    s, big = y[0], ca.fmax(x[0, 0], x[1, 1])
    root = ca.sqrt(ca.fabs(x[0, 1] * s) + 1)
    picked = ca.if_else(s < y[1], x / root, x * ca.fmin(y[2], big))
    sign = ca.if_else(ca.logic_not(y[1] <= 0), 1 / (1 + y[1] ** 2), -y[2] - 3.25)
    return ca.Function("of_one_set", [x, y], [picked, ca.vertcat(sign, 2 * big), root])


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.every(2)
def test_each_set_has_the_values_that_it_has_alone(tmp_path, real):
    function = alone()
    together = side_by_side(function, SETS)
    assert "pack_sqrt(" in packs_body(together.name())
    x, y = ca.MX.sym("x", SETS, 4), ca.MX.sym("y", SETS, 3)
    whole = ca.Function("sets", [x, y], together.call([x, y]))
    project = export_c(whole, tmp_path, real=real)
    assert "PACK_AT(" in project.source.read_text()
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((SETS, 4)), rng.standard_normal((SETS, 3))
    own = [function(a.reshape(2, 2).T, b) for a, b in zip(*inputs, strict=True)]
    expected = [np.array([np.array(row[k]).ravel("F") for row in own]) for k in range(3)]
    for values in (whole(*inputs), *(project.load(flags=f)(*inputs) for f in FLAGS.values())):
        for value, wanted in zip(values, expected, strict=True):
            assert np.abs(np.array(value) - wanted).max() < ROUNDING[real]
