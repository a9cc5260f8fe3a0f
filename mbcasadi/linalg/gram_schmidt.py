"""Orthonormal rows in their given order, by Gram-Schmidt in two passes, or in one.

A row that depends on earlier ones is dropped. Structural zeros of `SX` are never multiplied:
rows that touch different joints cost nothing against each other.

One pass of the modified method loses orthogonality like 1e-16 over the shortest relative
remainder that is kept, two passes keep it to rounding whatever is kept.
"""

from typing import Generic, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.linalg.symbols import Sym


class OrderedFactor(NamedTuple, Generic[Sym]):
    """`Aᵀ = V R` up to dropped remainders, with `R` upper triangular.

    Fields: `V` (n, m) orthonormal or zero columns; `R` (m, m); `kept` (m,) flags.
    """

    V: Sym
    R: Sym
    kept: Sym


def operations(pattern: ca.Sparsity) -> int:
    """Return about how many operations `factor` takes on a matrix with this pattern."""
    filled: list[NDArray[np.bool_]] = []
    count = 0
    for row in np.array(ca.DM(pattern, 1), dtype=bool):
        fill = row.copy()
        for _ in range(2):
            overlapping = [v for v in filled if np.any(v & fill)]
            count += sum(4 * int(v.sum()) for v in overlapping)
            for v in overlapping:
                fill |= v
        filled.append(fill)
        count += 3 * int(fill.sum())
    return count


def normalize(w: Sym, threshold2: Sym) -> tuple[Sym, Sym, Sym]:
    """Return `(w / |w|, |w|, 1)`, or zeros where `|w|²` is not above the threshold."""
    size2 = ca.sumsqr(w)
    kept = size2 > threshold2
    size = ca.sqrt(ca.if_else(kept, size2, 1))
    return w * (kept / size), kept * size, kept


def factor(A: ca.SX, threshold2: ca.SX, *, passes: int = 2) -> OrderedFactor[ca.SX]:
    """Factor `A` (m, n), unrolled.

    Args:
        A: (m, n) matrix; its structural zeros are used.
        threshold2: (m,) a row is dropped when its squared remainder is not above this.
        passes: 1, one pass of the modified method; 2, two of the classical one.
    """
    m, n = A.shape
    V, R, flags = ca.SX(n, 0), ca.SX(m, m), [ca.SX(0, 1)]
    project = _modified_pass if passes == 1 else _two_classical_passes
    for i in range(m):
        w, R[:i, i] = project(V, A[i, :].T)
        v, size, kept = normalize(w, threshold2[i])
        R[i, i] = size
        V = ca.horzcat(V, v)
        flags.append(kept)
    return OrderedFactor(V, R, ca.vertcat(*flags))


def _modified_pass(V: ca.SX, w: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the remainder of w beside the columns of V, and its coordinates along them."""
    coordinates = [ca.SX(0, 1)]
    for v in ca.horzsplit(V):
        along = v.T @ w
        w = w - v @ along
        coordinates.append(along)
    return w, ca.vertcat(*coordinates)


def _two_classical_passes(V: ca.SX, w: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the same as `_modified_pass`, orthogonal to rounding however short the remainder."""
    first = V.T @ w
    w = w - V @ first
    second = V.T @ w
    return w - V @ second, first + second


def factor_in_loop(A: ca.MX, threshold2: ca.MX) -> OrderedFactor[ca.MX]:
    """Factor as `factor` does, with one row in a loop: short code for large matrices."""
    m, n = A.shape
    loop = _step_fun(m, n).mapaccum("gram_schmidt_loop", m, 1)
    V_all, R, kept_all = loop(ca.MX.zeros(n, m), A.T, ca.DM.eye(m), threshold2.T)
    return OrderedFactor(
        V_all[:, -m:], ca.triu(R), kept_all.T
    )  # what is below the diagonal is zero


def factor_in_calls(A: ca.MX, threshold2: ca.MX) -> OrderedFactor[ca.MX]:
    """Factor as `factor_in_loop` does, with less memory and longer code."""
    m, n = A.shape
    step, V = _step_fun(m, n), ca.MX.zeros(n, m)
    columns, flags = [], []
    for i in range(m):
        V, column, kept = step(V, A[i, :].T, ca.DM.eye(m)[:, i], threshold2[i])
        columns.append(column)
        flags.append(kept)
    return OrderedFactor(V, ca.triu(ca.horzcat(*columns)), ca.vertcat(*flags))


def _step_fun(m: int, n: int) -> ca.Function:
    """Return (V, a, place, threshold2) → (V_next, column of R, kept) for a row a of m."""
    V, a = ca.MX.sym("V", n, m), ca.MX.sym("a", n)
    place, limit = ca.MX.sym("place", m), ca.MX.sym("threshold2")
    first = V.T @ a
    w = a - V @ first
    second = V.T @ w
    v, size, kept = normalize(w - V @ second, limit)
    return ca.Function(
        "gram_schmidt_step",
        [V, a, place, limit],
        [V + v @ place.T, first + second + size * place, kept],
        ["V", "a", "place", "threshold2"],
        ["V_next", "column", "kept"],
    )
