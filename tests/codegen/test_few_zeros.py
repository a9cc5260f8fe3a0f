"""Zeros in generated C stand for those inputs only that a caller may leave out."""

import re

import casadi as ca
import pytest

from mbcasadi.codegen.zeros import with_few_zeros

DATA, OTHER = 1000, 100


def text_of(*functions: ca.Function) -> str:
    generator = ca.CodeGenerator("law", {"with_header": False})
    for function in functions:
        generator.add(function)
    return str(generator.dump())


def stages() -> tuple[ca.Function, ca.Function]:
    """Return build and finish; an inner Function of finish reads all data."""
    x, prepared = ca.MX.sym("x", OTHER), ca.MX.sym("prepared", DATA)
    inner = ca.Function("inner", [prepared], [ca.sumsqr(prepared)], {"never_inline": True})
    values = {"build": ca.sumsqr(x) + prepared[0], "finish": inner(ca.sin(prepared))}
    return tuple(
        ca.Function(f"law_{name}", [x, prepared], [value], ["x", "prepared"], ["y"])
        for name, value in values.items()
    )


@pytest.mark.parametrize("is_null", [False, True])
def test_zeros_are_as_many_as_inputs_that_may_be_null_need(is_null):
    functions = stages()
    text = text_of(*functions)
    assert re.search(r"arg1\[0\]=w\w*;", text)
    if is_null:
        text = re.sub(r"arg1\[0\]=w\w*;", "arg1[0]=0;", text)
    before, after = (
        int(re.search(r"casadi_zeros\[(\d+)\]", part)[1])
        for part in (text, with_few_zeros(text, functions))
    )
    assert before == DATA
    assert after == (DATA if is_null else OTHER)
