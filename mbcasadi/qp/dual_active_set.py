"""Goldfarb and Idnani's dual active-set method for least-distance problems, as one Function.

    min ½ xᵀ x   subject to   lower <= A x <= upper,        rows of unit length

CasADi's plugin for DAQP factors `A Aᵀ` of the active rows, which costs nearly parallel rows twice
the digits. Here the pseudo-inverse X of the active rows is kept: a row that enters or leaves is an
update of rank one. The generated C has the same method on orthogonal factors (`active_rows.c.in`).

Source: D. Goldfarb, A. Idnani, A numerically stable dual method for solving strictly convex
quadratic programs, Mathematical Programming 27 (1983).
"""

from functools import lru_cache
from typing import NamedTuple

import casadi as ca

from mbcasadi.description.qp_stages import (
    DEPENDENT,
    PLUGIN_PRIMAL_TOLERANCE,
    RAY_ROUNDING,
    ROUNDING,
    UNBOUNDED,
    SolverFlag,
)
from mbcasadi.linalg.householder import one_hot

BLOCK = 10
"""Steps between two looks at whether the method has ended."""

KEPT = 64
"""Functions that depend on the sizes of a problem alone, which many controllers share."""

LEAST_MULTIPLIER = 1e-300
"""Stands for zero in a denominator."""


class Progress(NamedTuple):
    """Where the method stands; the rows are `C x >= d`, both sides of A.

    Fields: `X` (2m, n) pseudo-inverse of the active rows, transposed; `x` (n,); `multiplier` (2m,)
    not negative; `active` (2m,) zeros and ones; `entering` (2m,) one at the row that is being
    made active; `entering_multiplier` of that row; `flag` a `SolverFlag`, `STOPPED` while running.
    """

    X: ca.MX
    x: ca.MX
    multiplier: ca.MX
    active: ca.MX
    entering: ca.MX
    entering_multiplier: ca.MX
    flag: ca.MX


