"""Orthonormal rows by Householder reflections, the largest remainder first.

`A Q = W`, where `Q` is orthogonal and `W` is lower trapezoidal up to the order of its rows.
Row exchanges are products with one-hot vectors: the sequence of operations does not depend
on the data, so the generated C has no branches.
"""

from typing import Generic, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.linalg.symbols import Sym


class Pivoted(NamedTuple, Generic[Sym]):
    """`Aᵀ = Q[:, :k] R` up to dropped remainders, `k = min(m, n)`.

    Fields: `Q` (n, n) orthogonal; `R` (k, m) with zero rows from the rank on; `used` (k,) one
    where the row of `R` is in use; `kept` (m,) one where the row of `A` is kept.
    """

    Q: Sym
    R: Sym
    used: Sym
    kept: Sym


def operations(m: int, n: int) -> int:
    """Return about how many operations `factor` takes for a dense (m, n) matrix."""
    steps = range(min(m, n))
    return sum(8 * m * (n - k) + 4 * (n - k) * (n - k) for k in steps)


def one_hot(score: Sym) -> Sym:
    """Return a vector that is one at the (first) largest positive score, else zero."""
    largest = ca.mmax(score)
    taken = type(score)(0)
    flags = []
    for i in range(score.shape[0]):
        flag = ca.logic_and(score[i] >= largest, score[i] > 0) * (1 - taken)
        taken = taken + flag
        flags.append(flag)
    return ca.vertcat(*flags)


def open_scores(remainder2: Sym, threshold2: Sym, kept: Sym) -> Sym:
    """Return the squared remainders of the rows that may still be chosen, else zero."""
    return ca.if_else(ca.logic_and(remainder2 > threshold2, kept < 1), remainder2, 0)


def reflector(x: Sym, head: Sym, used: Sym) -> tuple[Sym, Sym]:
    """Return `(u, beta)` so that `x - beta u (uᵀ x)` has only the entry marked by `head`.

    Unused reflectors have `beta = 0`; arguments of roots and divisions are guarded there, so
    that derivatives stay finite.
    """
    size2 = ca.if_else(used > 0, ca.sumsqr(x), 1)
    size = ca.sqrt(size2)
    x_head = ca.dot(head, x)
    signed_size = ca.if_else(x_head < 0, -size, size)
    # not size * |x_head|: the derivative of |x| at zero would be that of neither sign
    return x + signed_size * head, used / (size2 + signed_size * x_head)


def factor(A: ca.SX, threshold2: ca.SX) -> Pivoted[ca.SX]:
    """Factor `A` (m, n), every step written out.

    Args:
        A: (m, n) matrix.
        threshold2: (m,) a row is dropped when its squared remainder is not above this.
    """
    m, n = A.shape
    k_max = min(m, n)
    W = ca.SX(A)
    kept = ca.SX.zeros(m)
    used, reflectors, open_rows = [], [], []
    for k in range(k_max):
        tail = W[:, k:]
        e = one_hot(open_scores(ca.densify(ca.sum2(tail**2)), threshold2, kept))
        head = ca.SX(ca.DM.eye(n - k)[:, 0])
        u, beta = reflector((e.T @ tail).T, head, ca.sum1(e))
        W[:, k:] = tail - (tail @ u) @ (beta * u).T
        # a chosen row has nothing but rounding errors behind its own column
        open_rows.append(1 - kept)
        used.append(ca.sum1(e))
        reflectors.append((u, beta))
        kept = kept + e
    Q = ca.SX.eye(n)
    for k in reversed(range(k_max)):
        u, beta = reflectors[k]
        Q[k:, k:] = Q[k:, k:] - (beta * u) @ (u.T @ Q[k:, k:])
    rows = [(used[k] * open_rows[k] * W[:, k]).T for k in range(k_max)]
    R = ca.vertcat(*rows) if rows else ca.SX(0, m)
    return Pivoted(Q, R, ca.vertcat(ca.SX(0, 1), *used), kept)


def factor_rolled(A: ca.MX, threshold2: ca.MX) -> Pivoted[ca.MX]:
    """Factor as `factor` does, with one step in a loop: short code for large matrices."""
    m, n = A.shape
    k_max = min(m, n)
    loop = _step_fun(m, n).mapaccum("row_basis_loop", k_max, 3)
    heads = ca.DM.eye(n)[:, :k_max]
    tails = ca.DM(np.tri(n)[:, :k_max])
    thresholds = ca.repmat(threshold2, 1, k_max)
    out = loop(ca.densify(A), ca.densify(ca.MX.eye(n)), ca.MX.zeros(m), heads, tails, thresholds)
    _, Q, kept, columns, used = out
    return Pivoted(Q[:, -n:], columns.T, used.T, kept[:, -1])


def _step_fun(m: int, n: int) -> ca.Function:
    """Return one step: (W, Q, kept, head, tail, threshold2) → (W, Q, kept, column of W, used)."""
    W, Q = ca.MX.sym("W", m, n), ca.MX.sym("Q", n, n)
    kept, threshold2 = ca.MX.sym("kept", m), ca.MX.sym("threshold2", m)
    head, tail = ca.MX.sym("head", n), ca.MX.sym("tail", n)
    remainder2 = ca.SX.sym("remainder2", m)
    choose = ca.Function("choose_row", [remainder2], [one_hot(remainder2)])
    e = choose(open_scores((W**2) @ tail, threshold2, kept))
    used = ca.sum1(e)
    u, beta = reflector((W.T @ e) * tail, head, used)
    W_next = W - (W @ u) @ (beta * u).T
    Q_next = Q - (Q @ u) @ (beta * u).T
    column = used * (1 - kept) * (W_next @ head)
    return ca.Function(
        "row_basis_step",
        [W, Q, kept, head, tail, threshold2],
        [W_next, Q_next, kept + e, column, used],
        ["W", "Q", "kept", "head", "tail", "threshold2"],
        ["W_next", "Q_next", "kept_next", "column", "used"],
    )
