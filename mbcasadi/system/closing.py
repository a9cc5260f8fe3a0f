"""Measured states, moved onto the constraint manifold before anything is computed from them.

Off the manifold the rows of an overconstrained loop are independent: with joint angles that are
wrong by 1e-8 rad a Bricard loop has no motion left. So every controller first closes the state
that it is given:

    q ← q ⊕ (-A⁺ phi)   twice,   v ← v - A⁺ psi,

in the metric of the coordinates' scales. A direction of A that is weaker than `CLOSING_TOL` is not
corrected: off the manifold it may be a redundant row. Nor is one in which a step would go further
than `TRUSTED_STEP`: near a singular pose a small gap would become a large correction. Errors of
1e-3 become 1e-12.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.tolerance import tolerance
from mbcasadi.linalg import Sym, row_basis, solve_kept
from mbcasadi.system.functions import evaluate
from mbcasadi.system.row_lengths import typical_row_lengths
from mbcasadi.system.system import System

CLOSING_STEPS = 2

CLOSING_TOL = 1e-3
"""Relative length of a row's independent part that a step corrects."""

TRUSTED_STEP = 0.02
"""Scaled coordinates; see the module's docstring."""

STRONG = 0.1
"""Relative length of a row's independent part from which a direction is corrected anyway."""

GAP_SHARE = 4.0
"""A gap makes a redundant row independent by its own size times the curvature of the rows; this
factor was at most 1.8 on overconstrained loops."""

LARGEST_CORRECTION = 0.2
"""Scaled coordinates (rad, or lengths of the model): a state that has to be moved further than this
is not one of the closed mechanism."""

LARGEST_GAP = 1e-3
"""Scaled residual behind the steps from which a state counts as open."""


class ClosedState(NamedTuple):
    """A state on the constraint manifold.

    Attributes:
        q, v: (nq,), (nv,); those that were given where they could not be closed.
        gap: largest residual of an active row that is left, over the row's scale.
        closed: whether the state was near enough to be closed.
    """

    q: ca.SX
    v: ca.SX
    gap: ca.SX
    closed: ca.SX


def close_state(system: System, q: ca.SX, v: ca.SX, on: ca.SX) -> ClosedState:
    """Return the state on the manifold next to a measured one.

    Args:
        system: the mechanism; its rows do not depend on time.
        q, v: (nq,), (nv,) measured, finite.
        on: (nc,) one for each active row, else zero.
    """
    if not system.nc:
        return ClosedState(q, v, ca.SX(0), ca.SX(1))
    size, scale = ca.DM(system.scales.coordinates), ca.DM(system.scales.rows)
    moved, pose = ca.SX(0), q
    for _ in range(CLOSING_STEPS):
        residual = on * evaluate(system.constraint, {"q": pose})
        step = _nearest(system, pose, v, on, residual, worst_gap(residual, scale) / TRUSTED_STEP)
        moved = moved + ca.norm_2(step)
        pose = system.integrate(pose, -size * step)
    gap = worst_gap(on * evaluate(system.constraint, {"q": pose}), scale)
    psi = on * system.loop_rate(pose, v)
    rates = v - size * _nearest(system, pose, v, on, psi, GAP_SHARE * gap)
    closed = ca.logic_and(gap <= LARGEST_GAP, moved <= LARGEST_CORRECTION)
    return ClosedState(ca.if_else(closed, pose, q), ca.if_else(closed, rates, v), gap, closed)


def row_scale_at(row_scale: ca.DM, rank_tol: float, gap: Sym) -> Sym | ca.DM:
    """Return the scales with which a drop rule drops what a gap may make of redundant rows.

    Every factorisation of constraint rows uses it, with the gap of the state that it is given.

    Args:
        row_scale: (m,) scales of the rows on the manifold.
        rank_tol: tolerance of the rule.
        gap: of a `ClosedState`.
    """
    if rank_tol == 0.0 or (gap.is_constant() and float(gap) == 0.0):
        return row_scale
    return row_scale * ca.fmax(1, ca.fmin(GAP_SHARE * gap, STRONG) / tolerance(rank_tol))


def row_scale_fun(
    system: System, rank_tol: float, of_rate: NDArray[np.float64] | None = None
) -> ca.Function:
    """Return (q, [t], [mask]) → (row_scale): `row_scale_at` of a state as it is.

    Args:
        system: the mechanism.
        rank_tol: tolerance of the drop rule.
        of_rate: (nv, nv) from the rates in whose metric the rows are measured to v; rates
            themselves by default.
    """
    scales = system.scales
    norms = scales.row_norms
    if of_rate is not None:
        norms = typical_row_lengths(system, scales.states, of_rate)
    s = {"q": ca.SX.sym("q", system.nq)}
    s |= {"t": ca.SX.sym("t")} if system.timed else {}
    s |= {} if system.mask is None else {"mask": ca.SX.sym("mask", system.nc)}
    phi = s.get("mask", ca.SX.ones(system.nc)) * evaluate(system.constraint, s)
    row_scale = row_scale_at(ca.DM(norms), rank_tol, worst_gap(phi, ca.DM(scales.rows)))
    return ca.Function("row_scale", list(s.values()), [row_scale], list(s), ["row_scale"])


def worst_gap(residual: Sym, scale: ca.DM) -> Sym:
    """Return the largest residual of a row over the row's scale."""
    return ca.mmax(ca.densify(ca.fabs(residual) / scale))


def _nearest(
    system: System, q: ca.SX, v: ca.SX, on: ca.SX, residual: ca.SX, weakest: ca.SX
) -> ca.SX:
    """Return the shortest x (nv,), in scaled coordinates, with `A diag(size) x = residual`.

    Args:
        system: the mechanism.
        q, v: (nq,), (nv,) state.
        on: (nc,) one for each active row, else zero.
        residual: (nc,).
        weakest: relative length of the weakest direction that counts, where it is above
            `CLOSING_TOL`.
    """
    size, scale = ca.DM(system.scales.coordinates), ca.DM(system.scales.rows)
    A = evaluate(system.loop_jacobian, {"q": q, "v": v})
    A = ca.diag(on) @ A @ ca.diag(size)
    least = scale * ca.fmax(1, ca.fmin(weakest, STRONG) / CLOSING_TOL)
    basis = row_basis(A, row_scale=least, rank_tol=CLOSING_TOL, pivot=False)
    return solve_kept(basis, residual)
