"""Products and factors of scalars (`SX`, straight-line C) or of matrices (`MX`, loops in C)."""

from collections.abc import Callable
from typing import Any

import casadi as ca

from mbcasadi.linalg import loops
from mbcasadi.linalg.symbols import Sym
from mbcasadi.linalg.tree_factor import tree_cholesky, tree_solve_lower


def product(A: Sym, B: Sym) -> Sym:
    """Return `A @ B`, in C with structural zeros left out."""
    if isinstance(A, ca.MX) or isinstance(B, ca.MX):
        return loops.product(ca.MX(A), ca.MX(B))
    return A @ B


def weighted_gram(E: Sym, weight: ca.DM, shift: ca.DM | None = None) -> Sym:
    """Return `E diag(weight) Eᵀ + diag(shift)` (n, n), at least its lower triangle.

    Args:
        E: (n, k).
        weight: (k,), not negative.
        shift: (n,); none by default.
    """
    diagonal = ca.DM.zeros(E.shape[0]) if shift is None else shift
    if isinstance(E, ca.MX):
        return loops.gram(E, ca.MX(weight), ca.MX(diagonal))
    scaled = E @ ca.diag(ca.sqrt(weight))
    return ca.tril(scaled @ scaled.T) + ca.diag(diagonal)


def inverse_factor(H: Sym) -> Sym:
    """Return the lower triangular `L⁻¹` (n, n) with `H = Lᵀ L`.

    Args:
        H: (n, n) symmetric positive definite; only its lower triangle is read.
    """
    if isinstance(H, ca.MX):
        return loops.inverse_factor(H)
    return tree_solve_lower(tree_cholesky(H), type(H).eye(H.shape[0]))


def fused(function: Callable[..., Sym], *arguments: Sym) -> Sym:
    """Return `function(*arguments)`: of matrices as one Function of scalars.

    CasADi would write a loop for each operation on a matrix, with its result in memory.

    Args:
        function: of scalar expressions, with one result.
        arguments: the expressions.
    """
    if not any(isinstance(argument, ca.MX) for argument in arguments):
        return function(*arguments)
    symbols: list[Any] = [
        ca.SX.sym(f"x{i}", argument.sparsity()) for i, argument in enumerate(arguments)
    ]
    options = {"cse": True, "never_inline": True}
    whole = ca.Function("fused", symbols, [function(*symbols)], options)
    result: Sym = whole(*arguments)
    return result
