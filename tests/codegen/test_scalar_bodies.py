"""Scalar functions written as by hand compute what CasADi's own text computes."""

import ctypes
import re

import casadi as ca
import numpy as np
import pytest
from mpmath import mp

from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.compiled_function import compiled_function, function_c
from mbcasadi.codegen.compiler import compile_c, find_compiler
from mbcasadi.codegen.scalar_text import bodies
from mbcasadi.codegen.scalar_text.values import MOST_EFFORT, MOST_UNWANTED

ROUNDING = 1e-14
ULPS = 2.0
FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wpedantic")


UNARY = (
    *("exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "floor", "ceil", "fabs", "sign", "erf", "log1p", "expm1"),
    "logic_not",
)


def load(function, folder):
    source = folder / "function.c"
    source.write_text(function_c(function))
    command = (*find_compiler(), *FLAGS, "-shared", "-fPIC", str(source), "-lm")
    return getattr(ctypes.CDLL(str(compile_c(command, folder / "f.so").path)), function.name())


def call(compiled, inputs, sizes):
    """Call the C with None for what is not passed; returns the outputs that are."""
    outputs = [None if size is None else np.full(size, np.nan) for size in sizes]
    pointers = [
        (ctypes.c_void_p * len(arrays))(*(a if a is None else a.ctypes.data for a in arrays))
        for arrays in (inputs, outputs)
    ]
    assert compiled(*pointers, None, None, 0) == 0
    return outputs


def sines_of(n):
    x = ca.SX.sym("x", n)
    return ca.Function("sines", [x], [ca.sin(x), ca.cos(x)])


def every_operation():
    x, y = ca.SX.sym("x", 4), ca.SX.sym("y")
    inner = ca.sin(x + 0.3) * ca.cos(x)
    chosen = ca.if_else(x[0] > y, ca.cos(ca.sin(y)), ca.fabs(x[1]))
    powers = ca.vertcat(y**3, ca.exp(-(y**2)), ca.atan2(y, x[2]), ca.fmin(x[3], -y), 1 / (2 + y**2))
    matrix = ca.sparsify(ca.diag(x) * y)
    outputs = [inner, chosen, powers, matrix, ca.SX(3), ca.SX(2, 2), y, x[0]]
    return ca.Function("every_operation", [x, y], outputs)


def test_a_body_is_written_once_for_all_names_and_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE", str(tmp_path))
    monkeypatch.setattr(bodies, "LEAST_CACHED", 0)
    monkeypatch.setattr(bodies, "_written", {})
    text = generate((sines_of(4),), "early")
    assert "early_sines(" in text
    monkeypatch.setattr(bodies, "body_c", None)
    assert generate((sines_of(4),), "later") == text.replace("early", "later")
    bodies._written.clear()  # as in another process
    assert generate((sines_of(4),), "third") == text.replace("early", "third")


def test_values_equal_those_of_the_function(tmp_path):
    function, rng = every_operation(), np.random.default_rng(0)
    compiled = load(function, tmp_path)
    for _ in range(100):
        x, y = rng.normal(size=4), rng.normal(size=1)
        found = call(compiled, [x, y], [function.nnz_out(i) for i in range(8)])
        for a, b in zip(found, function(x, y), strict=True):
            np.testing.assert_allclose(a, b.nonzeros(), rtol=ROUNDING, atol=ROUNDING)


def test_what_is_not_passed_is_zero_or_not_written(tmp_path):
    function = every_operation()
    compiled = load(function, tmp_path)
    y = np.array([0.7])
    for wanted in range(8):
        sizes = [function.nnz_out(i) if i == wanted else None for i in range(8)]
        found = call(compiled, [None, y], sizes)[wanted]
        np.testing.assert_allclose(found, function(0, y)[wanted].nonzeros(), atol=ROUNDING)


@pytest.mark.long
def test_sines_are_within_two_units_in_the_last_place(tmp_path):
    rng = np.random.default_rng(1)
    multiples = np.arange(-500, 500) * (np.pi / 2)
    groups = [multiples, rng.uniform(-1e6, 1e6, 1000), rng.normal(size=1000) * 1e-3]
    groups += [np.array([0.0, -0.0, 5e-324, 1e-300, 1e6, 1.0000001e6, 1e22, -1e300])]
    angles = np.concatenate(groups)
    chunks = [angles[k : k + 1000] for k in range(0, len(angles), 1000)]
    compiled = load(sines_of(1000), tmp_path)
    with mp.workdps(360):
        for chunk in chunks:
            padded = np.concatenate([chunk, np.zeros(1000 - len(chunk))])
            sine, cosine = call(compiled, [padded], [1000, 1000])
            for x, s, c in zip(chunk, sine, cosine, strict=False):
                for value, exact in ((s, mp.sin(mp.mpf(x))), (c, mp.cos(mp.mpf(x)))):
                    assert abs(value - exact) <= ULPS * np.spacing(abs(float(exact))), x
    assert np.signbit(call(compiled, [np.full(1000, -0.0)], [1000, 1000])[0]).all()


def test_an_angle_that_is_no_number_stays_alone(tmp_path):
    angles = np.array([0.5, np.nan, np.inf, -np.inf, 1.0])
    sine, cosine = call(load(sines_of(5), tmp_path), [angles], [5, 5])
    assert list(np.isnan(sine)) == list(np.isnan(cosine)) == [False, True, True, True, False]
    np.testing.assert_allclose(sine[[0, 4]], np.sin([0.5, 1.0]), rtol=ROUNDING)


def test_no_operation_is_added_and_no_check_is_left():
    function = every_operation()
    text = function_c(function)
    body = re.search(r"static int casadi_f0.*?^}", text, re.MULTILINE | re.DOTALL)
    assert body is not None
    assert body[0].count("num x") <= function.n_instructions()
    assert "!=0) res" not in body[0]
    assert not re.search(r"\b(sin|cos)\(x[0-3]\)", body[0])


def test_every_operation_of_casadi_has_a_form():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    both = [x + y, x - y, x * y, x / y, x**y, x < y, x <= y, ca.eq(x, y), ca.ne(x, y), x**2.5]
    names = ("atan2", "fmod", "remainder", "copysign", "fmin", "fmax", "hypot")
    both += [getattr(ca, name)(x, y) for name in names]
    both += [ca.logic_and(x, y), ca.logic_or(x, y), ca.if_else(x, y, 0), 2 * x, 1 / x, -x, x**2]
    both += [getattr(ca, name)(x) for name in UNARY]
    constants = [ca.SX(value) for value in (0.1, -3.0, 2.0**62, 1e300, np.inf, -np.inf, np.nan)]
    function = ca.Function("all", [x, y], [*both, *(x + value for value in constants)])
    compiled = compiled_function(function)
    for at in np.random.default_rng(5).normal(size=(50, 2)):
        for a, b in zip(compiled(*at), function(*at), strict=True):
            np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING)
    assert "if (res[" not in function_c(function)


