"""Numbers that one generated Function hands to the next, without constants and repetitions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast

import casadi as ca


@dataclass(frozen=True)
class Layout:
    """Where each matrix finds its entries: a constant, or a place in the carried vector.

    Attributes:
        patterns: sparsity of each matrix.
        entries: for each of its nonzeros, a float or an index.
        size: length of the carried vector.
        turned: names of matrices whose transposes are carried.
    """

    patterns: dict[str, ca.Sparsity]
    entries: dict[str, tuple[float | int, ...]]
    size: int
    turned: frozenset[str] = frozenset()


def pack(values: Mapping[str, ca.SX], carried: Collection[str] = ()) -> tuple[ca.SX, Layout]:
    """Return a column of the entries that are not constant, and how to read it.

    Entries of scalar expressions that are equal are carried once.

    Args:
        values: matrices by name.
        carried: names of matrix expressions (MX) that the column has even where they are constant.
    """
    if any(isinstance(value, ca.MX) for value in values.values()):
        matrices, layout = _pack_matrices(cast(Mapping[str, ca.MX | ca.SX], values), carried)
        return cast(ca.SX, matrices), layout
    column: list[ca.SX] = []
    places: dict[int, int] = {}
    entries: dict[str, tuple[float | int, ...]] = {}
    for name, value in values.items():
        found: list[float | int] = []
        for scalar in ca.vertsplit(ca.vec(value.nz[:])) if value.nnz() else []:
            if scalar.is_constant():
                found.append(float(scalar))
                continue
            key = scalar.element_hash()
            if key not in places:
                places[key] = len(column)
                column.append(scalar)
            found.append(places[key])
        entries[name] = tuple(found)
    patterns = {name: value.sparsity() for name, value in values.items()}
    return ca.vertcat(ca.SX(0, 1), *column), Layout(patterns, entries, len(column))


def matrix_symbols(sizes: Mapping[str, int]) -> dict[str, ca.SX]:
    """Return symbols of columns of these sizes; matrices keep the type of scalars."""
    return cast(dict[str, ca.SX], {key: ca.MX.sym(key, size) for key, size in sizes.items()})


def _pack_matrices(
    values: Mapping[str, ca.MX | ca.SX], carried: Collection[str]
) -> tuple[ca.MX, Layout]:
    """Return the matrices one behind the other."""
    column, size = [ca.MX(0, 1)], 0
    patterns, entries, turned = {}, {}, set()
    for name, value in values.items():
        matrix = ca.MX(ca.evalf(value)) if isinstance(value, ca.SX) else ca.MX(value)
        if matrix.is_op(ca.OP_TRANSPOSE):
            matrix = matrix.dep(0)
            turned.add(name)
        patterns[name] = matrix.sparsity()
        if matrix.is_constant() and name not in carried:
            entries[name] = tuple(matrix.to_DM().nonzeros())
            continue
        entries[name] = tuple(range(size, size + matrix.nnz()))
        column.append(ca.sparsity_cast(matrix, ca.Sparsity.dense(matrix.nnz(), 1)))
        size += matrix.nnz()
    return ca.vertcat(*column), Layout(patterns, entries, size, frozenset(turned))


def unpack(layout: Layout, column: ca.SX) -> dict[str, ca.SX]:
    """Return the matrices of a carried column."""
    if isinstance(column, ca.MX):
        return cast(dict[str, ca.SX], _unpack_matrices(layout, column))
    matrices = {}
    for name, pattern in layout.patterns.items():
        entries = [
            column[entry] if isinstance(entry, int) else ca.SX(entry)
            for entry in layout.entries[name]
        ]
        matrices[name] = ca.SX(pattern, ca.vertcat(ca.SX(0, 1), *entries))
    return matrices


def _unpack_matrices(layout: Layout, column: ca.MX) -> dict[str, ca.MX]:
    carried = {name: _is_carried(entries) for name, entries in layout.entries.items()}
    sizes = [len(layout.entries[name]) for name, is_carried in carried.items() if is_carried]
    pieces = iter(ca.vertsplit(column, [0, *_sums(sizes)]))
    matrices = {}
    for name, pattern in layout.patterns.items():
        matrix = (
            ca.sparsity_cast(next(pieces), pattern)
            if carried[name]
            else ca.MX(ca.DM(pattern, layout.entries[name]))
        )
        matrices[name] = matrix.T if name in layout.turned else matrix
    return matrices


def _is_carried(entries: tuple[float | int, ...]) -> bool:
    return bool(entries) and isinstance(entries[0], int)


def _sums(sizes: list[int]) -> list[int]:
    return [sum(sizes[: i + 1]) for i in range(len(sizes))]
