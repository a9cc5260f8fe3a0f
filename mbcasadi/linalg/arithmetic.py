"""Sums, differences and products of scalars and matrices that may be numbers or SX.

The operators of CasADi's Python interface try each kind of argument in turn, which takes 30 to
60 µs; `SX.binary` takes 2 to 4. Both make the same expression, simplified in the same way. Formulas
that are evaluated once for each body or each entry use these functions, all others operators.
"""

from collections.abc import Mapping
from functools import lru_cache

import casadi as ca

Scalar = ca.SX | float

CONSTANTS = 4096
"""Numbers that are kept as SX: a model has as many lengths and inertias."""


def plus(a: Scalar, b: Scalar) -> Scalar:
    """Return `a + b`."""
    if isinstance(a, ca.SX):
        return ca.SX.binary(ca.OP_ADD, a, b if isinstance(b, ca.SX) else _constant(float(b)))
    return ca.SX.binary(ca.OP_ADD, _constant(float(a)), b) if isinstance(b, ca.SX) else a + b


def minus(a: Scalar, b: Scalar) -> Scalar:
    """Return `a - b`."""
    if isinstance(a, ca.SX):
        return ca.SX.binary(ca.OP_SUB, a, b if isinstance(b, ca.SX) else _constant(float(b)))
    return ca.SX.binary(ca.OP_SUB, _constant(float(a)), b) if isinstance(b, ca.SX) else a - b


def times(a: Scalar, b: Scalar) -> Scalar:
    """Return `a b`, of matrices entry by entry."""
    if isinstance(a, ca.SX):
        return ca.SX.binary(ca.OP_MUL, a, b if isinstance(b, ca.SX) else _constant(float(b)))
    return ca.SX.binary(ca.OP_MUL, _constant(float(a)), b) if isinstance(b, ca.SX) else a * b


def entries_of(matrix: ca.SX) -> dict[tuple[int, int], ca.SX]:
    """Return the entries of a sparse matrix by (row, column)."""
    rows, columns = matrix.sparsity().get_triplet()
    values: list[ca.SX] = matrix.nonzeros()  # type: ignore[assignment]  # an SXElem is an SX here
    return dict(zip(zip(rows, columns, strict=True), values, strict=True))


def matrix_of(shape: tuple[int, int], entries: Mapping[tuple[int, int], Scalar]) -> ca.SX:
    """Return a sparse matrix from its entries by (row, column).

    Setting the entries of a matrix one by one takes 30 µs for each.
    """
    places = sorted(entries, key=lambda place: (place[1], place[0]))
    rows, columns = [i for i, _ in places], [j for _, j in places]
    pattern = ca.Sparsity.triplet(*shape, rows, columns)
    values = ca.vertcat(ca.SX(0, 1), *(entries[place] for place in places))
    return ca.SX(pattern, values)


@lru_cache(maxsize=CONSTANTS)
def _constant(value: float) -> ca.SX:
    """Return a number as SX, which nobody may change: these functions only read it."""
    return ca.SX(value)
