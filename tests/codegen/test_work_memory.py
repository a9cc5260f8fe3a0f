"""C of CasADi with less work memory: the same values, and nothing is written behind it."""

import ctypes

import casadi as ca
import numpy as np
import pytest

from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.compiler import compile_c, find_compiler
from mbcasadi.codegen.work_memory import work_size
from mbcasadi.linalg.loops import product
from mbcasadi.platforms import platform_of

SPARE, MARK = 100, 12.5
SIZE = 9
APART = {"never_inline": True}


def nested():
    """Return (A, b) → (prepared, y) of products in loops, sparse products and inner Functions."""
    A, b = ca.MX.sym("A", SIZE, SIZE), ca.MX.sym("b", SIZE, SIZE)
    inner = ca.Function("inner", [A, b], [product(A, ca.sin(b)) + A, A - b])
    middle = ca.Function("middle", [A, b], [product(*inner(A, b)), ca.tril(A) @ ca.triu(b)])
    first, second = middle(A, b)
    columns = inner.map(SIZE)(ca.repmat(A, 1, SIZE), ca.repmat(first, 1, SIZE))[0]
    prepared = ca.vertcat(1, ca.vec(columns), ca.vec(ca.densify(second)))
    y = product(first, ca.cos(b))
    return ca.Function("nested_preparation", [A, b], [prepared, y])


def chosen():
    """Return (A, b) → (y) of one of two Functions; two that they call have one name."""
    A, b = ca.MX.sym("A", SIZE, SIZE), ca.MX.sym("b", SIZE, SIZE)
    large = ca.Function(
        "inner", [A, b], [product(ca.sin(A), product(ca.cos(b), ca.exp(A - b)))], APART
    )
    c = ca.MX.sym("c", SIZE)
    small = ca.Function("inner", [c], [ca.cumsum(product(ca.diag(c), ca.sin(c)))], APART)
    ends = [product(A, ca.cos(small(b[:, 0]))), product(ca.tanh(A), ca.exp(small(b[:, 1])))]
    branch = ca.Function("branch", [A, b], ends)
    other = ca.Function("other", [A, b], [A[:, 0], b[:, 0]])
    either = ca.Function.if_else("either", branch, other)
    first, second = either(A[0, 0] < 10, A, b)
    return ca.Function("chosen", [A, b], [first + second, product(large(A, b), first)])


def passing():
    """Return (A, b) → (y, z) of Functions that hand on their inputs, which CasADi does not copy."""
    A, b = ca.MX.sym("A", SIZE, SIZE), ca.MX.sym("b", SIZE, SIZE)
    C, d = ca.MX.sym("C", SIZE, SIZE), ca.MX.sym("d", SIZE)
    of_all = ca.Function("of_all", [C, d], [ca.sumsqr(C) * d], APART)
    ends = ca.Function("ends", [C, d], [C[:, 0] - d, 2 * d], APART)
    middle = ca.Function("middle", [C, d], ends(C, of_all(C, ca.sin(d))), APART)
    first, second = middle(A, b[:, 0])
    return ca.Function("passing", [A, b], [first + ca.cos(b[:, 0]), second])


@pytest.fixture(scope="module")
def text():
    return generate((nested(),), "nested")


def test_it_needs_less_than_the_interpreter(text):
    assert 0 < work_size(text, "nested_preparation") < 0.8 * nested().sz_w()


def test_an_input_that_is_handed_on_needs_no_memory():
    text = generate((passing(),), "passing")
    assert passing().sz_w() > 2 * SIZE**2
    assert work_size(text, "passing") < SIZE**2


@pytest.mark.parametrize("function", [nested(), chosen(), passing()], ids=lambda f: f.name())
def test_values_are_the_same_and_nothing_is_written_behind_the_memory(function, tmp_path):
    name, rng = function.name(), np.random.default_rng(0)
    text = generate((function,), name)
    source, library = tmp_path / f"{name}.c", tmp_path / f"{name}.so"
    includes = "".join(f"#include <{name}.h>\n" for name in ("float", "math", "string"))
    source.write_text(includes + text)
    compile_c(
        (*find_compiler(None), "-std=c99", "-O1", *platform_of().shared, str(source), "-lm"),
        library,
    )
    called = getattr(ctypes.CDLL(str(library)), name)
    given = [rng.standard_normal((SIZE, SIZE)) for _ in range(2)]
    inputs = [np.asfortranarray(part).ravel(order="F") for part in given]
    outputs = [np.zeros(function.numel_out(i)) for i in range(2)]
    size = work_size(text, name)
    w, iw = np.full(size + SPARE, MARK), np.zeros(function.sz_iw() + 1, dtype=np.int64)
    pointer = ctypes.POINTER(ctypes.c_double)
    arg, res = (pointer * function.sz_arg())(), (pointer * function.sz_res())()
    arg[:2] = [part.ctypes.data_as(pointer) for part in inputs]
    res[:2] = [part.ctypes.data_as(pointer) for part in outputs]
    assert called(arg, res, iw.ctypes.data_as(ctypes.c_void_p), w.ctypes.data_as(pointer), 0) == 0
    assert np.all(w[size:] == MARK)
    for found, expected in zip(outputs, function.call(given), strict=True):
        np.testing.assert_allclose(found, expected.full().ravel(order="F"), rtol=1e-12, atol=1e-13)
