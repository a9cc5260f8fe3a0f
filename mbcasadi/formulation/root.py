"""Root factors of the inertia, and what is across the constraint in their coordinates.

With `M = W Wᵀ` the coordinates `v_bar = Wᵀ v` and `W⁻¹ f` have the inertia one. The rank is
decided on the rows of `A`: those of `A W⁻ᵀ` are as long as the bodies are light, and a heavy body
must not make a row look like a repeated one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

import casadi as ca

from mbcasadi.linalg import (
    RANK_TOL,
    CompleteFactor,
    Sym,
    complete_factor,
    matrix_root,
    row_basis,
    tree_cholesky,
    tree_solve_lower,
    tree_solve_transposed,
)
from mbcasadi.shapes import require_name

ROOTS = ("cholesky", "symmetric")
"""Root factors of the inertia: `W = Lᵀ` with `M = Lᵀ L`, or `W = M^{1/2}`."""


@dataclass(frozen=True)
class RootFactor(Generic[Sym]):
    """`M = W Wᵀ`  [A10, eq. 3].

    Attributes:
        W: (nv, nv).
        divide: `b → W⁻¹ b`, which turns forces into quasi-forces.
        divide_transposed: `b → W⁻ᵀ b`, which turns quasi-velocities into velocities.
    """

    W: Sym
    divide: Callable[[Sym], Sym]
    divide_transposed: Callable[[Sym], Sym]


@dataclass(frozen=True)
class ConstraintBasis(Generic[Sym]):
    """Quasi-velocities across the constraint, with `k = min(nc, nv)` (`nc` without pivoting).

    Attributes:
        factor: `A = U Tᵀ Vᵀ`.
        V1: (nv, k) orthonormal basis of range(A_Wᵀ), zero columns where V has them.
        R: (k, k) triangular and invertible, `W⁻¹ V = V1 R` on the columns in use.
    """

    factor: CompleteFactor[Sym]
    V1: Sym
    R: Sym

    def rate(self, c: Sym) -> Sym:
        """Return `V1ᵀ v̄̇ = -R⁻ᵀ Vᵀ A⁺ c`, the rate across the constraint that it requires."""
        return -ca.solve(self.R.T, self.factor.basis.V.T @ self.factor.pinv_times(c))

    def force(self, y: Sym) -> Sym:
        """Return `W V1 y = V R⁻¹ y`, a constraint force from its components along V1.

        The right-hand side stays within range(Aᵀ) to rounding, however ill conditioned M is.
        """
        return self.factor.basis.V @ ca.solve(self.R, y)


def root_factor(M: Sym, root: str = "cholesky") -> RootFactor[Sym]:
    """Return a root factor of M.

    The Cholesky factor keeps the zeros of a kinematic tree (no joint's force reaches another
    branch) and scales with the units of q: its quasi-velocities do not change at all where q is
    measured otherwise. The symmetric root treats all coordinates alike and costs far more.

    Args:
        M: (nv, nv) inertia, symmetric positive definite.
        root: "cholesky" or "symmetric".

    Raises:
        UnknownNameError: no such root; the message lists the names.
    """
    require_name("root", root, ROOTS)
    if root == "symmetric":
        both = matrix_root(M)
        return RootFactor(both.root, lambda b: both.inverse @ b, lambda b: both.inverse @ b)
    L = tree_cholesky(M)
    return RootFactor(L.T, lambda b: tree_solve_transposed(L, b), lambda b: tree_solve_lower(L, b))


def constraint_basis(
    factor: RootFactor[Sym],
    A: Sym,
    *,
    row_scale: Sym | ca.DM | float = 1.0,
    rank_tol: float = RANK_TOL,
    pivot: bool = True,
) -> ConstraintBasis[Sym]:
    """Return the orthonormal basis V1 of range(A_Wᵀ)  [A10, eq. 21, without singular values].

    `V` spans range(Aᵀ), so `W⁻¹ V` spans range(A_Wᵀ); its columns in use are independent, so
    the rank is decided once only.

    Args:
        factor: root factor of M.
        A: (nc, nv) constraint Jacobian, of any rank.
        row_scale, rank_tol, pivot: drop rule of `linalg.row_basis`.
    """
    rows = complete_factor(A, row_scale=row_scale, rank_tol=rank_tol, pivot=pivot)
    X = factor.divide(rows.basis.V)
    basis = row_basis(X.T, row_scale=0.0, rank_tol=0.0, pivot=False)
    return ConstraintBasis(rows, basis.V, basis.R + ca.diag(1 - rows.basis.used))
