"""Derivatives of the constraint rows of a `System`: of pairs of points by formulas, else by AD.

Of `A a + c`, of the forces `Aᵀ lam` and `Aᵀ e`, and of `A w`, with a, lam, e and w held fixed.
"""

from collections.abc import Container, Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.constraints.pair_derivatives import PairDerivatives, pair_derivatives
from mbcasadi.constraints.pairs import pair_of
from mbcasadi.description import Baumgarte, Connect, PointRow, Weld
from mbcasadi.dynamics.inverse_derivatives import Chart
from mbcasadi.dynamics.reduced_rows import varied_equalities
from mbcasadi.dynamics.terms import State, rates_of, terms
from mbcasadi.system import System

PAIR_ROWS = 3
"""Rows of a connect, and the first ones of a weld: the gap between two points."""


class Fixed(NamedTuple):
    """What is held fixed: `a`, `w` (nv, 1), `lam`, `e` (nc, 1); e and w None where not needed."""

    a: ca.SX
    lam: ca.SX
    e: ca.SX | None
    w: ca.SX | None


def row_derivatives(
    system: System,
    state: State[ca.SX],
    fixed: Fixed,
    chart: Chart,
    baumgarte: Baumgarte | None = None,
    left_out: frozenset[int] = frozenset(),
) -> dict[str, ca.SX]:
    """Return for x in q, v, [t]: row_x, force_x, gap_x, share_x.

    They are the derivatives of `A a + c`, `Aᵀ lam`, and with e and w of `Aᵀ e` and `A w`.

    Args:
        system: the mechanism.
        state: symbols of its inputs.
        fixed: what is held fixed.
        chart: coordinates of derivatives by q.
        baumgarte: stabilisation of drift.
        left_out: rows of pairs that count as zero.
    """
    pairs, points = _pairs(system), _points(system)
    alone = {row.row for rows in points for row in rows}
    total = _of_other_rows(system, state, fixed, chart, ((pairs, alone), baumgarte))
    on = ca.SX.ones(system.nc) if state.mask is None else state.mask
    for first, equality in pairs.items():
        if first in left_out:
            continue
        assert system.tree is not None  # pairs belong to trees
        derivatives = pair_derivatives(pair_of(system.tree, equality, state.q), state.v, fixed.a)
        rows = slice(first, first + PAIR_ROWS)
        place = ca.SX.eye(system.nc)[:, rows] @ ca.diag(on[rows])
        by_q, by_v = derivatives.rows(system.nv)
        if baumgarte is not None:
            of_drift = _of_drift(system, state, derivatives, rows, baumgarte)
            by_q, by_v = by_q + of_drift[0], by_v + of_drift[1]
        tangent = {"row_q": place @ by_q}
        if fixed.w is not None:
            tangent["share_q"] = place @ derivatives.share(system.nv, fixed.w)
        for key, lam in (("force_q", fixed.lam), ("gap_q", fixed.e)):
            if lam is not None:
                tangent[key] = derivatives.force(system.nv, on[rows] * lam[rows])
        for key, derivative in tangent.items():
            total[key] += chart.from_tangent(derivative)
        total["row_v"] += place @ by_v
    for rows_of_point in points:
        _add_point(total, system, state, (fixed, chart, baumgarte), rows_of_point)
    return {key: ca.sparsify(value) for key, value in total.items()}


def point_rates(
    system: System, q: ca.SX, v: ca.SX, rows: Sequence[int]
) -> tuple[ca.SX, ca.SX] | None:
    """Return derivatives (n, nv) of `A v` of rows by `q ⊕ dq` and by v.

    Args:
        system: the mechanism.
        q, v: (nq,), (nv,) its state.
        rows: places of rows; where they are not of one point of a body, there is no formula: None.
    """
    own = next(
        (
            {row.row: row for row in point}
            for point in _points(system)
            if set(rows) <= {row.row for row in point}
        ),
        None,
    )
    if own is None:
        return None
    directions = ca.DM(np.array([own[row].direction for row in rows]))
    at = _to_world(system, own[rows[0]], State(q, v, None, None), ca.SX(system.nv, 1))
    return directions @ at.share(system.nv, v), system.constraint_jacobian(q)[list(rows), :]


def _to_world(system: System, row: PointRow, state: State[ca.SX], a: ca.SX) -> PairDerivatives:
    """Return the derivatives of the point of a row, as of one that is held to the world."""
    assert system.tree is not None  # points belong to trees
    held = Connect("point", row.body, 0, row.anchor, np.zeros(3))
    return pair_derivatives(pair_of(system.tree, held, state.q), state.v, a)


def _points(system: System) -> list[list[PointRow]]:
    """Return the rows of points along fixed directions, point by point; with parameters none."""
    if system.tree is None or len(system.parameters):
        return []
    by_point: dict[tuple[float, ...], list[PointRow]] = {}
    for row in system.point_rows:
        if row.direction is None:
            continue
        by_point.setdefault((row.body, *row.anchor.tolist()), []).append(row)
    return list(by_point.values())


