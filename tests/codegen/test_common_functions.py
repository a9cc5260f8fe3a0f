"""What several Functions have in common is in the C once."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.common_functions import CommonFunctions
from mbcasadi.codegen.compiled_function import compiled_function
from mbcasadi.codegen.equal_functions import with_equal_functions_once


def scalar(name, factor):
    """Return (x) → (y) with several operations, made anew at each call."""
    x = ca.SX.sym("x", 4)
    y = factor * ca.sin(x) + x[0] * x[1] - ca.cos(x) * x[3]
    return ca.Function(name, [x], [y])


def matrices(name, *parts):
    """Return (x) → (sum of the parts' values, one after another)."""
    x = ca.MX.sym("x", 4)
    y = x
    for part in parts:
        y = part(y)
    return ca.Function(name, [x], [y])


def test_equal_functions_of_different_objects_and_names_are_written_once():
    """Also those that call them: each is known by what it computes."""
    inner = [matrices(f"inner{k}", scalar(f"kinematics{k}", 2.0)) for k in range(3)]
    outer = matrices("outer", *inner)
    text = generate((outer,), "outer")
    assert sum(text.count(f"/* kinematics{k}:(") for k in range(3)) == 1
    assert sum(text.count(f"/* inner{k}:(") for k in range(3)) == 1
    x = np.random.default_rng(1).standard_normal(4)
    np.testing.assert_allclose(compiled_function(outer)(x), outer(x), rtol=1e-14)


@pytest.mark.parametrize("factor", [2.0 + 4e-16, -2.0])
def test_functions_with_another_number_stay(factor):
    outer = matrices("outer", scalar("first", 2.0), scalar("second", factor))
    text = generate((outer,), "outer")
    assert text.count("/* first:(") == text.count("/* second:(") == 1
    x = np.random.default_rng(1).standard_normal(4)
    np.testing.assert_allclose(compiled_function(outer)(x), outer(x), rtol=1e-14)


def test_a_function_of_matrices_with_the_name_of_a_scalar_one_keeps_its_text():
    outer = matrices("motion", scalar("motion", 2.0), scalar("other", 3.0))
    x = np.random.default_rng(1).standard_normal(4)
    np.testing.assert_allclose(compiled_function(outer)(x), outer(x), rtol=1e-14)


def test_a_law_executes_what_its_functions_call_and_no_more():
    shared, own = scalar("shared", 2.0), scalar("own", 3.0)
    first, second = matrices("first", shared), matrices("second", shared, own)
    common = CommonFunctions("both", (first, second))
    assert common.text.count("/* shared:(") == 1
    sines = common.text.count("both_sines(angle")  # one call in each scalar function
    assert sines == 2
    assert common.reached([first]).count("both_sines(angle") == 1
    assert common.reached([second]).count("both_sines(angle") == 2


def test_text_without_equal_functions_stays():
    text = "/* f:(i0)->(o0) */\nstatic int casadi_f1(int a) {\n  return a;\n}\n"
    assert with_equal_functions_once(text) == text
