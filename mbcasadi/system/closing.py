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

from typing import TYPE_CHECKING, NamedTuple

import casadi as ca

from mbcasadi.linalg import row_basis, solve_kept
from mbcasadi.system.functions import evaluate

if TYPE_CHECKING:
    from mbcasadi.system.system import System

CLOSING_STEPS = 2

CLOSING_TOL = 1e-3
"""Relative length of a row's independent part that a step corrects."""

TRUSTED_STEP = 0.02
"""Scaled coordinates; see the head of this file."""

STRONG = 0.1
"""Relative length of a row's independent part from which a direction is corrected anyway."""

GAP_SHARE = 10.0
"""A gap changes the length of a redundant row's remainder by its own size times the curvature of
the rows, which is about 1 in the scaled coordinates; this is the margin."""

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


def close_state(system: "System", q: ca.SX, v: ca.SX, on: ca.SX) -> ClosedState:
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
        step = _nearest(system, pose, v, on, residual, _worst(residual, scale) / TRUSTED_STEP)
        moved = moved + ca.norm_2(step)
        pose = system.integrate(pose, -size * step)
    gap = _worst(on * evaluate(system.constraint, {"q": pose}), scale)
    psi = on * system.loop_rate(pose, v)
    rates = v - size * _nearest(system, pose, v, on, psi, GAP_SHARE * gap)
    closed = ca.logic_and(gap <= LARGEST_GAP, moved <= LARGEST_CORRECTION)
    return ClosedState(ca.if_else(closed, pose, q), ca.if_else(closed, rates, v), gap, closed)


def row_scale_at(row_scale: ca.DM, rank_tol: float, gap: ca.SX) -> ca.SX | ca.DM:
    """Return the scales with which a drop rule drops what a gap may make of redundant rows.

    Args:
        row_scale: (m,) scales of the rows on the manifold.
        rank_tol: tolerance of the rule.
        gap: of a `ClosedState`.
    """
    if gap.is_constant() and float(gap) == 0.0:
        return row_scale
    return row_scale * ca.fmax(1, GAP_SHARE / rank_tol * gap)


def _worst(residual: ca.SX, scale: ca.DM) -> ca.SX:
    return ca.mmax(ca.densify(ca.fabs(residual) / scale))


def _nearest(
    system: "System", q: ca.SX, v: ca.SX, on: ca.SX, residual: ca.SX, weakest: ca.SX
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
