"""Covariances of filters: symmetric matrices as lower triangles, or as roots `P = L Lᵀ`.

A triangle, column by column, cannot lose its symmetry, and expressions of the upper one are never
evaluated. A root is never indefinite, in float as in double. Rank-deficient roots are the usual
case on a constraint manifold; nothing here divides by L.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.tolerance import marked

Array = NDArray[np.float64]


def packed_size(n: int) -> int:
    """Return the number of entries of the lower triangle of an (n, n) matrix."""
    return n * (n + 1) // 2


def packed(P: ca.SX) -> ca.SX:
    """Return the lower triangle (n (n + 1) / 2,) of P (n, n), column by column."""
    n = P.shape[0]
    return ca.vertcat(*(ca.densify(P[j:, j]) for j in range(n)))


def unpacked(entries: ca.SX, n: int) -> ca.SX:
    """Return the symmetric (n, n) matrix of its lower triangle."""
    P, place = ca.SX(n, n), 0
    for j in range(n):
        P[j:, j] = entries[place : place + n - j]
        P[j, j:] = P[j:, j].T
        place += n - j
    return P


def mirrored(P: ca.SX) -> ca.SX:
    """Return the symmetric matrix with the lower triangle of P."""
    lower = ca.densify(ca.tril(P))
    return lower + lower.T - ca.diag(ca.diag(lower))


def congruence(F: ca.SX, P: ca.SX) -> ca.SX:
    """Return `F P Fᵀ` of a symmetric P, with zeros of F left out."""
    return mirrored((F @ P) @ F.T)


def cholesky(S: ca.SX) -> ca.SX:
    """Return the lower L with `L Lᵀ = S`, S (n, n) positive definite, unrolled."""
    n = S.shape[0]
    L = ca.SX(n, n)
    for j in range(n):
        rest = S[j:, j] - L[j:, :j] @ L[j, :j].T
        L[j:, j] = rest / ca.sqrt(ca.fmax(rest[0], LEAST_SQUARE))
    return L


LEAST_SQUARE = marked(1e-290, 1e-35)
"""A squared length or a pivot below it counts as zero: its reciprocal would not be finite."""


def forward(L: ca.SX, b: ca.SX) -> ca.SX:
    """Return `L⁻¹ b` of a lower L (n, n) and b (n, m)."""
    n = L.shape[0]
    x = ca.SX(n, b.shape[1])
    for i in range(n):
        x[i, :] = (b[i, :] - L[i, :i] @ x[:i, :]) / L[i, i]
    return x


def backward(L: ca.SX, b: ca.SX) -> ca.SX:
    """Return `L⁻ᵀ b` of a lower L (n, n) and b (n, m)."""
    n = L.shape[0]
    x = ca.SX(n, b.shape[1])
    for i in reversed(range(n)):
        x[i, :] = (b[i, :] - L[i + 1 :, i].T @ x[i + 1 :, :]) / L[i, i]
    return x


LOG_TWO_PI = float(np.log(2 * np.pi))


def log_density(square: ca.SX, L: ca.SX) -> ca.SX:
    """Return `-½ (d² + ln det 2π L Lᵀ)`, a Gaussian's log-density.

    Args:
        square: d², of the innovation in standard deviations.
        L: (m, m) lower root of its covariance.
    """
    return -square / 2 - ca.sum1(ca.log(ca.diag(L))) - L.shape[0] * LOG_TWO_PI / 2


def shares_within(variances: ca.SX, largest: Array) -> ca.SX:
    """Return D (n,), at most 1, by which errors are scaled to deviations of at most `largest`."""
    return ca.fmin(1, ca.DM(largest) / ca.sqrt(ca.fmax(variances, LEAST_SQUARE)))


class Correction(NamedTuple):
    """A measurement of one sensor, in the filter.

    Attributes:
        L: (n, n) root of the covariance after it.
        step: (n,) what it adds to the error's estimate.
        distance: of the innovation, in standard deviations.
        used: whether it was used.
        likelihood: log-density of the innovation; if it is rejected, as if it were at its gate.
    """

    L: ca.SX
    step: ca.SX
    distance: ca.SX
    used: ca.SX
    likelihood: ca.SX


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
    likelihood = valid * log_density(ca.fmin(distance2, limit2), C)
    return Correction(L, step, ca.sqrt(distance2) * valid, used, likelihood)
