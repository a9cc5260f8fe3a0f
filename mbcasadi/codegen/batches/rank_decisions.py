"""Whether a Function decides a rank that single precision cannot decide.

The drop rule of the factorisations compares the squared remainder of a row with `rank_tol²`
times its squared size. A comparison with a constant below float's rounding, or with a multiple of
one, is such a decision: in float the remainder of a dependent row is rounding, and above it.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np

FLOAT_ROUNDING = float(np.finfo(np.float32).eps)
COMPARISONS = frozenset((ca.OP_LT, ca.OP_LE))
PRODUCTS = frozenset((ca.OP_MUL, ca.OP_MTIMES, ca.OP_SQ, ca.OP_TWICE))
SUMS = frozenset((ca.OP_ADD, ca.OP_SUB, ca.OP_FMAX, ca.OP_FMIN))
SHAPES = frozenset(
    (
        *(ca.OP_HORZCAT, ca.OP_VERTCAT, ca.OP_DIAGCAT, ca.OP_HORZSPLIT, ca.OP_VERTSPLIT),
        *(ca.OP_DIAGSPLIT, ca.OP_RESHAPE, ca.OP_GETNONZEROS, ca.OP_SETNONZEROS, ca.OP_PROJECT),
        *(ca.OP_TRANSPOSE, ca.OP_HORZREPMAT, ca.OP_SPARSITY_CAST, ca.OP_NEG, ca.OP_FABS),
        *(ca.OP_SUBREF, ca.OP_ASSIGN),
    )
)


def decides_rank_below_float(function: ca.Function) -> bool:
    """Return whether it, or one that it calls, compares with less than float's rounding."""
    return _analysed(function, (False,) * function.n_in())[0]


def _analysed(function: ca.Function, tiny_inputs: Sequence[bool]) -> tuple[bool, tuple[bool, ...]]:
    """Return whether it decides such a rank, and which outputs are tiny constants' multiples."""
    body = function.is_a("SXFunction") or function.is_a("MXFunction")
    if not body:
        called = [
            _analysed(part, _fitted(part, tiny_inputs)) for part in function.find_functions(0)
        ]
        first = called[0][1] if called else ()
        return any(decides for decides, _ in called), _fitted_out(function, first)
    symbolic = bool(function.is_a("MXFunction"))
    tiny: dict[int, bool] = {}
    outputs = [False] * function.n_out()
    decides = False
    for k in range(function.n_instructions()):
        kind = function.instruction_id(k)
        sources, targets = function.instruction_input(k), function.instruction_output(k)
        values = [tiny.get(i, False) for i in sources]
        if kind == ca.OP_OUTPUT:
            outputs[targets[0]] |= values[0]
            continue
        results = [_result(kind, values)] * len(targets)
        if kind == ca.OP_INPUT:
            results = [bool(tiny_inputs[sources[0]])]
        elif kind == ca.OP_CONST:
            results = [_is_tiny(function, k, symbolic=symbolic)]
        elif kind == ca.OP_CALL:
            inner, given = _analysed(function.instruction_MX(k).which_function(), values)
            decides |= inner
            results = list(given)
        elif kind in COMPARISONS:
            decides |= any(values)
        tiny.update(zip(targets, results, strict=False))
    return decides, tuple(outputs)


def _result(kind: int, values: Sequence[bool]) -> bool:
    """Return whether the result of an operation is a multiple of a tiny constant."""
    if kind in PRODUCTS or kind in SHAPES:
        return any(values)
    if kind in SUMS:
        return bool(values) and all(values)
    return kind == ca.OP_DIV and values[0]


def _is_tiny(function: ca.Function, k: int, *, symbolic: bool) -> bool:
    value = function.instruction_MX(k).to_DM() if symbolic else function.instruction_constant(k)
    sizes = np.abs(np.array(value, dtype=float)).ravel()
    return bool(np.any((sizes > 0) & (sizes < FLOAT_ROUNDING)))


def _fitted(function: ca.Function, tiny: Sequence[bool]) -> tuple[bool, ...]:
    """Return a value for each input of a part of a Map, or of one branch of a Switch."""
    return (
        tuple(list(tiny)[-function.n_in() :])
        if len(tiny) >= function.n_in()
        else ((any(tiny),) * function.n_in())
    )


def _fitted_out(function: ca.Function, tiny: Sequence[bool]) -> tuple[bool, ...]:
    return tuple((*tiny, *(False,) * function.n_out())[: function.n_out()])
