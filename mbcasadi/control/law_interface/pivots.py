"""The choice of coordinates that determine a motion, the same whatever rounding says."""

import numpy as np

from mbcasadi.control.law_interface.law import Array

TIE = 1e-6
"""Relative difference of two remainders that counts as none; the first of the coordinates is taken
then. Those of a symmetric mechanism differ by rounding."""


def leading_rows(Z: Array) -> list[int]:
    """Return the indices of k rows of Z (n, k) that are the most independent, in their order.

    Pivots of a QR factorisation of Zᵀ, ties broken by order.
    """
    remainder = np.array(Z, dtype=float)
    chosen: list[int] = []
    for _ in range(Z.shape[1]):
        length = np.linalg.norm(remainder, axis=1)
        length[chosen] = -1.0
        best = int(np.flatnonzero(length >= (1 - TIE) * length.max())[0])
        direction = remainder[best] / max(length[best], np.finfo(float).tiny)
        remainder = remainder - np.outer(remainder @ direction, direction)
        chosen.append(best)
    return sorted(chosen)
