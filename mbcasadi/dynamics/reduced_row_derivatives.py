"""Derivatives of reduced rows (`reduced_rows`) that do not depend on each other."""

import casadi as ca

from mbcasadi.constraints import other_rows
from mbcasadi.constraints.body_derivatives import body_derivatives
from mbcasadi.description import Baumgarte
from mbcasadi.dynamics.inverse_derivatives import Chart
from mbcasadi.dynamics.reduced_rows import bodies_held_at_points
from mbcasadi.dynamics.row_derivatives import Fixed, row_derivatives
from mbcasadi.dynamics.terms import State
from mbcasadi.system import System


def reduced_row_derivatives(
    system: System,
    state: State[ca.SX],
    fixed: tuple[ca.SX, ca.SX],
    chart: Chart,
    baumgarte: Baumgarte | None = None,
) -> dict[str, ca.SX]:
    """Return for x in q, v, [t] row_x (m, ·) and force_x (nv, ·), and turn_q (nc, ·).

    They are the derivatives of `A_r a + Qᵀ c`, `A_rᵀ lam` and `Q lam`; turn_q is missing where the
    rows are those of the system.

    Args:
        system: the mechanism.
        state: symbols of its inputs.
        fixed: a (nv, 1) and lam (m, 1), which are held fixed.
        chart: coordinates of derivatives by q.
        baumgarte: stabilisation of drift, only without bodies that several points hold.
    """
    groups, (a, lam) = bodies_held_at_points(system), fixed
    if not groups:
        return row_derivatives(system, state, Fixed(a, lam, None, None), chart, baumgarte)
    assert system.tree is not None  # groups belong to trees
    assert baumgarte is None
    nv, nc, others = system.nv, system.nc, other_rows(groups, system.nc)
    of_others = ca.SX(nc, 1)
    of_others[others] = lam[: len(others)]
    left_out = frozenset(row for group in groups for row in group.rows)
    total = row_derivatives(
        system, state, Fixed(a, of_others, None, None), chart, left_out=left_out
    )
    rows = {x: [total[f"row_{x}"][others, :]] for x in ("q", "v")}
    force, turn, first = ca.SX(nv, nv), ca.SX(nc, nv), len(others)
    for group in groups:
        derivatives = body_derivatives(system.tree, group, state.q, state.v, a)
        own = lam[first : first + group.size]
        for x, part in zip(("q", "v"), derivatives.rows(nv), strict=True):
            rows[x].append(chart.from_tangent(part) if x == "q" else part)
        force += derivatives.force(nv, own)
        turn[list(group.rows), :] = derivatives.multipliers(nv, own)
        first += group.size
    outputs = {f"row_{x}": ca.vertcat(*parts) for x, parts in rows.items()}
    outputs["force_q"] = total["force_q"] + chart.from_tangent(force)
    outputs |= {"force_v": total["force_v"], "turn_q": chart.from_tangent(turn)}
    return {key: ca.sparsify(value) for key, value in outputs.items()}
