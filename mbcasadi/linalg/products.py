"""Products and factors of scalars (`SX`, straight-line C) or of matrices (`MX`, loops in C)."""

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.linalg import loops
from mbcasadi.linalg.symbols import Sym
from mbcasadi.linalg.tree_factor import tree_cholesky, tree_solve_lower
from mbcasadi.shapes import require_rows, require_shape, require_square


@checked
def product(A: Sym, B: Sym) -> Sym:
    """Return `A @ B`, in C with structural zeros left out.

    Args:
        A: (m, k).
        B: (k, n).
    """
    require_rows("B", B, A.shape[1])
    if isinstance(A, ca.MX) or isinstance(B, ca.MX):
        return loops.product(ca.MX(A), ca.MX(B))
    return A @ B


@checked
def weighted_gram(E: Sym, weight: Sym | ca.DM, shift: Sym | ca.DM | None = None) -> Sym:
    """Return `E diag(weight) Eᵀ + diag(shift)` (n, n), at least its lower triangle.

    Args:
        E: (n, k).
        weight: (k,), not negative.
        shift: (n,); none by default.
    """
    require_shape("weight", weight, (E.shape[1], 1), "(k, 1)")
    diagonal = ca.DM.zeros(E.shape[0]) if shift is None else shift
    require_shape("shift", diagonal, (E.shape[0], 1), "(n, 1)")
    if isinstance(E, ca.MX):
        return loops.gram(E, ca.MX(weight), ca.MX(diagonal))
    scaled = E @ ca.diag(ca.sqrt(weight))
    return ca.tril(scaled @ scaled.T) + ca.diag(diagonal)


@checked
def inverse_factor(H: Sym) -> Sym:
    """Return the lower triangular `L⁻¹` (n, n) with `H = Lᵀ L`.

    Args:
        H: (n, n) symmetric positive definite; only its lower triangle is read.
    """
    require_square("H", H)
    if isinstance(H, ca.MX):
        return loops.inverse_factor(H)
    return tree_solve_lower(tree_cholesky(H), type(H).eye(H.shape[0]))
