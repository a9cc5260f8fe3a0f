"""Functions whose generated C is a loop of ours in place of CasADi's straight-line text.

A dense product or factorisation of 12 × 18 numbers is 50 lines of C in loops, and thousands of
lines without: too many for the instruction cache, and for the compiler. `linalg.loops` makes such
Functions and records here which loop computes the same; `codegen` prints the loop.
"""

from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class Loop:
    """The loop that computes what a Function does.

    Attributes:
        routine: name of a C routine in `codegen/templates/loops.c.in`.
        sizes: its first arguments, constants.
        tables: its next arguments, constant arrays of integers.
        inputs: number of the Function's inputs, the next arguments.
        outputs: number of entries of each of its outputs, the next arguments.
        work: entries of the memory that it needs, its last argument; 0 for none.
    """

    routine: str
    sizes: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    inputs: int
    outputs: tuple[int, ...]
    work: int = 0


LOOPS: dict[str, Loop] = {}
"""The loops by name of the Function; names differ where loops do."""

SIDE_BY_SIDE: dict[str, tuple[ca.Function, int]] = {}
"""Functions that do what a scalar one does for so many sets of numbers, by name: the scalar one."""
