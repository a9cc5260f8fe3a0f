"""A strictly convex QP as a least-distance problem.

    min ½ yᵀ H y + gᵀ y,  lower <= A_y y <= upper     becomes     min ½ xᵀ x,  lba <= A_qp x <= uba

by `x = L y + L⁻ᵀ g` with `H = Lᵀ L`. In x the cost is half the squared distance from the
unconstrained optimum. Solvers divide the rows by their lengths themselves.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi import linalg
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.linalg.scalars import in_scalars


class Whitened(NamedTuple):
    """`y = y_0 + (L_inv x_1, x_2 / √free)`, `H = Lᵀ L`.

    Attributes:
        y_0: (n,) the unconstrained optimum.
        L_inv: (k, k) lower triangular, for the first k unknowns.
        free: Hessian of each of the others, which nothing couples.
        distance: length of x between y = 0 and y_0: the scale of rounding errors in x.
    """

    y_0: ca.SX
    L_inv: ca.SX
    free: float
    distance: ca.SX

    def unknown(self, x: ca.SX) -> ca.SX:
        """Return y (n,)."""
        k = self.L_inv.shape[0]
        first = linalg.product(self.L_inv, x[:k, 0])
        return self.y_0 + ca.vertcat(first, self.free**-0.5 * x[k:, 0])

    def gradient(self, by_y: ca.SX) -> ca.SX:
        """Return a gradient (n,) by x."""
        k = self.L_inv.shape[0]
        first = linalg.product(self.L_inv.T, by_y[:k, 0])
        return ca.vertcat(first, self.free**-0.5 * by_y[k:, 0])


class LeastDistance(NamedTuple):
    """`min ½ xᵀ x, lba <= A_qp x <= uba`."""

    A_qp: ca.SX
    lba: ca.SX
    uba: ca.SX


def whiten(H: ca.SX, g: ca.SX, free: float) -> Whitened:
    """Return the substitution that makes the Hessian `diagcat(H, free I)` the identity.

    Args:
        H: (k, k) symmetric positive definite; only its lower triangle is read.
        g: (n,) gradient.
        free: positive.
    """
    k = H.shape[0]
    L_inv, root = linalg.inverse_factor(H), free**0.5
    half = ca.vertcat(linalg.product(L_inv.T, g[:k, 0]), g[k:, 0] / root)
    y_0 = ca.vertcat(linalg.product(L_inv, half[:k, 0]), half[k:, 0] / root)
    return Whitened(-y_0, L_inv, free, ca.norm_2(half))


def shift_bounds(bounds: ca.SX, by: ca.SX) -> ca.SX:
    """Return `bounds - by`, keeping ±UNBOUNDED."""
    shifted: ca.SX = in_scalars("shift", _shifted, {"bounds": bounds, "by": by})[0]
    return shifted


def _shifted(given: dict[str, ca.SX]) -> list[ca.SX]:
    bounds, by = given["bounds"], given["by"]
    return [ca.vertcat(ca.SX(0, 1), *(_less(bounds[i], by[i]) for i in range(by.numel())))]


def _less(bound: ca.SX, by: ca.SX) -> ca.SX:
    if bound.is_constant():
        return bound if is_unbounded(bound) else bound - by
    return ca.if_else(ca.fabs(bound) < UNBOUNDED, bound - by, bound)


def is_unbounded(bound: ca.SX) -> bool:
    """Whether a scalar is the constant ±UNBOUNDED."""
    return bool(bound.is_constant()) and abs(float(bound)) >= UNBOUNDED
