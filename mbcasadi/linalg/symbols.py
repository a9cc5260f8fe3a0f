"""What the files of this room share: kinds of expressions, Functions, when code is unrolled."""

from collections.abc import Mapping
from typing import Any, TypeVar

import casadi as ca

Sym = TypeVar("Sym", ca.SX, ca.MX, ca.DM)
"""A matrix: of scalars (`SX`, unrolled C), as a whole (`MX`, loops in C), or of numbers."""

UNROLL_LIMIT = 30_000
"""Operations above which a factorisation becomes a loop; compilers slow down beyond it."""


def symbol(name: str, pattern: ca.Sparsity, operations: int, limit: int | None = None) -> Any:
    """Return a symbol of scalars (SX) up to `limit` operations, else one matrix (MX)."""
    unrolled = operations <= (UNROLL_LIMIT if limit is None else limit)
    return (ca.SX if unrolled else ca.MX).sym(name, pattern)


def named(name: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> ca.Function:
    """Return a Function with named inputs and outputs."""
    return ca.Function(
        name, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs)
    )
