"""A strictly convex QP as a least-distance problem.

    min ½ yᵀ H y + gᵀ y,  lower <= A_y y <= upper     becomes     min ½ xᵀ x,  lba <= A_qp x <= uba

by `x = L y + L⁻ᵀ g` with `H = Lᵀ L`. In x the cost is half the squared distance from the
unconstrained optimum. Solvers divide the rows by their lengths themselves.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi import linalg
from mbcasadi.description.qp_stages import UNBOUNDED


class Whitened(NamedTuple):
    """`y = y_0 + L_inv x`, `H = Lᵀ L`.

    Attributes:
        y_0: (n,) the unconstrained optimum, `-H⁻¹ g`.
        L_inv: (n, n) lower triangular.
        distance: length of `L⁻ᵀ g`: the scale of rounding errors in x.
    """

    y_0: ca.SX
    L_inv: ca.SX
    distance: ca.SX


class LeastDistance(NamedTuple):
    """`min ½ xᵀ x, lba <= A_qp x <= uba`."""

    A_qp: ca.SX
    lba: ca.SX
    uba: ca.SX


def whiten(H: ca.SX, g: ca.SX) -> Whitened:
    """Return the substitution that makes the Hessian the identity.

    Args:
        H: (n, n) symmetric positive definite; only its lower triangle is read.
        g: (n,) gradient.
    """
    L = linalg.tree_cholesky(H)
    half = linalg.tree_solve_transposed(L, g)
    L_inv = linalg.tree_solve_lower(L, ca.SX.eye(H.shape[0]))
    return Whitened(-linalg.tree_solve_lower(L, half), L_inv, ca.norm_2(half))


def shift_bounds(bounds: ca.SX, by: ca.SX) -> ca.SX:
    """Return `bounds - by`, keeping the constants ±UNBOUNDED."""
    shifted = (
        bounds[i] if is_unbounded(bounds[i]) else bounds[i] - by[i] for i in range(by.numel())
    )
    return ca.vertcat(ca.SX(0, 1), *shifted)


def is_unbounded(bound: ca.SX) -> bool:
    """Whether a scalar is the constant ±UNBOUNDED."""
    return bool(bound.is_constant()) and abs(float(bound)) >= UNBOUNDED
