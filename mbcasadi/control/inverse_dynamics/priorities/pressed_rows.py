"""Rows that a level presses against, which the levels behind it hold.

At the optimum of a level its multipliers λ leave `Zᵀ Cᵀ λ = 0` in the directions Z that the level
leaves free. So a step that keeps all rows with a multiplier at their bounds or inside changes none
of them (Gordan's lemma): in the next problem they would be a slab without an interior, and have
multipliers without bound. In place of it the directions that change them are taken away, and the
rows with them. How far `Zᵀ Cᵀ λ` is from zero says how certain it is.

Source: O. Mangasarian, Nonlinear Programming (1994), section 2.4, for the lemma.
"""

import casadi as ca

from mbcasadi import linalg
from mbcasadi.description.qp_stages import CONE_ROWS
from mbcasadi.description.tolerance import tolerance
from mbcasadi.linalg.branches import either
from mbcasadi.linalg.scalars import in_scalars

UNCERTAIN = tolerance(1e-4)
"""A row is held where `|Zᵀ Cᵀ λ|` is a smaller share of its multiplier times its length."""

ON_ROW = tolerance(1e-7)
"""A direction of unit length that changes a row of unit length by less keeps it: so much may be
wrong with the last one of rows that depend on each other."""

LEAST = tolerance(1e-6)
"""Share of a level's size below which a multiplier, times the length of its row, is rounding."""

BLOCK = 8
"""Rows that are passed over at once where none of them is pressed."""

SEVERAL = 2
"""One row that a level presses against is no slab: what changes it, the level holds."""


def hold_pressed(
    Z: ca.SX, C: ca.SX, lam: ca.SX, size: ca.SX, gone: ca.SX, cones: int
) -> tuple[ca.SX, ca.SX]:
    """Return the directions that change no pressed row, and which rows are gone from now on.

    Args:
        Z: (c, c) directions of the first c unknowns; the others are free.
        C: (m, n) rows, the last ones of quadratic cones, which do not count.
        lam: (m,) multipliers.
        size: of the level's cost.
        gone: (m,) one for rows that levels before it hold.
        cones: number of these cones.
    """
    linear = C.shape[0] - CONE_ROWS * cones
    if not linear:
        return Z, gone
    lam, of_cones = lam[:linear, 0], gone[linear:, 0]
    several = in_scalars("are_several", lambda k: [_several(**k)], {"lam": lam})[0]
    given = {"Z": Z, "C": C[:linear, :], "lam": lam, "size": size, "gone": gone[:linear, 0]}
    kept = either("hold", several, given, lambda x: _reduced(**x), lambda x: [x["Z"], x["gone"]])
    left_free, held = kept
    return left_free, ca.vertcat(held, of_cones)


def without(rows: ca.SX, gone: ca.SX) -> ca.SX:
    """Return values or rows (m, .) of which those that are gone are zero.

    Args:
        rows: values or rows.
        gone: (m,), or (0,) where none can be.
    """
    if not gone.numel():
        return rows
    return ca.densify(ca.if_else(ca.repmat(gone, 1, rows.shape[1]), 0, rows))


def _several(lam: ca.SX) -> ca.SX:
    return ca.sum1(ca.fabs(lam) > 0) >= SEVERAL


def _reduced(Z: ca.SX, C: ca.SX, lam: ca.SX, size: ca.SX, gone: ca.SX) -> list[ca.SX]:
    """Return Z without the directions that change a pressed row, and which rows are gone.

    These are rows that no direction changes: the pressed ones, and what depends on them.
    """
    c = Z.shape[0]
    C = without(C, gone)
    forces, kept = in_scalars("row_forces", lambda k: _forces(**k), {"C": C, "lam": lam, "s": size})
    by_y = linalg.product(C.T, kept)
    left = ca.vertcat(linalg.product(Z.T, by_y[:c, 0]), by_y[c:, 0])
    known = {"forces": forces, "left": left, "others": C[:, c:]}
    pressed, is_own = in_scalars("pressed_rows", lambda k: _pressed(**k), known)
    rows = C[:, :c].T
    Z = _without_changes(Z, rows, pressed.T)
    changes = linalg.product(Z.T, rows)
    known = {"changes": changes, "rows": rows, "is_own": is_own, "gone": gone}
    return [Z, in_scalars("gone_rows", lambda k: [_gone(**k)], known)[0]]


def _forces(C: ca.SX, lam: ca.SX, s: ca.SX) -> list[ca.SX]:
    """Return multipliers times lengths of rows, and the multipliers that are not rounding."""
    forces = ca.fabs(lam) * ca.sqrt(ca.sum2(C**2))
    is_one = forces > LEAST * s
    return [is_one * forces, is_one * lam]


def _pressed(forces: ca.SX, left: ca.SX, others: ca.SX) -> list[ca.SX]:
    """Return which rows are pressed, and which ones are of the unknowns of Z: only these can be."""
    is_own = ca.densify(ca.sum2(others**2) == 0)
    return [ca.logic_and(UNCERTAIN * forces > ca.norm_2(left), is_own), is_own]


def _gone(changes: ca.SX, rows: ca.SX, is_own: ca.SX, gone: ca.SX) -> ca.SX:
    unchanged = ca.sum1(changes**2) <= ON_ROW**2 * ca.sum1(rows**2)
    return ca.densify(ca.fmax(gone, ca.logic_and(unchanged.T, is_own)))


def _without_changes(Z: ca.SX, rows: ca.SX, pressed: ca.SX) -> ca.SX:
    """Return Z without the directions that change a pressed row, block by block of rows.

    Args:
        Z: (n, c).
        rows: (n, m).
        pressed: (1, m).
    """
    blocks = -(-rows.shape[1] // BLOCK)
    more = blocks * BLOCK - rows.shape[1]
    symbols = [
        ca.MX.sym("Z", *Z.shape),
        ca.MX.sym("rows", Z.shape[0], BLOCK),
        ca.MX.sym("p", 1, BLOCK),
    ]
    every = ca.Function("every", symbols, [_step(*Z.shape).fold(BLOCK)(*symbols)])
    none = ca.Function("none", symbols, symbols[:1])
    block = ca.Function.if_else("block", every, none)
    chosen = ca.Function("chosen", symbols, [block(ca.mmax(symbols[2]) > 0, *symbols)])
    padded = [ca.horzcat(x, ca.DM.zeros(x.shape[0], more)) for x in (rows, pressed)]
    return chosen.fold(blocks)(Z, *padded)


def _step(n: int, c: int) -> ca.Function:
    """Return (Z, row, pressed) → Z without the direction that changes the row, where pressed."""
    Z, row, pressed = ca.MX.sym("Z", n, c), ca.MX.sym("row", n), ca.MX.sym("pressed")
    given = [Z, row]
    change = Z.T @ row
    size2 = ca.sumsqr(change)
    is_new = size2 > ON_ROW**2 * ca.sumsqr(row)
    share = ca.if_else(is_new, 1 / ca.if_else(is_new, size2, 1), 0)
    turned = ca.Function("turned", given, [Z - (Z @ change) @ (share * change).T])
    same = ca.Function("same", given, [Z])
    either = ca.Function.if_else("either", turned, same)
    return ca.Function("step", [Z, row, pressed], [either(pressed, *given)])
