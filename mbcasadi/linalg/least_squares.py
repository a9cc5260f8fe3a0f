"""Curvature and slope of a sum of squares, as a loop in the generated C."""

import casadi as ca
import numpy as np

from mbcasadi.linalg.loops import loop_function, padded


def least_squares(J: ca.MX, r: ca.MX) -> tuple[ca.MX, ca.MX]:
    """Return the upper triangle of `Jᵀ J`, and `Jᵀ r`.

    Args:
        J: (m, n) with the pattern of its rows.
        r: (m,) dense.
    """
    m, n = J.shape
    rows = J.T
    pattern = rows.sparsity()
    upper = ca.triu(ca.mtimes(ca.DM(pattern, 1), ca.DM(pattern, 1).T)).sparsity()
    if not upper.nnz():
        return ca.MX(upper), ca.MX.zeros(n)

    def body(a: ca.MX, b: ca.MX) -> list[ca.MX]:
        squares = ca.project(a @ a.T, upper)
        return [ca.reshape(squares.nz[:], upper.nnz(), 1), a @ b]

    start, entries = pattern.colind(), np.array(pattern.row())
    place = np.full(upper.shape, -1)
    place[upper.row(), upper.get_col()] = np.arange(upper.nnz())
    of_row = [entries[start[k] : start[k + 1]] for k in range(m)]
    pairs = [place[row[: j + 1], row[j]] for row in of_row if row.size < n for j in range(row.size)]
    f = loop_function(
        "loops_least_squares",
        [pattern, ca.Sparsity.dense(m, 1)],
        body,
        sizes=(m, n, upper.nnz()),
        tables=(start, entries.tolist() or [0], np.concatenate([[0], *pairs])[1:].tolist() or [0]),
        work=padded(n),
    )
    squares, slope = f(rows, r)
    return ca.MX(upper, squares), slope
