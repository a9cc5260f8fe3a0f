"""Soft rows in the problem of a tick: their slack, and which are violated by how much."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.inverse_dynamics.scales import ProblemScales
from mbcasadi.control.limits.soft_limits import ADDED, SoftLimit, SoftRow, require_soft, soft_rows
from mbcasadi.description.qp_stages import CONE_ROWS, UNBOUNDED
from mbcasadi.description.status import FLAG_BITS
from mbcasadi.qp.rows import Row, Rows, stack_rows

LOWER, SLACK = ", lower side", ", slack"
"""Ends of the names of rows that a linear price adds."""


def soften(
    problem: Problem,
    soft: Sequence[SoftLimit],
    entries: Mapping[str, ca.SX],
    scales: ProblemScales,
) -> Problem:
    """Return the problem with a slack in its soft rows: the first of the unknowns w.

    All unknowns w have one weight r_w; the slack is `s = (r_w / c)^½ w`, less `l / c`.

    Args:
        problem: its parts, all rows hard.
        soft: the limits that are soft.
        entries: tuned prices, by name.
        scales: the units of the problem, r_w among them.

    Raises:
        ProblemError: a limit that covers no row, or what an actuator can give.
    """
    if not soft:
        return problem
    require_soft(problem.rows.about, soft)
    chosen = soft_rows(problem.rows.about, soft)
    k, rows = len(chosen), problem.rows
    columns, added = ca.SX(len(rows.about), k), []
    lower, upper = ca.SX(rows.lower), ca.SX(rows.upper)
    for j, each in enumerate(chosen):
        size = scales.inequalities[each.row]
        price = entries.get(f"{each.limit.limits}.price", ca.SX(each.limit.price))
        c = price * (scales.task / size) ** 2
        turn = (scales.force_weights.internal / c) ** 0.5
        columns[each.row, j] = -turn
        if each.slack < 0:
            continue
        linear = entries.get(f"{each.limit.limits}.linear", ca.SX(each.limit.linear))
        start = linear * scales.task**2 / size / c
        own = rows.some([each.row])
        below, slack = (_with_slack(row, j, k, turn) for row in (own, _zero(own)))
        added.append((below, lower[each.row] + start, LOWER))
        added.append((slack, start, SLACK))
        upper[each.row] = upper[each.row] - start
        lower[each.row] = -UNBOUNDED
    widened = replace(rows, C_w=ca.horzcat(columns, rows.C_w), lower=lower, upper=upper)
    more = [
        replace(part, lower=bound, upper=ca.SX(UNBOUNDED), about=(_added(part.about[0], end),))
        for part, bound, end in added
    ]
    no_force = ca.SX(problem.contacts.of_w.shape[0], k)
    contacts = replace(problem.contacts, of_w=ca.horzcat(no_force, problem.contacts.of_w))
    first = len(rows.about) - CONE_ROWS * rows.cones  # of the rows of cones, which stay the last
    bounded = widened.some(range(first))
    cones = replace(widened.some(range(first, len(rows.about))), cones=rows.cones)
    return replace(problem, rows=stack_rows([bounded, *more, cones]), contacts=contacts)


def scales_of_all(
    scales: ProblemScales, about: Sequence[Row], soft: Sequence[SoftLimit], cones: int
) -> ProblemScales:
    """Return the scales with those of the rows that linear prices add.

    Args:
        scales: of the problem without these.
        about: what all rows are.
        soft: the limits that are soft.
        cones: number of quadratic cones, whose rows are the last.
    """
    linear = [x.row for x in soft_rows(about, soft) if x.slack >= 0]
    added = np.repeat(scales.inequalities[linear], 2)
    own, of_cones = np.split(scales.inequalities, [scales.inequalities.size - CONE_ROWS * cones])
    return replace(scales, inequalities=np.concatenate([own, added, of_cones]))


def _with_slack(row: Rows, j: int, k: int, turn: ca.SX) -> Rows:
    """Return a row with a column of slack in front of its own of w."""
    slack = ca.SX(1, k)
    slack[0, j] = turn
    return replace(row, C_w=ca.horzcat(slack, row.C_w))


def _zero(row: Rows) -> Rows:
    """Return a row without entries."""
    C_p, C_lam, C_w, C_a = (ca.SX(*C.shape) for C in (row.C_p, row.C_lam, row.C_w, row.C_a))
    return replace(row, C_p=C_p, C_lam=C_lam, C_w=C_w, C_a=C_a)


def _added(row: Row, end: str) -> Row:
    """Return what a row of a linear price is."""
    return row._replace(name=row.name + end, kind=ADDED, planned=None)


RELAXED_SHARE = 1e-3
"""A row counts as relaxed where it is violated by more than this share of what is in it."""


def excess(rows: Rows, value: ca.SX, w: ca.SX, soft: Sequence[SoftRow]) -> ca.SX:
    """Return by how much soft rows exceed their bounds (k,): above positive, below negative.

    Args:
        rows: all rows, with slack.
        value: their middles.
        w: unknowns beside p; the slack comes first.
        soft: the soft rows.
    """
    parts = []
    for j, each in enumerate(soft):
        own = value[each.row, 0] - rows.C_w[each.row, j] * w[j, 0]
        upper, lower = rows.upper[each.row, 0], rows.lower[each.row, 0]
        if each.slack >= 0:
            start = rows.lower[each.slack, 0]
            upper, lower = upper + start, rows.lower[each.other, 0] - start
        parts.append(ca.fmax(own - upper, 0) - ca.fmax(lower - own, 0))
    return ca.vertcat(*parts)


def words(bits: ca.SX) -> ca.SX:
    """Return truth values (k,) as words of 32 bits, the first one the lowest bit."""
    k = bits.numel()
    groups = [range(first, min(first + FLAG_BITS, k)) for first in range(0, k, FLAG_BITS)]
    return ca.vertcat(*(sum(2.0**n * bits[i] for n, i in enumerate(each)) for each in groups))


def word_names(k: int) -> tuple[str, ...]:
    """Return names of these words."""
    ends = [(first, min(first + FLAG_BITS, k) - 1) for first in range(0, k, FLAG_BITS)]
    return tuple(f"bits of {first} to {last}" for first, last in ends)
