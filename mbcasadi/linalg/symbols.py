"""What the files of this room share: kinds of expressions, Functions, when code is unrolled."""

from typing import TypeVar

import casadi as ca

Sym = TypeVar("Sym", ca.SX, ca.MX, ca.DM)
"""A matrix: of scalars (`SX`, unrolled C), as a whole (`MX`, loops in C), or of numbers."""

Expression = ca.SX | ca.MX | ca.DM

UNROLL_LIMIT = 30_000
"""Operations above which a factorisation becomes a loop; compilers slow down beyond it."""


def symbol(name: str, pattern: ca.Sparsity, operations: int) -> ca.SX | ca.MX:
    """Return a symbol of scalars up to `UNROLL_LIMIT` operations, else one matrix."""
    if operations <= UNROLL_LIMIT:
        return ca.SX.sym(name, pattern)
    return ca.MX.sym(name, pattern)


def named(name: str, inputs: dict[str, Expression], outputs: dict[str, Expression]) -> ca.Function:
    """Return a Function with named inputs and outputs."""
    return ca.Function(
        name, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs)
    )
