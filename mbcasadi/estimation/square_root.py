"""A covariance as its root, `P = L Lᵀ`: symmetric and never indefinite, in float as in double.

Rank-deficient roots are the usual case on a constraint manifold; nothing here divides by L.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.estimation.covariance import LEAST_SQUARE, backward, cholesky, forward, mirrored


class Correction(NamedTuple):
    """A measurement of one sensor, in the filter.

    Attributes:
        L: (n, n) root of the covariance after it.
        step: (n,) what it adds to the error's estimate.
        distance: of the innovation, in standard deviations.
        used: whether it was used.
    """

    L: ca.SX
    step: ca.SX
    distance: ca.SX
    used: ca.SX


def triangular_root(W: ca.SX) -> ca.SX:
    """Return the lower L (n, n) with `L Lᵀ = W Wᵀ`, by reflections of the columns of W (n, m >= n).

    Rows may depend on each other or vanish.
    """
    n = W.shape[0]
    L, rest = ca.SX(n, n), ca.SX(W)
    for i in range(n):
        x = ca.densify(rest[0, :])
        size2 = ca.sumsqr(x)
        large = size2 > LEAST_SQUARE
        size = ca.sqrt(ca.if_else(large, size2, 1))
        signed = ca.if_else(x[0] < 0, -size, size)
        u = ca.horzcat(x[0] + signed, x[0, 1:])
        beta = ca.if_else(large, 1 / (size * (size + ca.fabs(x[0]))), 0)
        below = rest[1:, :]
        below = below - ca.densify(below @ u.T) @ (beta * u)
        L[i:, i] = ca.vertcat(ca.if_else(large, -signed, 0), below[:, 0])
        rest = below[:, 1:]
    return L


def correction(
    L: ca.SX, H: ca.SX, e: ca.SX, noise: ca.SX, accept: tuple[ca.SX, ca.SX]
) -> Correction:
    """Return the correction by `e = H ξ + noise`  [Andrews 1968], with `B = H L`, `S = C Cᵀ`.

        S = B Bᵀ + V Vᵀ,    δξ = L Bᵀ S⁻¹ e,    L ← L - L Bᵀ C⁻ᵀ (C + V)⁻¹ B

    Args:
        L: (n, n) root of the covariance.
        H: (m, n) Jacobian.
        e: (m,) innovation, finite.
        noise: (m,) standard deviations, the diagonal of V.
        accept: whether the sample is valid; the largest squared distance.
    """
    valid, limit2 = accept
    B, V = ca.densify(H @ L), ca.diag(noise)
    C = cholesky(mirrored(B @ B.T) + V @ V)
    w = forward(C, e)
    distance2 = ca.sumsqr(w)
    used = ca.logic_and(valid, distance2 <= limit2)
    K = ca.densify(L @ B.T)
    step = used * (K @ backward(C, w))
    L = L - (used * forward(C, K.T).T) @ forward(C + V, B)
    return Correction(L, step, ca.sqrt(distance2) * valid, used)
