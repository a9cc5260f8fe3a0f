"""Orthonormal rows by Householder reflections, the largest remainder first.

`A Q = W`, where `Q` is orthogonal and `W` is lower trapezoidal up to the order of its rows.
Row exchanges are products with one-hot vectors: the sequence of operations does not depend
on the data, so the generated C has no branches.
"""

from typing import Generic, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.linalg.symbols import Sym


class PivotedFactor(NamedTuple, Generic[Sym]):
    """`Aᵀ = V R` up to dropped remainders; `[V, Z]` are the leading columns of Q.

    Fields: `Q` (n, columns) leading orthonormal columns; `R` (k, m), `k = min(m, n)`, with zero
    rows from the rank on; `used` (k, 1) one where the row of `R` is in use; `kept` (m, 1) one
    where the row of `A` is kept.
    """

    Q: Sym
    R: Sym
    used: Sym
    kept: Sym


def operations(m: int, n: int) -> int:
    """Return about how many operations `factor` takes on (m, n) for `min(m, n)` columns."""
    k_max = min(m, n)
    return sum(4 * (n - k) * (2 * m + k_max - k) for k in range(k_max))


def one_hot(score: Sym) -> Sym:
    """Return a vector that is one at the (first) largest positive score, else zero."""
    largest = ca.logic_and(score >= ca.mmax(score), score > 0)
    taken = type(score)(0)
    flags = []
    for i in range(score.shape[0]):
        flag = largest[i] * (1 - taken)
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


def factor(A: ca.SX, threshold2: ca.SX, columns: int) -> PivotedFactor[ca.SX]:
    """Factor `A` (m, n), unrolled.

    Args:
        A: (m, n) matrix.
        threshold2: (m, 1) a row is dropped when its squared remainder is not above this.
        columns: number of columns of Q to return, `min(m, n)` or `n`.
    """
    m, n = A.shape
    k_max = min(m, n)
    W = ca.SX(A)
    kept = ca.SX.zeros(m)
    used, reflectors, rows = [ca.SX(0, 1)], [], [ca.SX(0, m)]
    for k in range(k_max):
        tail = W[:, k:]
        e = one_hot(open_scores(ca.densify(ca.sum2(tail**2)), threshold2, kept))
        head = ca.SX(ca.DM.eye(n - k)[:, 0])
        u, beta = reflector((e.T @ tail).T, head, ca.sum1(e))
        W[:, k:] = tail - (tail @ u) @ (beta * u).T
        # a row chosen before has nothing but rounding errors in this column
        rows.append((ca.sum1(e) * (1 - kept) * W[:, k]).T)
        used.append(ca.sum1(e))
        reflectors.append((u, beta))
        kept = kept + e
    Q = ca.SX.eye(n)[:, :columns]
    for k in reversed(range(k_max)):
        u, beta = reflectors[k]
        Q[k:, k:] = Q[k:, k:] - (beta * u) @ (u.T @ Q[k:, k:])
    return PivotedFactor(Q, ca.vertcat(*rows), ca.vertcat(*used), kept)


def factor_in_loop(A: ca.MX, threshold2: ca.MX, columns: int) -> PivotedFactor[ca.MX]:
    """Factor as `factor` does, with one step in a loop: short code for large matrices."""
    m, n = A.shape
    k_max = min(m, n)
    loop = _step_fun(m, n).mapaccum("row_basis_loop", k_max, 2)
    heads = ca.DM.eye(n)[:, :k_max]
    tails = ca.DM(np.tri(n)[:, :k_max])
    thresholds = ca.repmat(threshold2, 1, k_max)
    out = loop(ca.densify(A), ca.MX.zeros(m), heads, tails, thresholds)
    _, kept, R_columns, used, u, beta = out
    back = _reflect_fun(n, columns).fold(k_max)
    last_first = list(reversed(range(k_max)))
    Q = back(ca.DM(np.eye(n, columns)), u[:, last_first], beta[:, last_first])
    return PivotedFactor(Q, R_columns.T, used.T, kept[:, -1])


def _step_fun(m: int, n: int) -> ca.Function:
    """Return one step: (W, kept, head, tail, threshold2) → (W, kept, row of R, used, u, beta)."""
    W, kept, threshold2 = ca.MX.sym("W", m, n), ca.MX.sym("kept", m), ca.MX.sym("threshold2", m)
    head, tail = ca.MX.sym("head", n), ca.MX.sym("tail", n)
    scores = ca.SX.sym("scores", m)
    choose = ca.Function("choose_row", [scores], [one_hot(scores)])
    e = choose(open_scores((W**2) @ tail, threshold2, kept))
    used = ca.sum1(e)
    u, beta = reflector((W.T @ e) * tail, head, used)
    W_next = W - (W @ u) @ (beta * u).T
    row = used * (1 - kept) * (W_next @ head)
    return ca.Function(
        "row_basis_step",
        [W, kept, head, tail, threshold2],
        [W_next, kept + e, row, used, u, beta],
        ["W", "kept", "head", "tail", "threshold2"],
        ["W_next", "kept_next", "row", "used", "u", "beta"],
    )


def _reflect_fun(n: int, columns: int) -> ca.Function:
    """Return one reflection, (Q, u, beta) → (Q - beta u uᵀ Q)."""
    Q, u, beta = ca.MX.sym("Q", n, columns), ca.MX.sym("u", n), ca.MX.sym("beta")
    return ca.Function("reflect", [Q, u, beta], [Q - (beta * u) @ (u.T @ Q)])
