"""Symmetric matrices of a filter: stored as their lower triangle, column by column.

What is stored once cannot lose its symmetry. Expressions of the upper triangle are never evaluated.
"""

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


def shares_within(variances: ca.SX, largest: Array) -> ca.SX:
    """Return D (n,), at most 1, by which errors are scaled to deviations of at most `largest`."""
    return ca.fmin(1, ca.DM(largest) / ca.sqrt(ca.fmax(variances, LEAST_SQUARE)))
