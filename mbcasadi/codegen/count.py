"""Operation counts of Functions, and the size of an export."""

from dataclasses import dataclass

import casadi as ca

from mbcasadi.codegen.compiler import BuildResult
from mbcasadi.short_text import summarised


@summarised
@dataclass(frozen=True)
class Size:
    """Size of an export, and cost of its compilation.

    Attributes:
        operations: scalar operations of one tick, without the QP solver.
        largest_function: operations of the largest single C function.
        lines: lines of generated C.
        memory_bytes: memory of one controller.
        library_bytes: size of the shared library.
        build: of the library; its `seconds` and `peak_bytes` are 0 where it was up to date.
    """

    operations: int
    largest_function: int
    lines: int
    memory_bytes: int
    library_bytes: int
    build: BuildResult


def operations(function: ca.Function) -> int:
    """Return the scalar operations of one call, nested Functions counted at every call.

    A matrix operation counts as many operations as its result has entries.
    """
    if function.is_a("SXFunction"):
        return int(function.n_instructions())
    if function.is_a("MXFunction"):
        return sum(_instruction_size(function, k) for k in range(function.n_instructions()))
    repeats = int(function.info().get("n", 1)) if function.is_a("Map") else 1
    return repeats * sum(operations(f) for f in function.find_functions(0))


def largest_body(function: ca.Function) -> int:
    """Return the operations of the largest single C function body."""
    bodies = [function, *function.find_functions()]
    return max((int(f.n_instructions()) for f in bodies if _has_body(f)), default=0)


def _has_body(function: ca.Function) -> bool:
    return bool(function.is_a("SXFunction") or function.is_a("MXFunction"))


def _instruction_size(function: ca.Function, k: int) -> int:
    kind = function.instruction_id(k)
    if kind in (ca.OP_INPUT, ca.OP_OUTPUT):
        return 0
    node = function.instruction_MX(k)
    return operations(node.which_function()) if kind == ca.OP_CALL else max(1, int(node.nnz()))
