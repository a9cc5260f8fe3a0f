"""An optimal control problem about a guess, as a stagewise linear-quadratic problem.

In deviations (ξ, υ) from the guess the subproblem of an interval is

    ξ⁺ = A ξ + B υ + d,   d = F(x, u) - x⁺,   cost = ½ |r + J_x ξ + J_u υ|²

so that Gauss-Newton's Hessian is `Q = J_xᵀ J_x, S = J_xᵀ J_u, R = J_uᵀ J_u`. The linearised
interval is stored as one column, `lin`.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.mpc.lq.horizon import Horizon, Phase
from mbcasadi.mpc.lq.interval import BoundedValues, Interval, blocks_of, is_small, recursion
from mbcasadi.mpc.lq.rows import HorizonRows, StageRows
from mbcasadi.mpc.ocp.constraints import end_rows, row_set
from mbcasadi.mpc.ocp.problem import OptimalControlProblem


class Linearised(NamedTuple):
    """The Functions of a problem about its guess, and its horizon.

    Attributes:
        interval: (x, u, p, x_next) → (lin).
        end: (x, p) → (cost, rows), (nx, nx + 1) and (ne, nx + 1), see `lq.horizon.End`.
        slope: (lin, ξ, υ) → derivative of the cost of an interval along (ξ, υ).
        gap: rows of lin that hold d.
        horizon: of intervals with the data `lin`.
        contradicts: whether hard rows can be infeasible; those of controls alone cannot.
    """

    interval: ca.Function
    end: ca.Function
    slope: ca.Function
    gap: slice
    horizon: Horizon
    contradicts: bool


def linearised(ocp: OptimalControlProblem) -> Linearised:
    """Return a problem about its guess: all controls, bounded states, path and end are rows."""
    linearise, patterns = _linearise(ocp)
    states = np.flatnonzero(np.isfinite(ocp.x_bounds).any(axis=1)).tolist()
    bounds = np.vstack([ocp.u_bounds, ocp.x_bounds[states], ocp.path_bounds])
    hard = np.full((ocp.nu + len(states), 2), np.inf)
    penalties = ocp.path_penalties
    of_interval = row_set(bounds, hard if penalties is None else np.vstack([hard, penalties]))
    bounded, of_end = BoundedValues(controls=True, states=states, rows=of_interval), end_rows(ocp)

    def interval(kind: type[ca.MX]) -> Interval[ca.MX]:
        lin, blocks = blocks_of(kind, "lin", patterns)
        return Interval((lin,), **blocks)

    # The first state is given: rows of the path without a control begin one sample later.
    of_state = {ocp.nu + len(states) + i for i in ocp.rows_of_state}
    given = [i for i, y in enumerate(of_interval.places) if y in of_state]
    x = ocp.names("x")
    labels = (*ocp.names("u"), *(x[i] for i in states), *ocp.names("path"))
    rows = HorizonRows(
        ocp.nu * ocp.horizon,
        (StageRows(ocp.horizon, of_interval, labels), StageRows(1, of_end, ocp.names("end"))),
        tuple(given),
    )
    functions = recursion(interval, bounded, (0, ocp.horizon, 0))
    phase = Phase(ocp.horizon, ocp.nu, bounded, functions)
    start = sum(patterns[key].nnz() for key in list(patterns)[: list(patterns).index("d")])
    hard_rows = [
        place
        for place, slack in zip(of_interval.places, of_interval.W, strict=True)
        if not np.any(slack)
    ]
    return Linearised(
        interval=linearise,
        end=_ending(ocp),
        slope=_slope(ocp, patterns),
        gap=slice(start, start + ocp.nx),
        horizon=Horizon(ocp.nx, (phase,), rows),
        contradicts=any(place >= ocp.nu for place in hard_rows)
        or any(not np.any(slack) for slack in of_end.W),
    )


def _linearise(ocp: OptimalControlProblem) -> tuple[ca.Function, dict[str, ca.Sparsity]]:
    """Return all Jacobians in one column, and their patterns in it.

    They are by x and u together, so the dynamics factor their matrices once.
    """
    nx, w = ocp.nx, ca.MX.sym("w", ocp.nx + ocp.nu)
    p, x_next = ca.MX.sym("p", ocp.np_), ca.MX.sym("x_next", nx)
    F, r, g = (part(w[:nx], w[nx:], p) for part in (ocp.dynamics, ocp.residual, ocp.path))
    G, J, D = (ca.jacobian(part, w) for part in (F, r, g))
    J_x, J_u = J[:, :nx], J[:, nx:]
    blocks = {
        "A": G[:, :nx],
        "B": G[:, nx:],
        "Q": J_x.T @ J_x,
        "S": J_x.T @ J_u,
        "R": J_u.T @ J_u,
        "q": J_x.T @ r,
        "r": J_u.T @ r,
        "d": ca.densify(F - x_next),
        "G_x": D[:, :nx],
        "G_u": D[:, nx:],
        "g": ca.densify(g),
    }
    column = ca.vertcat(*(_entries(block) for block in blocks.values()))
    at_w = ca.Function("linearise_w", [w, p, x_next], [column])
    x, u = ca.MX.sym("x", nx), ca.MX.sym("u", ocp.nu)
    column = at_w(ca.vertcat(x, u), p, x_next)
    function = _small(ca.Function("linearise", [x, u, p, x_next], [column]))
    return function, {key: block.sparsity() for key, block in blocks.items()}


def _slope(ocp: OptimalControlProblem, patterns: dict[str, ca.Sparsity]) -> ca.Function:
    """Return (lin, ξ, υ) → derivative of the cost of an interval along (ξ, υ)."""
    lin, blocks = blocks_of(ca.MX, "lin", patterns)
    x, u = ca.MX.sym("x", ocp.nx), ca.MX.sym("u", ocp.nu)
    return ca.Function("slope", [lin, x, u], [ca.dot(blocks["q"], x) + ca.dot(blocks["r"], u)])


def _entries(block: ca.MX) -> ca.MX:
    """Return the nonzeros as a column."""
    count = block.nnz()
    return ca.reshape(block.nz[:], count, 1) if count else ca.MX(0, 1)


def _ending(ocp: OptimalControlProblem) -> ca.Function:
    x, p = ca.MX.sym("x", ocp.nx), ca.MX.sym("p", ocp.np_)
    r, g = ocp.terminal(x, p), ocp.end(x, p)
    J = ca.jacobian(r, x)
    cost = ca.densify(ca.horzcat(J.T @ J, J.T @ r))
    rows = ca.densify(ca.horzcat(ca.jacobian(g, x), g))
    return ca.Function("ending", [x, p], [cost, rows])


def _small(function: ca.Function) -> ca.Function:
    """Return the Function in scalars where all Functions in it are scalar and short."""
    inner = ca.Function.find_functions(function)
    if not all(
        function_inside.is_a("SXFunction") or function_inside.is_a("MXFunction")
        for function_inside in inner
    ):
        return function
    expanded = function.expand()
    if not is_small(expanded):
        return function
    symbols = expanded.sx_in()
    return ca.Function(expanded.name(), symbols, expanded.call(symbols), {"cse": True})
