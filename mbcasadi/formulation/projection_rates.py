"""Time derivative of the projector, which the formulations of A05 and A16 share.

`Λ = -A⁺ Ȧ` holds all of it: `Ṗ = Λ P + P Λᵀ` and `P Λ = 0`. On the manifold (`A v = 0`)
`Ṗ v = Λ v = Ω v = -A⁺ Ȧ v`; off it the three differ.
"""

from mbcasadi.linalg import Sym


def path_rate(A_pinv: Sym, Adot: Sym) -> Sym:
    """Return `Λ = -A⁺ Ȧ`  [A16, eq. 4]; `P Λ = 0` since `P A⁺ = 0`  [A16, eq. 5].

    Args:
        A_pinv: (nv, nc) pseudo-inverse of the constraint Jacobian.
        Adot: (nc, nv) its time derivative.
    """
    return -A_pinv @ Adot


def projector_rate(P: Sym, Lambda: Sym) -> Sym:
    """Return `Ṗ = Λ P + P Λᵀ`  [A16, eq. 4, 34]; it is the matrix `C` of [A05, eq. 13-14].

    It holds wherever the rank of A is locally constant. The second term is the transpose of
    the first, so Ṗ is symmetric.

    Args:
        P: (nv, nv) projector on null(A).
        Lambda: (nv, nv) `path_rate`.
    """
    turning = Lambda @ P
    return turning + turning.T


def turning_rate(Lambda: Sym) -> Sym:
    """Return `Ω = Λ - Λᵀ`, skew: how fast null(A) turns  [A16, section 4.1].

    `Ω v = Λ v` for admissible v only, where `Λᵀ v = 0`  [A16, before eq. 27, corrected].
    """
    return Lambda - Lambda.T