def test_functions_of_one_name_keep_their_own_bodies():
    x = ca.MX.sym("x")
    at = ca.SX.sym("at")
    first, second = (ca.Function("part", [at], [k * ca.sin(at) + k]) for k in (2, 3))
    function = ca.Function("outer", [x], [first(x), second(x)])
    np.testing.assert_allclose(ca.vertcat(*compiled_function(function)(0.4)), [
        [k * np.sin(0.4) + k] for k in (2, 3)
    ], rtol=ROUNDING)  # fmt: skip


def test_a_function_of_many_inputs_is_right_too():
    size = MOST_UNWANTED + 1
    x = ca.SX.sym("x", size)
    function = ca.Function("many", [x], [ca.sum1(ca.sin(x) * x), x[:3]])
    values = np.random.default_rng(2).normal(size=size)
    total, first = compiled_function(function)(ca.DM(values))
    assert float(total) == pytest.approx(float(np.sum(np.sin(values) * values)), rel=1e-12)
    np.testing.assert_array_equal(first.full().ravel(), values[:3])


@pytest.mark.long
def test_a_function_of_many_outputs_is_written_soon_and_right():
    size, steps = MOST_UNWANTED, 12
    x = ca.SX.sym("x", size)
    values = np.random.default_rng(4).uniform(0.5, 1.0, size)
    y, expected = x, values
    for _ in range(steps):
        y, expected = (y + 1) * x, (expected + 1) * values
    assert size**2 * 2 * steps * size > MOST_EFFORT
    found = compiled_function(ca.Function("many", [x], [y]))(ca.DM(values))
    np.testing.assert_allclose(found.full().ravel(), expected, rtol=1e-12)


def test_matrix_functions_call_scalar_ones():
    x = ca.MX.sym("x", 4)
    y = ca.MX.sym("y")
    inner = every_operation()
    values = inner(x, y)
    function = ca.Function("outer", [x, y], [values[0] + ca.mtimes(values[3], x), values[2]])
    at = np.random.default_rng(3).normal(size=4)
    for a, b in zip(compiled_function(function)(ca.DM(at), 0.2), function(at, 0.2), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=ROUNDING)
