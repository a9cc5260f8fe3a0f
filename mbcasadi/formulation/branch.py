"""The rows that second derivatives add where the Jacobian loses rank: one branch of the motion.

Where branches of a mechanism's motion meet, a combination `y` of rows vanishes, `yᵀ A = 0`, and
`A a + c = 0` leaves the acceleration across the branch undetermined. A motion keeps `phi = 0` at
all times, so its third derivative vanishes as well. The jerk drops out of it, `yᵀ A = 0`, and what
is left is a row for the acceleration:

    yᵀ (3 Ȧ a + ċ_v) = 0,    3 Ȧ a = 3 D²φ[v, a],    ċ_v = D³φ[v, v, v] + terms of time

`Ȧ` is the rate of A along v, and `ċ_v` that of `c` at constant v. It holds on the branch that v is
a tangent of, which is one with `yᵀ c = yᵀ D²φ[v, v] = 0`. A row that is redundant everywhere has
`yᵀ A = 0` at all poses: its added row repeats those that are there, and is dropped.

Next to the pose the rows are `A + t Ȧ + t² Ä / 2`. Their rank is that of A, plus that of
`W = Y Ȧ P`, plus that of `Y₂ (Ä / 2 - Ȧ A⁺ Ȧ) P₂`, with Y, P the projectors on null(Aᵀ), null(A)
and Y₂, P₂ those on what W leaves of them. The last one is zero where the added rows are enough.
"""

from typing import Generic, NamedTuple

import casadi as ca

from mbcasadi.description.tolerance import tolerance
from mbcasadi.linalg import CompleteFactor, Sym, complement, complete_factor

CURVATURE_TOL = tolerance(1e-6)
"""Size of an added row, relative to the rates of A, that counts as zero: poses are closed to
1e-10, and where A loses rank its null spaces are known to about the root of this."""

TINY = 1e-300
"""Keeps a quotient finite where a mechanism is at rest."""


class BranchRows(NamedTuple, Generic[Sym]):
    """Rows `W a + w = 0` beside `A a + c = 0`, divided by the speed.

    Fields: `W` (nc, nv), in null(A); `w` (nc, 1); `scale` length beside which a row of W is zero;
    `present` one where W is not zero; `off_branch` one where v is the tangent of no branch.
    """

    W: Sym
    w: Sym
    scale: Sym
    present: Sym
    off_branch: Sym


def branch_rows(
    factor: CompleteFactor[Sym], c: Sym, Adot: Sym, cdot: Sym, speed: Sym
) -> BranchRows[Sym]:
    """Return the added rows, `W = 3 Y Ȧ P / ‖v‖`, `w = Y (ċ_v - 3 Ȧ A⁺ c) / ‖v‖`.

    Args:
        factor: of A (nc, nv).
        c: (nc, 1) constraint bias.
        Adot: (nc, nv) rate of A along v, time included.
        cdot: (nc, 1) rate of c at constant v, time included.
        speed: ‖v‖.
    """
    Y, P = complement(factor.U), complement(factor.basis.V)
    inverse = 1 / ca.fmax(speed, TINY)
    across = -factor.pinv_times(c)
    W = 3 * inverse * (Y @ Adot @ P)
    w = inverse * (Y @ (cdot + 3 * Adot @ across))
    scale = 3 * inverse * ca.norm_fro(Adot)
    size = ca.norm_fro(Adot) * speed + ca.norm_2(c)
    return BranchRows(
        W,
        w,
        scale,
        ca.norm_fro(W) > CURVATURE_TOL * scale,
        ca.norm_2(Y @ c) > CURVATURE_TOL * size,
    )


def rank_is_open(factor: CompleteFactor[Sym], rows: BranchRows[Sym], Adot: Sym, Addot: Sym) -> Sym:
    """Return whether rows of A appear beside the pose that the added rows do not stand for.

    Args:
        factor: of A (nc, nv).
        rows: of `branch_rows`.
        Adot, Addot: (nc, nv) first and second rate of A along the motion.
    """
    added = complete_factor(rows.W, row_scale=rows.scale, rank_tol=CURVATURE_TOL)
    Y = complement(factor.U) - added.U @ added.U.T
    P = complement(factor.basis.V) - added.basis.V @ added.basis.V.T
    turned = Adot @ factor.pinv_times(Adot)
    size = ca.norm_fro(Addot) / 2 + ca.norm_fro(turned)
    return ca.norm_fro(Y @ (Addot / 2 - turned) @ P) > CURVATURE_TOL * size


def loses_rank_along(factor: CompleteFactor[Sym], Adot: Sym) -> Sym:
    """Return whether a combination of rows vanishes here and not beside the pose, at first order.

    Args:
        factor: of A (nc, nv).
        Adot: (nc, nv) rate of A along any velocity in null(A).
    """
    Y, P = complement(factor.U), complement(factor.basis.V)
    return ca.norm_fro(Y @ Adot @ P) > CURVATURE_TOL * ca.norm_fro(Adot)
