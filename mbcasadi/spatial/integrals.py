"""Integrals of a rotation over its vector, without branches that lose digits at small angles.

Γ_m(φ) = Σ_k [φ]×^k / (k + m)!      Γ_0 = Exp,  Γ_1 = J_l,  Γ_2      [Bloesch et al. 2013]
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.spatial.quaternions import SERIES_BELOW


class Integrals(NamedTuple):
    """Γ_1 and Γ_2 (3, 3) of a rotation vector."""

    first: ca.SX
    second: ca.SX


def integrals(phi: ca.SX) -> Integrals:
    """Return Γ_1 and Γ_2 of a rotation vector (3,), rad; series where the angle is small."""
    square = ca.sumsqr(phi)
    small = square < SERIES_BELOW
    s = ca.if_else(small, 1.0, square)
    angle = ca.sqrt(s)
    cos, sin = ca.cos(angle), ca.sin(angle)
    half = _chosen(square, (1 - cos) / s, 1 / 2, -1 / 24, 1 / 720, -1 / 40320)
    sixth = _chosen(square, (angle - sin) / (s * angle), 1 / 6, -1 / 120, 1 / 5040, -1 / 362880)
    fourth = _chosen(square, (s / 2 - 1 + cos) / (s * s), 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800)
    K = ca.skew(phi)
    K2 = phi @ phi.T - square * ca.SX.eye(3)
    return Integrals(
        ca.SX.eye(3) + half * K + sixth * K2, ca.SX.eye(3) / 2 + sixth * K + fourth * K2
    )


def inverse_of_first(phi: ca.SX) -> ca.SX:
    """Return `Γ_1⁻¹ = I - [φ]×/2 + k [φ]×²`, `k = (1 - ½ |φ| cot ½ |φ|) / |φ|²`, `|φ| < 2 π`."""
    square = ca.sumsqr(phi)
    half = ca.sqrt(ca.if_else(square < SERIES_BELOW, 1.0, square)) / 2
    closed = (1 - half * ca.cos(half) / ca.sin(half)) / (4 * half**2)
    k = _chosen(square, closed, 1 / 12, 1 / 720, 1 / 30240, 1 / 1209600)
    K2 = phi @ phi.T - square * ca.SX.eye(3)
    return ca.SX.eye(3) - ca.skew(phi) / 2 + k * K2


def _chosen(square: ca.SX, closed: ca.SX, *terms: float) -> ca.SX:
    """Return the closed form, or the series in the squared angle where that is small."""
    series = ca.SX(0)
    for term in reversed(terms):
        series = term + square * series
    return ca.if_else(square < SERIES_BELOW, series, closed)
