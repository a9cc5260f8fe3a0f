"""Verdicts of a law on its own numbers: what is attained, and what is definite."""

import casadi as ca

from mbcasadi.description.tolerance import tolerance

ATTAIN_TOL = tolerance(1e-6)
"""Share of a desired force or acceleration that may be missing before a law reports it as
unattainable. The gaps of a plant's soft loops are smaller."""


DEFINITE_TOL = tolerance(1e-12)
"""Share of a diagonal entry that elimination must leave for a matrix to count as definite. A
singular one leaves some 1e-15 by rounding."""


def attainable(missing: ca.SX, *desired: ca.SX) -> ca.SX:
    """Return whether the missing part is small relative to the desired values, `ATTAIN_TOL`.

    Args:
        missing: (k,) what is left of the desired value.
        desired: (k,) each: that value, and what it is the difference of, so that rounding of a
            value that cancels counts as none.
    """
    size2 = sum((ca.sumsqr(value) for value in desired), ca.SX(0))
    return ca.sumsqr(missing) <= ATTAIN_TOL**2 * size2


def is_definite(L: ca.SX, diagonal: ca.SX) -> ca.SX:
    """Return whether a symmetric matrix is positive definite, NaN included in "no".

    `L_kk²` is what elimination leaves of the entry k of the diagonal.

    Args:
        L: (n, n) `tree_cholesky` of the matrix.
        diagonal: (n, 1) of the matrix.
    """
    definite = ca.SX(1)
    for k in range(L.shape[0]):
        pivot, entry = L[k, k], diagonal[k]
        enough = ca.logic_and(entry > 0, pivot**2 > DEFINITE_TOL * entry)
        definite = ca.logic_and(definite, enough)
    return definite
