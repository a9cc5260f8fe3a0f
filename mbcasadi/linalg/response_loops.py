"""The response of constrained motion and products with it, as loops in the generated C.

Columns of matrices that loops run along are padded with zeros to whole vectors of processors.
"""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.description.tolerance import tolerance
from mbcasadi.linalg.loops import loop_function, padded
from mbcasadi.linalg.symbols import Sym


def padded_rows(A: Sym) -> Sym:
    """Return a matrix with rows of zeros below, as the loops here take it."""
    below = type(A)(padded(A.shape[0]) - A.shape[0], A.shape[1])
    return ca.densify(ca.vertcat(A, below))


def response(B: ca.MX, U: ca.MX, rest: ca.MX, sizes: tuple[int, int]) -> tuple[ca.MX, ca.MX, ca.MX]:
    """Return K with padded rows, and its blocks `a_f` (n, n), `C` (m, n).

    `K = [a_f, Cᵀ; C, -S Sᵀ]`, `a_f = Rᵀ R + rest`, `[R; C] = B U` and S the last rows of B.

    Args:
        B: (nb + m, k) with padded rows.
        U: (k, n) sparse.
        rest: (n, n) sparse.
        sizes: nb, m.
    """
    (nb, m), n = sizes, U.shape[1]

    def body(B: ca.MX, U: ca.MX, rest: ca.MX) -> list[ca.MX]:
        of_dofs, S = B[: nb + m, :] @ U, B[nb : nb + m, :]
        a_f, C = of_dofs[:nb, :].T @ of_dofs[:nb, :] + rest, of_dofs[nb:, :]
        added = ca.MX(padded(n + m) - n - m, n + m)
        K = ca.vertcat(ca.horzcat(a_f, C.T), ca.horzcat(C, -S @ S.T), added)
        return [K, a_f, C]

    patterns = [part.sparsity() for part in (B, U, rest)]
    tables = [table for part in patterns[1:] for table in (part.colind(), part.row())]
    f = loop_function(
        "loops_response",
        patterns,
        body,
        sizes=(n, nb, m, B.shape[1], B.shape[0], padded(n), padded(n + m)),
        tables=tables,
        work=n * B.shape[0] + padded(n) * (nb + 1),
    )
    K, a_f, C = f.call([B, U, rest])
    return K, a_f, C


def constrained_response_fun(made: ca.Function, rank_tol: float) -> ca.Function:
    """Return (M, A, row_scale) → (K, a_f, lam_f, N_left) as one dense loop.

    Args:
        made: the same by other means, what Python evaluates.
        rank_tol: the drop rule that it has.
    """
    patterns = [made.sparsity_in(i) for i in range(made.n_in())]
    (m, n), limit = patterns[1].shape, ca.Sparsity.dense(1, 1)
    wide, high = padded(n), padded(m)

    def body(M: ca.MX, A: ca.MX, row_scale: ca.MX, _: ca.MX) -> list[ca.MX]:
        return list(made.call([M, A, row_scale]))

    f = loop_function(
        "loops_constrained_response",
        [*patterns, limit],
        body,
        sizes=(n, m, wide, high, padded(n + m), int(made.nnz_out("N_left") > 0)),
        tables=[table for part in patterns[:2] for table in (part.colind(), part.row())],
        work=n * wide + (n + 1) * (wide + high) + m * (2 * wide + 3 * high) + 5 * high,
    )
    given = [ca.MX.sym(made.name_in(i), pattern) for i, pattern in enumerate(patterns)]
    found = f.call([*given, ca.MX(tolerance(rank_tol) ** 2)])
    return ca.Function("response", given, found, made.name_in(), made.name_out())


def constrained_motion(
    made: ca.Function, given: Sequence[ca.MX], rank_tol: float
) -> tuple[ca.MX, ca.MX, ca.MX]:
    """Return a, `f = Aᵀ lam` and lam of a constrained motion as one dense loop.

    Args:
        made: (M, r, A, c, row_scale) → (a, f, lam) by other means, what Python evaluates.
        given: its inputs; M and A with its patterns.
        rank_tol: the drop rule that it has.
    """
    patterns = [made.sparsity_in(i) for i in range(made.n_in())]
    (m, n), limit = patterns[2].shape, ca.Sparsity.dense(1, 1)
    wide, high, both = padded(n), padded(m), padded(m + 1)

    def body(*inputs: ca.MX) -> list[ca.MX]:
        return list(made.call(inputs[:-1]))

    f = loop_function(
        "loops_constrained_motion",
        [*patterns, limit],
        body,
        sizes=(n, m, wide, high, both),
        tables=[table for i in (0, 2) for table in (patterns[i].colind(), patterns[i].row())],
        work=(n + 2 * m + 1) * wide + n * both + (3 * m + 7) * high,
    )
    a, force, lam = f.call([*given, ca.MX(tolerance(rank_tol) ** 2)])
    return a, force, lam


def slopes(K: ca.MX, rho: ca.MX, nv: int) -> tuple[ca.MX, ca.MX]:
    """Return the first nv and the other rows of `K rho`.

    Args:
        K: (n, n) with padded rows.
        rho: (n, k) sparse.
        nv: number of rows of the first part.
    """
    n, k = K.shape[1], rho.shape[1]

    def body(K: ca.MX, rho: ca.MX) -> list[ca.MX]:
        return [K[:nv, :] @ rho, K[nv:n, :] @ rho]

    f = loop_function(
        "loops_slopes",
        [K.sparsity(), rho.sparsity()],
        body,
        sizes=(nv, n - nv, k, K.shape[0]),
        tables=(rho.sparsity().colind(), rho.sparsity().row()),
        work=K.shape[0],
    )
    first, second = f.call([K, rho])
    return first, second
