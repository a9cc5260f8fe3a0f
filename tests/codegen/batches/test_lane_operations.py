"""Every operation of CasADi in lanes is that of CasADi, special values included."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb

UNARY = {
    "neg": lambda x: -x,
    "twice": lambda x: x + x,
    "sq": lambda x: x * x,
    "inv": lambda x: 1 / x,
    "not": ca.logic_not,
    **{
        name: getattr(ca, name)
        for name in (
            *("exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "floor", "ceil"),
            *("fabs", "sign", "erf", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "log1p"),
            "expm1",
        )
    },
}
BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": ca.logic_and,
    "or": ca.logic_or,
    "if_else": lambda x, y: ca.if_else(x, y, 0),
    **{
        name: getattr(ca, name)
        for name in ("fmin", "fmax", "fmod", "remainder", "copysign", "atan2", "hypot")
    },
}
EXACT = {
    *("neg", "twice", "sq", "inv", "not", "sqrt", "floor", "ceil", "fabs", "sign", "add", "sub"),
    *("mul", "div", "lt", "le", "eq", "ne", "and", "or", "if_else", "fmin", "fmax", "copysign"),
    *("fmod", "remainder"),
}
OPEN_SIGN = {"fmin", "fmax"}
"""C leaves open which of two zeros they return."""

ROUNDING = {"double": 8 * np.finfo(float).eps, "float": 2 * np.finfo(np.float32).eps}
"""Two units in the last place of ours and of the C library's each, relative to the value."""


def special_values(real):
    info = np.finfo(np.float32 if real == "float" else float)
    sizes = [0.0, info.smallest_subnormal, info.tiny, 1e-3, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0]
    sizes += [np.pi / 2, np.pi, 10.0, 88.0, 700.0, 1e5, 1e6, 1.1e6, 1e10, 1e30, info.max, np.inf]
    return np.array([*sizes, *(-x for x in sizes), np.nan]).astype(info.dtype)


def function_of(kind, operations, arity):
    x, y = kind.sym("x"), kind.sym("y")
    if kind is ca.MX:  # through a vector, so that operations are loops
        x, y = kind.sym("x", 2), kind.sym("y", 2)
    arguments = (x, y)[:arity]
    outputs = [operation(*arguments) for operation in operations.values()]
    names = ["x", "y"][:arity]
    return ca.Function("table", list(arguments), outputs, names, list(operations))


def cases(real, arity):
    special, rng = special_values(real), np.random.default_rng(3)
    if arity == 1:
        return [np.concatenate([special, rng.uniform(-4, 4, 100).astype(special.dtype)])]
    x, y = (part.ravel() for part in np.meshgrid(special, special))
    return [np.concatenate([part, rng.uniform(-4, 4, 100).astype(part.dtype)]) for part in (x, y)]


def expected_values(function, columns, real):
    """CasADi's own values of the same numbers, rounded to the type."""
    rows = np.ones((function.size1_in(0), 1))
    results = function.map(len(columns[0])).call([ca.DM(rows * c[None, :]) for c in columns])
    with np.errstate(over="ignore"):
        kind = np.float32 if real == "float" else float
        return {
            name: np.array(r)[0].astype(kind)
            for name, r in zip(function.name_out(), results, strict=True)
        }


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("kind", [ca.SX, ca.MX], ids=["SX", "MX"])
@pytest.mark.parametrize(("operations", "arity"), [(UNARY, 1), (BINARY, 2)], ids=["one", "two"])
@pytest.mark.every(2)
def test_each_operation_is_that_of_casadi(operations, arity, kind, real):
    function = function_of(kind, operations, arity)
    batch = mb.batch(function, real=real, threads=1)
    assert batch.lanes > 1
    assert not batch.scalar_functions
    columns = cases(real, arity)
    size = function.size1_in(0)
    actual = batch(*[np.repeat(column[:, None], size, axis=1) for column in columns])
    expected = expected_values(function, columns, real)
    for name, value in expected.items():
        given = actual[name][:, 0]
        same = (given == value) | (np.isnan(given) & np.isnan(value))
        with np.errstate(invalid="ignore"):
            near = np.abs(given - value) <= ROUNDING[real] * np.abs(value)
            # below the smallest normal number a unit in the last place is this much
            near |= np.abs(given - value) <= np.finfo(given.dtype).smallest_subnormal
        good = same if name in EXACT else same | near
        k = int(np.argmin(good))
        assert good.all(), (name, [c[k] for c in columns], given[k], value[k])
        if name in EXACT - OPEN_SIGN:
            zero = same & (value == 0)
            assert np.array_equal(np.signbit(given[zero]), np.signbit(value[zero])), name
