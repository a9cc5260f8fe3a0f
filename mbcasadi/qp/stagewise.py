"""A problem over a horizon: its matrices, its solution by a sparse plugin, residuals of one.

The plugin takes all states and controls as unknowns. The generated C solves by recursions
(`stagewise.c.in`); the two share no code.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.description.stagewise_qp import StagewiseQP, StagewiseRows
from mbcasadi.linalg.loops import Body, loop_function
from mbcasadi.qp.kkt_residuals import positive
from mbcasadi.qp.plugins import HORIZON_SOLVER

Array = NDArray[np.float64]


class IntervalBlocks(NamedTuple):
    """The matrices of an interval, `x⁺ = A z + d`."""

    A: ca.MX
    d: ca.MX
    H: ca.MX
    g: ca.MX
    G: ca.MX
    lower: ca.MX
    upper: ca.MX


def interval_blocks(problem: StagewiseQP, column: ca.MX) -> IntervalBlocks:
    """Return the matrices from the data of an interval."""
    part = {name: column[place] for name, place in problem.column.items()}
    na, nb, nu = problem.na, problem.nb, problem.nu
    F = ca.MX(problem.F, part["F"])
    y_of_z = ca.vertcat(ca.MX.eye(problem.nz), F)
    A, d = F[:nb, :], part["d_b"]
    if na:
        Phi = _with_rotations(problem, part["Phi"], 1.0)
        length = part["step"] if problem.step is None else problem.step
        Gamma = _with_rotations(problem, part["Gamma"], length)
        of_a = ca.horzcat(ca.MX(na, nu), Phi, ca.MX(na, nb))
        d = ca.vertcat(Gamma @ d[:na] + part["d_a"], d)
        A = ca.vertcat(of_a + Gamma @ A[:na, :], A)
    H = y_of_z.T @ _symmetric(problem.H, part["H"]) @ y_of_z
    G = _by_rows(problem.inside, part["G"]) @ y_of_z
    return IntervalBlocks(A, d, H, part["g"], G, part["lower"], part["upper"])


def end_blocks(problem: StagewiseQP, data: ca.MX) -> IntervalBlocks:
    """Return the matrices of the end; there is no motion."""
    column = data[problem.horizon * problem.column_size :]
    part = {name: column[place] for name, place in problem.end.items()}
    H, G = _symmetric(problem.H_end, part["H"]), _by_rows(problem.at_end, part["G"])
    nothing = ca.MX(0, problem.nx), ca.MX(0, 1)
    return IntervalBlocks(*nothing, H, part["g"], G, part["lower"], part["upper"])


def columns_of(problem: StagewiseQP, data: ca.MX) -> ca.MX:
    """Return the data of all intervals, one column for each."""
    size = problem.horizon * problem.column_size
    return ca.reshape(data[:size], problem.column_size, problem.horizon)


def _symmetric(upper: ca.Sparsity, nonzeros: ca.MX) -> ca.MX:
    H = ca.MX(upper, nonzeros)
    return H + H.T - ca.diag(ca.diag(H))


def _by_rows(rows: StagewiseRows, nonzeros: ca.MX) -> ca.MX:
    return ca.MX(rows.G.T, nonzeros).T


def _with_rotations(problem: StagewiseQP, blocks: ca.MX, unit: ca.MX | float) -> ca.MX:
    """Return the identity times `unit` with these blocks of three, row by row."""
    parts, first = list[ca.MX](), 0
    for k, start in enumerate(problem.rotations):
        block = ca.reshape(blocks[9 * k : 9 * k + 9], 3, 3).T
        parts += [unit * ca.MX.eye(start - first), block]
        first = start + 3
    return ca.diagcat(*parts, unit * ca.MX.eye(problem.na - first))


def solve_stagewise(
    problem: StagewiseQP, data: ca.MX, x_first: ca.MX
) -> tuple[ca.MX, ca.MX, ca.MX]:
    """Return z (n,) of all intervals, the multipliers of all rows (m,), and a `SolverFlag`.

    Args:
        problem, data: the problem.
        x_first: (nx,) the first state.
    """
    N, nx, nu, nz = problem.horizon, problem.nx, problem.nu, problem.nz
    posed = _is_posed(problem, data, x_first)
    data = ca.if_else(posed, data, _without_meaning(problem))
    x_first = ca.if_else(posed, x_first, 0)
    intervals = [interval_blocks(problem, c) for c in ca.horzsplit(columns_of(problem, data))]
    end = end_blocks(problem, data)
    blocks, width = [*intervals, end], N * nz + nx
    prices = np.vstack([np.tile(problem.inside.prices, (N, 1)), problem.at_end.prices])
    soft = np.flatnonzero(np.isfinite(prices[:, 0]))
    slacks, m = soft.size, problem.m
    H = ca.diagcat(*(block.H for block in blocks), ca.diag(ca.DM(prices[soft, 1])))
    g = ca.vertcat(*(block.g for block in blocks), ca.DM(prices[soft, 0]))
    first = ca.horzcat(ca.DM(nx, nu), ca.DM.eye(nx), ca.DM(nx, width - nz))
    motions = [ca.MX(first)]
    for k, block in enumerate(intervals):
        ahead = ca.DM.eye(nx) if k + 1 == N else ca.horzcat(ca.DM(nx, nu), ca.DM.eye(nx))
        behind = width - (k + 1) * nz - ahead.shape[1]
        motions.append(ca.horzcat(ca.DM(nx, k * nz), -block.A, ahead, ca.DM(nx, behind)))
    G = ca.diagcat(*(block.G for block in blocks))
    E = ca.sparsify(ca.DM(np.eye(m)[:, soft]))
    motion = ca.horzcat(ca.vertcat(*motions), ca.MX((N + 1) * nx, slacks))
    signs = ca.horzcat(ca.DM(slacks, width), ca.DM.eye(slacks))
    fixed = ca.vertcat(x_first, *(block.d for block in intervals))
    lower, upper = (ca.vertcat(*(getattr(b, side) for b in blocks)) for side in ("lower", "upper"))
    sides, is_soft = _sides(problem), np.isfinite(prices[:, 0])
    both, low, high = (
        np.flatnonzero(chosen).tolist()
        for chosen in (
            ~is_soft & sides.any(axis=1),
            is_soft & sides[:, 0],
            is_soft & sides[:, 1],
        )
    )
    # a soft row gives way by one slack, at either bound; those of hard rows may be infinite
    A = ca.vertcat(
        motion,
        ca.horzcat(G[both, :], ca.MX(len(both), slacks)),
        ca.horzcat(G[low, :], E[low, :]),
        ca.horzcat(G[high, :], -E[high, :]),
        signs,
    )
    far = np.where(sides, 0.0, [[-np.inf, np.inf]])
    of_both = [
        ca.if_else(ca.DM(sides[both, i].astype(float)), bound[both, 0], ca.DM(far[both, i]))
        for i, bound in enumerate((lower, upper))
    ]
    none = [ca.DM(np.full(len(rows), np.inf)) for rows in (high, low, range(slacks))]
    bounds = (
        ca.vertcat(fixed, of_both[0], lower[low, 0], -none[0], ca.DM.zeros(slacks)),
        ca.vertcat(fixed, of_both[1], none[1], upper[high, 0], none[2]),
    )
    # in units in which numbers are about one: the plugin stops by absolute ones
    stiffness = np.concatenate([np.tile(problem.inside.stiffness, N), problem.at_end.stiffness])
    order, roots = [*both, *low, *high], np.sqrt(stiffness)
    of_x = problem.units[nu:]
    unit = np.concatenate([np.tile(problem.units, N), of_x, 1 / roots[soft]])
    of_rows = np.concatenate([np.tile(1 / of_x, N + 1), roots[order], roots[soft]])
    column, row = (ca.sparsify(ca.diag(ca.DM(part))) for part in (unit, of_rows))
    H, g, A = column @ H @ column, column @ g, row @ A @ column
    size = ca.mmax(ca.fabs(ca.vertcat(g, row[: fixed.numel(), : fixed.numel()] @ fixed)))
    size = ca.if_else(size > 0, size, 1)
    pattern = {"h": H.sparsity(), "a": A.sparsity()}
    conic = ca.conic("horizon", "piqp", pattern, HORIZON_SOLVER | {"error_on_fail": False})
    solution = conic(h=H, g=g / size, a=A, lba=row @ bounds[0] / size, uba=row @ bounds[1] / size)
    w, of_all = size * column @ solution["x"], size * row @ solution["lam_a"]
    place, first_row = ca.sparsify(ca.DM(np.eye(m)[:, order])), fixed.numel()
    lam = place @ of_all[first_row : first_row + len(order)]
    flag = ca.if_else(posed, SolverFlag.OPTIMAL, SolverFlag.STOPPED)
    return w[: problem.n], lam, flag


def _is_posed(problem: StagewiseQP, data: ca.MX, x_first: ca.MX) -> ca.MX:
    """Return whether all numbers are finite, and no lower bound is above the upper one."""
    columns, end = columns_of(problem, data), end_blocks(problem, data)
    room = columns[problem.column["upper"], :] - columns[problem.column["lower"], :]
    room = ca.vertcat(ca.vec(room), end.upper - end.lower)
    ordered = ca.mmin(room) >= 0 if room.numel() else ca.MX(1)
    return ca.logic_and(_is_finite(ca.vertcat(data, x_first)), ordered)


def _is_finite(value: ca.MX) -> ca.MX:
    """Return whether all entries are finite."""
    return ca.sum1(ca.fabs(value)) < ca.inf


def _without_meaning(problem: StagewiseQP) -> ca.DM:
    """Return the data of a problem that a plugin takes in place of one it would refuse."""
    column, end = np.zeros(problem.column_size), np.zeros(problem.end_size)
    for part, places, H in ((column, problem.column, problem.H), (end, problem.end, problem.H_end)):
        part[places["H"]] = np.equal(H.row(), H.get_col())
        part[places["lower"]], part[places["upper"]] = -1.0, 1.0
    return ca.DM(np.concatenate([np.tile(column, problem.horizon), end]))


def _sides(problem: StagewiseQP) -> NDArray[np.bool_]:
    """Return (m, 2) which bounds there are."""
    inside = np.tile(problem.inside.sides, (problem.horizon, 1))
    inside[list(problem.inside.free_at_first)] = False
    return np.vstack([inside, problem.at_end.sides])


class Judged(NamedTuple):
    """A solution: its states (nx, N + 1) and controls (nu, N), slacks (m,), three residuals.

    `costates` (nx, N) are those behind each interval, the prices of its gap.
    """

    X: ca.MX
    U: ca.MX
    slack: ca.MX
    residual: ca.MX
    costates: ca.MX


def judged(
    problem: StagewiseQP, data: ca.MX, x_first: ca.MX, z: ca.MX, multipliers: ca.MX
) -> Judged:
    """Return the motion of the controls in z, and residuals: primal, stationarity, complementarity.

    The motion runs forward from the first state, costates backward. A soft row may be violated by
    what its multiplier pays for, `(|lam| - t₁) / t₂`. Stationarity is relative to the terms of the
    slope by u, one unit of control among them; violations to the size of the rows' values.
    """
    N, columns, end = problem.horizon, columns_of(problem, data), end_blocks(problem, data)
    U = ca.reshape(z, problem.nz, N)[: problem.nu, :]
    inside = N * problem.inside.count
    lengths = columns[problem.column["step"], :] if problem.step is None else ca.MX(problem.step)
    states, values = _motion_all_fun(problem).call([x_first, U, columns, lengths])
    X = ca.horzcat(x_first, states)
    lam = ca.reshape(multipliers[:inside], problem.inside.count, N)
    lam_end, x_end = multipliers[inside:, 0], X[:, N]
    costate = ca.densify(end.H @ x_end + end.g + end.G.T @ lam_end)
    arguments = [costate, X[:, :N], U, lam, columns, lengths]
    slope, size, costates = _costate_all_fun(problem).call(arguments)
    value = ca.vertcat(ca.vec(values), end.G @ x_end)
    lower = ca.vertcat(ca.vec(columns[problem.column["lower"], :]), end.lower)
    upper = ca.vertcat(ca.vec(columns[problem.column["upper"], :]), end.upper)
    slack = _slack(problem, multipliers)
    above, below = value - slack - upper, lower - value - slack
    extent, scale = 1 + ca.norm_2(value), ca.sqrt(ca.sum2(size))
    residual = ca.vertcat(
        ca.norm_2(positive(above) + positive(below)) / extent,
        ca.norm_2(ca.vec(slope)) / scale,
        ca.sum1(ca.fabs(multipliers * ca.if_else(multipliers > 0, above, below)))
        / (scale * extent),
    )
    return Judged(X, U, slack, residual, costates)


def _slack(problem: StagewiseQP, lam: ca.MX) -> ca.MX:
    """Return (m,) what the multipliers of soft rows pay for; zero for hard ones."""
    free = of_all_rows(problem, lambda prices: finite(prices[:, 0]))
    rate = of_all_rows(problem, lambda prices: finite(1 / prices[:, 1]))
    return rate * positive(ca.fabs(lam) - free)


def of_all_rows(problem: StagewiseQP, value: Callable[[Array], Array]) -> ca.MX:
    """Return (m,) a value of all rows by their prices (rows, 2); in C one interval serves all."""
    inside, at_end = (ca.MX(ca.DM(value(r.prices))) for r in (problem.inside, problem.at_end))
    column: ca.MX = ca.vertcat(ca.repmat(inside, problem.horizon, 1), at_end)
    return column


def finite(values: Array) -> Array:
    """Return the values, and zeros in place of infinite ones."""
    return np.where(np.isfinite(values), values, 0.0)


def _motion_all_fun(problem: StagewiseQP) -> ca.Function:
    """Return (x, U, columns, step) → (states behind intervals, values of their rows), in a loop.

    `step` is the length of all intervals, or one for each.
    """
    N, forward = problem.horizon, _motion_fun(problem)

    def body(x: ca.MX, U: ca.MX, columns: ca.MX, _: ca.MX) -> list[ca.MX]:
        found = []
        for k in range(N):
            x, values = forward.call([x, U[:, k], columns[:, k]])
            found.append((x, values))
        return [ca.horzcat(*parts) for parts in zip(*found, strict=True)]

    places = ("Phi", "Gamma", "d_a", "d_b", "G")
    shapes = ((problem.nx, 1), (problem.nu, N), (problem.column_size, N), (1, _lengths(problem)))
    return _loop_over_horizon("loops_horizon_motion", problem, shapes, body, places)


def _costate_all_fun(problem: StagewiseQP) -> ca.Function:
    """Return (costate, X, U, lam, columns, step) → (slopes by u, squares of their terms, costates).

    The last interval is the first column of slopes and squares; costates behind the intervals are
    in their order. It is a loop.
    """
    N, backward = problem.horizon, _costate_fun(problem)

    def body(
        costate: ca.MX, X: ca.MX, U: ca.MX, lam: ca.MX, columns: ca.MX, _: ca.MX
    ) -> list[ca.MX]:
        found, behind = [], list[ca.MX]()
        for k in reversed(range(N)):
            behind.insert(0, costate)
            costate, *rest = backward.call([costate, *(x[:, k] for x in (X, U, lam, columns))])
            found.append(rest)
        slopes = [ca.horzcat(*parts) for parts in zip(*found, strict=True)]
        return [*slopes, ca.horzcat(*behind)]

    nx, nu, count = problem.nx, problem.nu, problem.inside.count
    lengths = (1, _lengths(problem))
    shapes = ((nx, 1), (nx, N), (nu, N), (count, N), (problem.column_size, N), lengths)
    places = ("Phi", "Gamma", "H", "g", "G")
    tables = (problem.H.colind(), problem.H.row())
    return _loop_over_horizon("loops_horizon_costate", problem, shapes, body, places, tables)


def _lengths(problem: StagewiseQP) -> int:
    """Return the number of lengths: one for each interval, or one of all."""
    return problem.horizon if problem.step is None else 1


def _loop_over_horizon(
    routine: str,
    problem: StagewiseQP,
    shapes: Sequence[tuple[int, int]],
    body: Body,
    places: Sequence[str],
    tables: Sequence[Sequence[int]] = (),
) -> ca.Function:
    """Return a Function that is a loop over the columns of all intervals in C (`linalg.loops`)."""
    stride = int(problem.step is None)
    by_row, starts = problem.inside.G.T, [problem.column[name].start for name in places]
    sizes = (problem.horizon, problem.nu, problem.na, problem.nb, problem.nf, problem.inside.count)
    patterns = (problem.F, by_row)
    pattern_tables = [table for part in patterns for table in (part.colind(), part.row())]
    return loop_function(
        routine,
        [ca.Sparsity.dense(*shape) for shape in shapes],
        body,
        sizes=(*sizes, problem.column_size, len(problem.rotations), stride, *starts),
        tables=(*pattern_tables, problem.rotations or (0,), *tables),
        work=4 * problem.ny,
    )


def _motion_fun(problem: StagewiseQP) -> ca.Function:
    """Return (x, u, column) → (x_next, values of the rows)."""
    x, u = ca.MX.sym("x", problem.nx), ca.MX.sym("u", problem.nu)
    column = ca.MX.sym("column", problem.column_size)
    block, z = interval_blocks(problem, column), ca.vertcat(u, x)
    outputs = [ca.densify(block.A @ z + block.d), ca.densify(block.G @ z)]
    return ca.Function("motion", [x, u, column], outputs)


def _curvature_by_control(problem: StagewiseQP, column: ca.MX) -> ca.MX:
    """Return (nu,) the curvature of the cost by each control, by the diagonal of H."""
    diagonal = ca.diag(ca.MX(problem.H, column[problem.column["H"]]))
    by_control = ca.MX(problem.F, column[problem.column["F"]])[:, : problem.nu]
    curvature: ca.MX = diagonal[: problem.nu] + (by_control**2).T @ diagonal[problem.nz :]
    return ca.densify(curvature)


def _costate_fun(problem: StagewiseQP) -> ca.Function:
    """Return (costate, x, u, lam, column) → (costate before, slope by u, squares of its terms)."""
    x, u = ca.MX.sym("x", problem.nx), ca.MX.sym("u", problem.nu)
    costate, lam = ca.MX.sym("costate", problem.nx), ca.MX.sym("lam", problem.inside.count)
    column = ca.MX.sym("column", problem.column_size)
    block = interval_blocks(problem, column)
    by_cost = ca.densify(block.H @ ca.vertcat(u, x) + block.g)
    by_motion, by_rows = ca.densify(block.A.T @ costate), ca.densify(block.G.T @ lam)
    slope, nu = by_cost + by_motion + by_rows, problem.nu
    size = sum(ca.sumsqr(part[:nu]) for part in (by_cost, by_motion, by_rows))
    size += ca.sumsqr(_curvature_by_control(problem, column))
    inputs = [costate, x, u, lam, column]
    return ca.Function("costate", inputs, [slope[nu:], slope[:nu], size])