@lru_cache(maxsize=KEPT)
def dual_active_set_fun(m: int, n: int) -> ca.Function:
    """Return (A, lower, upper) → (x, lam, flag) for rows of unit length.

    `lam` (m,) are multipliers in CasADi's sign, `x + Aᵀ lam = 0`; where the flag is `INFEASIBLE`
    they are numbers r that prove it (`infeasibility.py`).

    Args:
        m, n: numbers of rows and unknowns, not zero.
    """
    A, lower, upper = ca.MX.sym("A", m, n), ca.MX.sym("lower", m), ca.MX.sym("upper", m)
    C, d = ca.vertcat(A, -A), ca.vertcat(lower, -upper)
    none = ca.MX.zeros(2 * m)
    progress = Progress(
        X=ca.MX.zeros(2 * m, n),
        x=ca.MX.zeros(n),
        multiplier=none,
        active=none,
        entering=none,
        entering_multiplier=ca.MX(0),
        flag=ca.MX(int(SolverFlag.STOPPED)),
    )
    block = _block_fun(2 * m, n)
    for _ in range(-(-iteration_limit(m, n) // BLOCK)):
        progress = Progress(*block(progress.flag == SolverFlag.STOPPED, *progress, C, d))
    sides = progress.multiplier[m:] - progress.multiplier[:m]
    outputs = [progress.x, sides, progress.flag]
    return ca.Function("dual_active_set", [A, lower, upper], outputs)


def iteration_limit(m: int, n: int) -> int:
    """Return the most steps that are taken: each row enters and leaves a few times."""
    return 50 + 4 * (m + n)


def _block_fun(m: int, n: int) -> ca.Function:
    """Return (running, progress, C, d) → (progress): some steps, or none."""
    shapes = ((m, n), (n, 1), (m, 1), (m, 1), (m, 1), (1, 1), (1, 1))
    given = [ca.MX.sym(f"s{i}", *shape) for i, shape in enumerate(shapes)]
    C, d = ca.MX.sym("C", m, n), ca.MX.sym("d", m)
    step = ca.Function("step", [*given, C, d], list(_step(Progress(*given), C, d)))
    after = given
    for _ in range(BLOCK):
        after = step.call([*after, C, d])
    steps = ca.Function("steps", [*given, C, d], after)
    return ca.Function.if_else("block", steps, ca.Function("rest", [*given, C, d], given))


def _step(at: Progress, C: ca.MX, d: ca.MX) -> Progress:
    """Return the progress after one row has entered or left."""
    bounded = d > -UNBOUNDED
    gap = ca.if_else(bounded, d, 0) - C @ at.x
    violated = ca.if_else(ca.logic_and(bounded, at.active < 1), gap, -1)
    outside = ca.mmax(violated) / ca.fmax(1, ca.norm_inf(at.x))
    choosing = ca.sum1(at.entering) < 1
    done = ca.logic_and(choosing, outside <= ROUNDING)
    entering = ca.if_else(choosing, _first_largest(violated), at.entering)
    pushed = ca.if_else(choosing, 0, at.entering_multiplier)

    share, rest, length2 = _split(at.X, C, entering)
    blocks = ca.logic_and(at.active > 0, share > RAY_ROUNDING)
    steps = ca.if_else(blocks, at.multiplier / ca.if_else(blocks, share, 1), ca.inf)
    independent = length2 > DEPENDENT**2
    square = ca.if_else(independent, length2, 1)
    full = ca.if_else(independent, ca.dot(entering, gap) / square, ca.inf)
    size = ca.fmin(full, ca.mmin(steps))
    stuck = ca.logic_and(ca.logic_not(done), size > UNBOUNDED)
    enters = full <= ca.mmin(steps)

    x = at.x + ca.if_else(independent, size, 0) * rest
    multiplier = at.active * ca.fmax(at.multiplier - size * share, 0)
    pushed = pushed + size
    first = ca.if_else(blocks, share / ca.fmax(at.multiplier, LEAST_MULTIPLIER), 0)
    leaving = ca.if_else(enters, 0, _first_largest(first))
    gone = at.X.T @ leaving
    gone2 = ca.if_else(enters, 1, ca.sumsqr(gone))
    sideways = ca.if_else(enters, share - entering, at.X @ gone / gone2)
    X = at.X - sideways @ ca.if_else(enters, rest / square, gone).T
    X = ca.repmat(1 - leaving, 1, X.shape[1]) * X
    active = at.active + ca.if_else(enters, entering, -leaving)
    multiplier = (1 - leaving) * multiplier + ca.if_else(enters, pushed, 0) * entering
    x = x + X.T @ (active * (ca.if_else(bounded, d, 0) - C @ x))

    moved = Progress(X, x, multiplier, active, ca.if_else(enters, 0, entering), pushed, at.flag)
    ray = at._replace(multiplier=entering - share, flag=ca.MX(int(SolverFlag.INFEASIBLE)))
    with_entering = at.multiplier + at.entering_multiplier * at.entering
    ended = at._replace(multiplier=with_entering, flag=ca.MX(int(SolverFlag.OPTIMAL)))
    rests = at.flag != SolverFlag.STOPPED
    done = ca.logic_or(done, ca.logic_and(stuck, outside <= PLUGIN_PRIMAL_TOLERANCE))
    ends = [ca.if_else(done, a, b) for a, b in zip(ended, ray, strict=True)]
    goes_on = ca.logic_not(ca.logic_or(done, stuck))
    after = [ca.if_else(goes_on, a, b) for a, b in zip(moved, ends, strict=True)]
    return Progress(*(ca.if_else(rests, a, b) for a, b in zip(at, after, strict=True)))


def _split(X: ca.MX, C: ca.MX, entering: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX]:
    """Return a row as a sum of active rows: its shares, what is left, and the square of that.

    Done twice for the digits of what is left.
    """
    row = C.T @ entering
    share = X @ row
    rest = row - C.T @ share
    more = X @ rest
    rest = rest - C.T @ more
    return share + more, rest, ca.sumsqr(rest)


def _first_largest(score: ca.MX) -> ca.MX:
    """Return a vector that is one at the first largest positive entry."""
    values = ca.SX.sym("score", score.shape[0])
    return ca.Function("first_largest", [values], [one_hot(values)])(score)