def _add_point(
    total: dict[str, ca.SX],
    system: System,
    state: State[ca.SX],
    given: tuple[Fixed, Chart, Baumgarte | None],
    rows: Sequence[PointRow],
) -> None:
    """Add the derivatives of the rows of one point.

    Args:
        total: of all rows.
        system, state: as in `row_derivatives`.
        given: what is held fixed, the chart, and the stabilisation.
        rows: of the point.
    """
    fixed, chart, baumgarte = given
    places, at = [row.row for row in rows], _to_world(system, rows[0], state, fixed.a)
    D, on = ca.DM(np.array([row.direction for row in rows])), ca.SX.ones(len(rows))
    on = on if state.mask is None else state.mask[places]
    place = ca.SX.eye(system.nc)[:, places] @ ca.diag(on)
    by_q, by_v = (D @ part for part in at.rows(system.nv))
    if baumgarte is not None:
        both = rates_of(baumgarte, system.nc, state.step)
        alpha, beta = (ca.diag(rate[places]) for rate in both)
        held = ca.diag(ca.DM([float(row.of_position) for row in rows]))
        of_speed = system.constraint_jacobian(state.q)[places, :]
        by_q += 2 * alpha @ D @ at.share(system.nv, state.v) + beta**2 @ held @ of_speed
        by_v += 2 * alpha @ of_speed
    tangent = {"row_q": place @ by_q}
    if fixed.w is not None:
        tangent["share_q"] = place @ D @ at.share(system.nv, fixed.w)
    for key, lam in (("force_q", fixed.lam), ("gap_q", fixed.e)):
        if lam is not None:
            tangent[key] = at.force(system.nv, D.T @ (on * lam[places]))
    for key, derivative in tangent.items():
        total[key] += chart.from_tangent(derivative)
    total["row_v"] += place @ by_v


def _pairs(system: System) -> dict[int, Connect | Weld]:
    """Return the pairs of points of a tree by their first rows.

    Those whose anchors are parameters are left to AD, which knows derivatives by them.
    """
    varied = varied_equalities(system)
    places = np.cumsum([0, *(equality.size for equality in system.equalities)])
    return {
        int(places[i]): equality
        for i, equality in enumerate(system.equalities)
        if isinstance(equality, Connect | Weld) and i not in varied
    }


def _of_other_rows(
    system: System,
    state: State[ca.SX],
    fixed: Fixed,
    chart: Chart,
    given: tuple[tuple[Container[int], set[int]], Baumgarte | None],
) -> dict[str, ca.SX]:
    """Return the derivatives of all rows but those of pairs, with the sizes of all.

    Args:
        system, state, fixed, chart: as in `row_derivatives`.
        given: first rows of the pairs and the rows of points, and the stabilisation.
    """
    (pairs, alone), baumgarte = given
    firsts = [i for i in range(system.nc) if i in pairs]
    of_pairs = {first + k for first in firsts for k in range(PAIR_ROWS)} | alone
    rest = [i for i in range(system.nc) if i not in of_pairs]
    _, _, A, c = terms(system, state, baumgarte)
    A, c, place = A[rest, :], c[rest], ca.SX.eye(system.nc)[:, rest]
    values = {
        "force": A.T @ fixed.lam[rest],
        "row": A @ fixed.a + c,
    }
    values |= {} if fixed.e is None else {"gap": A.T @ fixed.e[rest]}
    values |= {} if fixed.w is None else {"share": A @ fixed.w}
    # Shared before they are differentiated, and afterwards: this halves them.
    values = dict(zip(values, ca.cse(list(values.values())), strict=True))
    jacobians = {}
    for x, symbol in state.of_qv.items():
        for name, value in values.items():
            J = chart.jacobian(value, symbol) if x == "q" else ca.jacobian(value, symbol)
            jacobians[f"{name}_{x}"] = place @ J if name in ("row", "share") else J
    return dict(zip(jacobians, ca.cse(list(jacobians.values())), strict=True))


def _of_drift(
    system: System,
    state: State[ca.SX],
    derivatives: PairDerivatives,
    rows: slice,
    baumgarte: Baumgarte,
) -> tuple[ca.SX, ca.SX]:
    """Return the derivatives (3, nv) of `2 α psi + β² phi` of a pair by `q ⊕ dq` and by v.

    `psi = A v` with A as the pair is seen from what carries it, phi as it is seen from the world.
    """
    alpha, beta = (ca.diag(rate[rows]) for rate in rates_of(baumgarte, system.nc, state.step))
    of_rate = derivatives.share(system.nv, state.v)
    of_gap = system.constraint_jacobian(state.q)[rows, :]
    of_speed = system.loop_jacobian(state.q)[rows, :]
    return 2 * alpha @ of_rate + beta**2 @ of_gap, 2 * alpha @ of_speed
