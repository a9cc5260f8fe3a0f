"""Numbers that one generated Function hands to the next, without constants and repetitions."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class Layout:
    """Where each matrix finds its entries: a constant, or a place in the carried vector.

    Attributes:
        patterns: sparsity of each matrix.
        entries: for each of its nonzeros, a float or an index.
        size: length of the carried vector.
    """

    patterns: dict[str, ca.Sparsity]
    entries: dict[str, tuple[float | int, ...]]
    size: int


def pack(values: Mapping[str, ca.SX]) -> tuple[ca.SX, Layout]:
    """Return a column of the distinct entries that are not constant, and how to read it."""
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


def unpack(layout: Layout, column: ca.SX) -> dict[str, ca.SX]:
    """Return the matrices of a carried column."""
    matrices = {}
    for name, pattern in layout.patterns.items():
        entries = [
            column[entry] if isinstance(entry, int) else ca.SX(entry)
            for entry in layout.entries[name]
        ]
        matrices[name] = ca.SX(pattern, ca.vertcat(ca.SX(0, 1), *entries))
    return matrices
