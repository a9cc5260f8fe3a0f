"""Rows of the first sample of a trajectory: fixed values, and closure of the loops."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.shooting import Shooting
from mbcasadi.mpc.ocp.stage import StageSymbols
from mbcasadi.mpc.trajectory.constraints import closure
from mbcasadi.mpc.trajectory.layout import TrajectoryLayout, TrajectoryOptions
from mbcasadi.qp.rows import Bounded
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import bounds, column, real_array
from mbcasadi.short_text import summarised
from mbcasadi.system import System


@final
@readable_fields
@dataclass(frozen=True)
class Start:
    """What the first sample of a trajectory keeps.

    Attributes:
        q0, v0: (nq,), (nv,) state on the manifold; free where it is not given. Without `q0`, `v0`
            can only be zero.
        rows: of q and v; closure rows are added where q is free, but not of rows that a mask
            switches: a `ContactSchedule` holds those that it closes there.
        periodic: (nq,) growth of each coordinate in a period (zero, or 2π of a crank), NaN where
            the loops determine it: give numbers for as many coordinates as there are freedoms, or
            for all. v returns to its first value.
        near: (nq,) pose near the start, where closure rows are chosen; the authored one by default.
    """

    q0: ArrayLike | None = None
    v0: ArrayLike | None = None
    rows: Sequence[Bounded] = ()
    periodic: ArrayLike | None = None
    near: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_fields(self)


FREE_START = Start()


@summarised
@dataclass(frozen=True)
class StartRows:
    """Rows of the first sample, as many as X has entries.

    Attributes:
        rows: (X) → (g).
        limits: (size, 2), infinite for unused rows.
        names: of each row.
    """

    rows: ca.Function
    limits: Array
    names: tuple[str, ...]


def start_rows(
    system: System,
    variables: StageSymbols,
    layout: TrajectoryLayout,
    options: TrajectoryOptions,
    start: Start,
) -> StartRows:
    """Return all rows of the first sample.

    Args:
        system, variables, layout, options: of the problem.
        start: what it keeps.

    Raises:
        ProblemError: more rows than coordinates.
        ShapeError: a wrong shape, or rows of other symbols.
    """
    rows = _fixed_state_rows(system, variables, start)
    rows += [(f"start[{i}]", row) for i, row in enumerate(start.rows)]
    rows += _closure_rows(system, variables, options.growth, start)
    values = ca.vertcat(ca.SX(0, 1), *(ca.vec(ca.SX(row.value)) for _, row in rows))
    names = [f"{name}[{i}]" for name, row in rows for i in range(ca.SX(row.value).numel())]
    limits = np.vstack([np.empty((0, 2)), *(_ends(name, row) for name, row in rows)])
    if values.numel() > layout.nx:
        raise ProblemError(
            f"{values.numel()} rows at the start ({', '.join(names)}); expected at most one for "
            f"each of the {layout.nx} coordinates and velocities"
        )
    X = ca.SX.sym("X", layout.size)
    fixed = options.spans[:, 0] == options.spans[:, 1]
    x = ca.vertcat(variables.q, variables.v)
    of_x = ca.Function("rows", [x], [ca.densify(values)], {"allow_free": True})
    if of_x.has_free():
        raise ShapeError(
            f"start rows depend on {', '.join(of_x.get_free())}; expected expressions of q and v"
        )
    idle = layout.nx - values.numel()
    values_of_X = ca.vertcat(
        of_x(X[: layout.nx]),
        X[:idle],
        X[layout.durations],
        X[layout.before],
        X[layout.start] - layout.periodic_part(X)[: X[layout.start].numel()],
    )
    free = np.array([-np.inf, np.inf])
    spans = np.where(fixed[:, None], options.spans, free)
    copies = np.zeros((layout.start.stop - layout.start.start, 2))
    before = np.tile(free, (layout.before.stop - layout.before.start, 1))
    names += [f"idle[{i}]" for i in range(idle)]
    names += [f"duration[{i}]" for i in range(layout.phases)]
    names += [f"u_before[{i}]" for i in range(len(before))]
    names += [f"start copy[{i}]" for i in range(len(copies))]
    return StartRows(
        rows=ca.Function("start", [X], [ca.densify(values_of_X)], ["x"], ["g"]),
        limits=np.vstack([limits, np.tile(free, (idle, 1)), spans, before, copies]),
        names=tuple(names),
    )


def complete_start(
    program: Shooting, start: StartRows, options: TrajectoryOptions, layout: TrajectoryLayout
) -> Shooting:
    """Return the program with these rows in place of `x_0 - x0`, and its durations bounded.

    Args:
        program: with `x_0 = x0`.
        start: rows of the first sample.
        options: gives the bounds of the durations.
        layout: of X.
    """
    nx = program.ocp.nx
    g = ca.vertcat(program.g[:nx], start.rows(program.w[:nx]), program.g[2 * nx :])
    g_bounds, w_bounds = program.g_bounds.copy(), program.w_bounds.copy()
    g_bounds[nx : 2 * nx] = start.limits
    # Bounds at the first sample alone: at all samples, active ones would be redundant.
    free = options.spans[:, 0] < options.spans[:, 1]
    w_bounds[layout.durations][free] = options.spans[free]
    return replace(program, g=g, g_bounds=g_bounds, w_bounds=w_bounds)


def _fixed_state_rows(
    system: System, variables: StageSymbols, start: Start
) -> list[tuple[str, Bounded]]:
    sizes = (("q0", variables.q, system.nq), ("v0", variables.v, system.nv))
    rows = []
    for name, symbol, size in sizes:
        value = getattr(start, name)
        if value is not None:
            state_value = column(name, value, size)
            rows.append((name, Bounded(symbol - ca.DM(state_value), 0.0, 0.0)))
    return rows


def _closure_rows(
    system: System,
    variables: StageSymbols,
    growth: Array | None,
    start: Start,
) -> list[tuple[str, Bounded]]:
    """Return closure rows of free coordinates; those with a given growth need none.

    Rows that a mask switches are left to the schedule: off, they are open at the start too.
    """
    open_q = start.q0 is None and (growth is None or bool(np.any(np.isnan(growth))))
    open_v = start.v0 is None and growth is None
    if not (open_q or open_v) or (not system.nc and system.nq == system.nv):
        return []
    near = start.q0 if start.near is None else start.near
    rows = closure(system, variables.q, variables.v, near)
    closures = [("loops", rows.of_q)] * open_q + [("rates of loops", rows.of_v)] * open_v
    return [(name, Bounded(row, 0.0, 0.0)) for name, row in closures if row.numel()]


def _ends(name: str, row: Bounded) -> Array:
    n = ca.SX(row.value).numel()
    sides = [np.broadcast_to(real_array("start", e).ravel(), n) for e in (row.lower, row.upper)]
    return bounds(name, np.column_stack(sides), n)
