"""The vector of least norm whose image is within bounds, by a fixed sequence of operations.

    min ½ zᵀ z,   lower <= N z <= upper

The dual method of D. Goldfarb and A. Idnani (Math. Programming 27, 1983), on the Gram matrix of the
rows: from `z = 0` the most violated row is added to those that hold with equality, in steps that
stop where a multiplier of another one would change its sign; that row is released first. Each step
is the same operations with one-hot vectors in place of branches, and there is a fixed number of
them, so the generated C takes the same time at all values.
"""

from typing import Generic, NamedTuple

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.description.tolerance import tolerance
from mbcasadi.linalg.basis import RANK_TOL
from mbcasadi.linalg.householder import one_hot
from mbcasadi.linalg.symbols import Sym
from mbcasadi.linalg.tree_factor import tree_cholesky, tree_solve
from mbcasadi.shapes import require_scale, require_shape, require_whole

FAR = 1e30
"""Length of a step that nothing bounds."""

PARALLEL = tolerance(1e-9)
"""Squared sine of the angle to the active rows below which a row depends on them."""

MET = tolerance(1e-12)
"""Violation, relative to the bound and the value, that counts as none."""


class _Step(NamedTuple, Generic[Sym]):
    """State of the method: signed multipliers, active rows, and the row that is being added."""

    lam: Sym
    active: Sym
    row: Sym
    pending: Sym


@checked
def bounded_least_norm(
    N: Sym,
    lower: Sym,
    upper: Sym,
    row_scale: Sym | float = 1.0,
    *,
    steps: int | None = None,
    rank_tol: float = RANK_TOL,
) -> Sym:
    """Return `arg min ‖z‖` with `lower <= N z <= upper`, exactly zero where zero is within bounds.

    Where no z is within all bounds the result violates some of them.

    Args:
        N: (m, k) matrix of any rank.
        lower, upper: (m, 1) bounds; infinite ones are allowed.
        row_scale: (m, 1) or scalar; rows shorter than `rank_tol · row_scale` count as zero.
        steps: of the method; `2 m` by default, twice as many as rows can become active.
        rank_tol: relative length that counts as zero.
    """
    m = N.shape[0]
    require_shape("lower", lower, (m, 1))
    require_shape("upper", upper, (m, 1))
    require_scale("row_scale", row_scale, m)
    if steps is not None:
        require_whole(0, steps=steps)
    length = ca.densify(ca.sqrt(ca.sum2(N**2)))
    counts = length > tolerance(rank_tol) * row_scale
    inverse = counts / ca.if_else(counts, length, 1)
    unit = ca.densify(N) * ca.repmat(inverse, 1, N.shape[1])  # rows of length one, or zero
    low, high = (ca.if_else(counts, bound * inverse, 0) for bound in (lower, upper))
    gram, zero = unit @ unit.T, type(N).zeros(m)
    state = _Step(zero, zero, zero, type(N)(0))
    for _ in range(2 * m if steps is None else steps):
        state = _advance(state, gram, low, high)
    return unit.T @ state.lam


def _advance(state: _Step[Sym], gram: Sym, low: Sym, high: Sym) -> _Step[Sym]:
    """Return the state after one step: a row becomes active, or another one is released."""
    lam, active = state.lam, state.active
    value = gram @ lam
    missing = ca.fmax(low - value, 0) + ca.fmin(high - value, 0)
    missing = ca.if_else(ca.fabs(missing) > MET * (1 + ca.fabs(value)), missing, 0)
    worst = one_hot(ca.fabs(missing) * (1 - active))
    row = state.pending * state.row + (1 - state.pending) * worst
    gap = ca.dot(row, missing)
    sign = ca.if_else(gap < 0, -1, 1)
    column = sign * active * (gram @ row)
    free = type(gram).eye(gram.shape[0]) * ca.repmat(1 - active, 1, gram.shape[0])
    block = gram * (active @ active.T) + free
    rate = active * tree_solve(tree_cholesky(block), column)
    bend = ca.sum1(row) - ca.dot(column, rate)
    full = ca.if_else(bend > PARALLEL, ca.fabs(gap) / ca.fmax(bend, PARALLEL), FAR)
    shrinks = lam * rate > 0
    speed = ca.if_else(shrinks, rate / ca.if_else(shrinks, lam, 1), 0)
    first = one_hot(speed)
    fastest = ca.dot(first, speed)
    partial = ca.if_else(fastest > 0, 1 / ca.if_else(fastest > 0, fastest, 1), FAR)
    length = ca.fmin(full, partial)
    moves = ca.logic_and(ca.fabs(gap) > 0, length < FAR)
    added = moves * (full <= partial)
    released = (moves - added) * first
    lam = (1 - released) * (lam + moves * length * (sign * row - rate))
    return _Step(lam, active + added * row - released, row, moves - added)
