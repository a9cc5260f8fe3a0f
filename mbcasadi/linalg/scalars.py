"""Scalar expressions as matrices: outputs of one Function of scalars.

What depends on the robot (inertia, Jacobians) is written out in C, operation by operation; products
and factors of these matrices become loops (`linalg.loops`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import casadi as ca

T = TypeVar("T")
ScalarBody = Callable[[dict[str, ca.SX]], Sequence[ca.SX]]

KEPT = 64
"""Functions of scalars that controllers of one mechanism have in common, at most."""

SPARSE = 0.35
"""A matrix with a smaller share of nonzeros than this is stored without its zeros: where there are
more, loops over whole columns are the faster ones."""


class Late(NamedTuple):
    """Scalars that are known by a call of a Function, which does not belong among scalars in C.

    Attributes:
        symbols: (n, 1) what stands for them in expressions.
        values: (n, 1) expressions with the call.
    """

    symbols: ca.SX
    values: ca.SX

    def put_into(self, parts: Sequence[ca.SX]) -> list[ca.SX]:
        """Return expressions with the values in place of the symbols."""
        return list(ca.substitute(list(parts), [self.symbols], [self.values]))


def lifted(
    name: str, symbols: Mapping[str, ca.SX], parts: T, late: Late | None = None
) -> tuple[T, dict[str, ca.SX]]:
    """Return `parts` as matrices, and the symbols of matrices that they depend on.

    Both kinds of expressions offer the same operations, so they keep the type of the scalars.

    Args:
        name: of the Function of scalars.
        symbols: its inputs, by name.
        parts: expressions of these, in dicts, dataclasses and named tuples.
        late: scalars that stand for a call, or None.
    """
    found: dict[int, ca.SX] = {}
    _each_matrix(parts, lambda x: found.setdefault(id(x), x))
    computed = [x for x in found.values() if not x.is_constant()]
    options = {"cse": True, "never_inline": True}
    inputs = list(symbols.values())
    arguments = {key: ca.MX.sym(key, x.numel()) for key, x in symbols.items()}
    given = list(arguments.values())
    if late is not None:
        given += ca.Function(f"{name}_late", inputs, [late.values], options).call(given)
        inputs = [*inputs, late.symbols]
    function = ca.Function(name, inputs, [_stored(x) for x in computed], options)
    results = function.call(given)
    by_id = {id(x): ca.MX(ca.evalf(x)) for x in found.values() if x.is_constant()}
    by_id |= {id(x): result for x, result in zip(computed, results, strict=True)}
    matrices: T = _each_matrix(parts, lambda x: by_id[id(x)])
    return matrices, cast(dict[str, ca.SX], arguments)


def _stored(x: ca.SX) -> ca.SX:
    """Return the matrix with or without its zeros; an inertia and its factor keep them."""
    is_square = x.shape[0] == x.shape[1]
    return x if is_square or x.nnz() < SPARSE * x.numel() else ca.densify(x)


def _each_matrix(parts: Any, change: Callable[[ca.SX], Any]) -> Any:
    """Return the parts with `change` applied to each matrix of scalars."""
    if isinstance(parts, ca.SX):
        return change(parts)
    if isinstance(parts, dict):
        return {key: _each_matrix(value, change) for key, value in parts.items()}
    if isinstance(parts, tuple) and hasattr(parts, "_fields"):
        return type(parts)(*(_each_matrix(value, change) for value in parts))
    if is_dataclass(parts) and not isinstance(parts, type):
        values = {field.name: getattr(parts, field.name) for field in fields(parts)}
        return replace(parts, **{key: _each_matrix(value, change) for key, value in values.items()})
    return parts


def in_scalars(
    name: str,
    function: ScalarBody,
    given: Mapping[str, Any],
    *,
    kept: bool = False,
) -> list[Any]:
    """Return the results of a function of scalar expressions, at expressions or at matrices.

    Args:
        name: of the Function that is called where matrices are given.
        function: from expressions by name to its results.
        given: expressions, or matrices, by name.
        kept: whether the Function is kept for other matrices of the same patterns; only for a
            function of a module, whose results depend on nothing else.
    """
    if not any(isinstance(value, ca.MX) for value in given.values()):
        return list(function(dict(given)))
    matrices = {key: ca.MX(value) for key, value in given.items()}
    made = scalar_function(name, function, matrices, kept=kept)
    called: list[Any] = made.call(list(matrices.values()))
    return called


def scalar_function(
    name: str, function: ScalarBody, given: Mapping[str, ca.MX], *, kept: bool = True
) -> ca.Function:
    """Return a function of scalar expressions as a Function of such matrices.

    Args:
        name, function, kept: as for `in_scalars`.
        given: matrices by name, for their patterns.
    """
    patterns = tuple((key, *matrix.sparsity().compress()) for key, matrix in given.items())
    make = _whole if kept else _whole.__wrapped__
    return make(name, function, patterns)


@lru_cache(maxsize=KEPT)
def _whole(name: str, function: ScalarBody, patterns: tuple[tuple[Any, ...], ...]) -> ca.Function:
    """Return the Function of matrices with these patterns (name, *compressed)."""
    symbols = {key: ca.SX.sym("x", ca.Sparsity.compressed(pattern)) for key, *pattern in patterns}
    results = [_stored(x) for x in function(symbols)]
    options = {"cse": True, "never_inline": True}
    return ca.Function(name, list(symbols.values()), results, options)
