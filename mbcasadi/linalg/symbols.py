"""Kinds of expressions, named Functions, and the limit up to which code is unrolled."""

from collections.abc import Mapping
from typing import Any, TypedDict, TypeVar, cast

import casadi as ca

from mbcasadi.argument_kinds import checked

Sym = TypeVar("Sym", ca.SX, ca.MX, ca.DM)
"""A matrix: of scalars (`SX`, unrolled C), as a whole (`MX`, loops in C), or of numbers."""

UNROLL_LIMIT = 30_000
"""Operations above which a factorisation becomes a loop; compilers slow down beyond it."""


class DropRule(TypedDict):
    """When a row counts as dependent: keyword arguments of `row_basis`."""

    row_scale: Any
    rank_tol: float
    pivot: bool


@checked
def kind_for(operations: int, limit: int | None = None) -> type[ca.MX]:
    """Return `ca.SX` for up to `limit` operations (default `UNROLL_LIMIT`), else `ca.MX`.

    Both offer the same operations, so the type of the result is given as that of `ca.MX`.
    """
    unrolled = operations <= (UNROLL_LIMIT if limit is None else limit)
    return cast(type[ca.MX], ca.SX) if unrolled else ca.MX


def symbol(name: str, pattern: ca.Sparsity, operations: int, limit: int | None = None) -> ca.MX:
    """Return a symbol of the kind that `kind_for` gives for so many operations.

    Args:
        name: of the symbol.
        pattern: its sparsity.
        operations: of the Function in which it is used.
        limit: see `kind_for`.
    """
    return kind_for(operations, limit).sym(name, pattern)


def named_function(name: str, inputs: Mapping[str, Sym], outputs: Mapping[str, Sym]) -> ca.Function:
    """Return a Function with named inputs and outputs."""
    return ca.Function(
        name, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs)
    )
