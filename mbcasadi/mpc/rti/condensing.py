"""One interval of a real-time iteration: linearised, condensed, run forward and checked.

In deviations (ξ, υ) from the guess the subproblem of an interval is

    ξ⁺ = A ξ + B υ + d,   d = F(x, u) - x⁺,   cost = ½ |r + J_x ξ + J_u υ|²

so that Gauss-Newton's Hessian is `Q = J_xᵀ J_x, S = J_xᵀ J_u, R = J_uᵀ J_u`. The linearised
interval is stored as one column, `lin`, the result of a Riccati step as another, `gain`.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, cast

import casadi as ca
import numpy as np

from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.mpc.rti.constraints import Rows

UNROLLED = 20_000
"""Operations of one interval up to which a part of it is scalar code."""

SPARSEST = 10
"""Products of full matrices have at most this many times the operations of sparse ones here."""


KINDS = (cast(type[ca.MX], ca.SX), ca.MX)
"""Scalars and matrices; both offer the same operations."""


class IntervalFunctions(NamedTuple):
    """The Functions of one interval, N = horizon.

    `cost` is (P, p), (nx, nx + 1): the cost to go is ½ ξᵀ P ξ + pᵀ ξ.
    """

    linearise: ca.Function  # (x, u, p, x_next) → (lin)
    ending: ca.Function  # (x, p) → (cost, rows), rows (ne, nx + 1): Jacobian and value of g_N
    riccati: ca.Function  # (cost, lin) → (cost, gain)
    rows: ca.Function  # (X, lin, gain, place) → (X, rows transposed)
    motion: ca.Function  # (xi, w, lin, gain) → (xi, upsilon)
    along: ca.Function  # (xi, upsilon, lin) → (g), the rows of the path
    adjoint: ca.Function  # (costate, lin, xi, upsilon, mu) → (costate, slope, size)
    gap: slice  # rows of lin that hold d


def interval_functions(ocp: OptimalControlProblem, rows: Rows) -> IntervalFunctions:
    """Return the Functions of a problem."""
    nx, nu = ocp.nx, ocp.nu
    gain = {"U_inv": (nu, nu), "K": (nu, nx), "kappa": (nu, 1)}
    linearise, patterns = _linearise(ocp)
    patterns_of = {"lin": patterns, "gain": {k: ca.Sparsity.dense(*n) for k, n in gain.items()}}

    def shortest_form(
        build: Callable[..., ca.Function], products: int, *arguments: Rows
    ) -> ca.Function:
        """Return the Function in scalars, or in matrices (loops) where it is long."""
        for kind in KINDS if products <= SPARSEST * UNROLLED else KINDS[1:]:
            columns = [_column(kind, *column) for column in patterns_of.items()]
            function = build(ocp, *arguments, *columns)
            if _is_small(function):
                break
        return function

    return IntervalFunctions(
        linearise=linearise,
        ending=_ending(ocp),
        riccati=shortest_form(_riccati, 4 * nx**3),
        rows=shortest_form(_rows, 2 * nx * (nx + 2 * nu) * nu * ocp.horizon, rows),
        motion=shortest_form(_motion, 2 * nx * nx),
        along=shortest_form(_along, 2 * nx * rows.values),
        adjoint=shortest_form(_adjoint, 2 * nx * (nx + rows.values), rows),
        gap=_place("d", patterns),
    )


class _Column(NamedTuple, Generic[Sym]):
    whole: Sym
    blocks: dict[str, Sym]


def _column(kind: type[Sym], name: str, patterns: dict[str, ca.Sparsity]) -> _Column[Sym]:
    whole = kind.sym(name, sum(pattern.nnz() for pattern in patterns.values()))
    ends = np.cumsum([0, *(pattern.nnz() for pattern in patterns.values())]).tolist()
    slices = ca.vertsplit(whole, ends)
    pairs = zip(patterns.items(), slices, strict=True)
    return _Column(whole, {key: kind(pattern, part) for (key, pattern), part in pairs})


def _place(name: str, patterns: dict[str, ca.Sparsity]) -> slice:
    """Return the rows of a column that hold this block."""
    names = list(patterns)
    start = sum(patterns[before].nnz() for before in names[: names.index(name)])
    return slice(start, start + patterns[name].nnz())


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
        "s": J_u.T @ r,
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
    if not _is_small(expanded):
        return function
    symbols = expanded.sx_in()
    return ca.Function(expanded.name(), symbols, expanded.call(symbols), {"cse": True})


def _is_small(function: ca.Function) -> bool:
    return bool(function.is_a("SXFunction")) and function.n_instructions() <= UNROLLED


def _riccati(ocp: OptimalControlProblem, of_lin: _Column[Sym], _: _Column[Sym]) -> ca.Function:
    """Return one step back, in which the cost becomes ½ |w|² and a cost to go.

    w = U (υ + K ξ + κ),   Uᵀ U = R + Bᵀ P B
    """
    lin, nx = of_lin.blocks, ocp.nx
    cost = type(of_lin.whole).sym("cost", nx, nx + 1)
    P, p = cost[:, :nx], cost[:, nx]
    PA, PB, g = P @ lin["A"], P @ lin["B"], P @ lin["d"] + p
    U_inv = _inverse_root(ocp.nu)(ca.densify(lin["R"] + lin["B"].T @ PB))
    half_gain = U_inv.T @ (lin["S"].T + lin["B"].T @ PA)
    half_offset = U_inv.T @ (lin["s"] + lin["B"].T @ g)
    P_next = lin["Q"] + lin["A"].T @ PA - half_gain.T @ half_gain
    p_next = lin["q"] + lin["A"].T @ g - half_gain.T @ half_offset
    gain = ca.vertcat(ca.vec(U_inv), ca.vec(U_inv @ half_gain), U_inv @ half_offset)
    return _dense_function("riccati", [cost, of_lin.whole], [ca.horzcat(P_next, p_next), gain])


def _inverse_root(n: int) -> ca.Function:
    """Return (S) → (U⁻¹) with `Uᵀ U = S`, U upper triangular."""
    S = ca.SX.sym("S", n, n)
    return ca.Function("inverse_root", [S], [ca.densify(ca.solve(ca.chol(S), ca.SX.eye(n)))])


def _rows(
    ocp: OptimalControlProblem, rows: Rows, of_lin: _Column[Sym], of_gain: _Column[Sym]
) -> ca.Function:
    """Return the derivatives by all w of the rows of an interval and of the state at its end."""
    lin, gain, kind = of_lin.blocks, of_gain.blocks, type(of_lin.whole)
    X, place = kind.sym("X", ocp.nx, ocp.horizon * ocp.nu), kind.sym("place", ocp.horizon)
    upsilon = ca.kron(place.T, gain["U_inv"]) - gain["K"] @ X
    X_next = lin["A"] @ X + lin["B"] @ upsilon
    values = ca.vertcat(upsilon, rows.choose @ X_next, lin["G_x"] @ X + lin["G_u"] @ upsilon)
    row_values = ca.sparsify(ca.DM(rows.interval.T)) @ values
    return _dense_function("rows", [X, of_lin.whole, of_gain.whole, place], [X_next, row_values.T])


def _motion(ocp: OptimalControlProblem, of_lin: _Column[Sym], of_gain: _Column[Sym]) -> ca.Function:
    lin, gain, kind = of_lin.blocks, of_gain.blocks, type(of_lin.whole)
    xi, w = kind.sym("xi", ocp.nx), kind.sym("w", ocp.nu)
    upsilon = gain["U_inv"] @ w - gain["K"] @ xi - gain["kappa"]
    xi_next = lin["A"] @ xi + lin["B"] @ upsilon + lin["d"]
    return _dense_function("motion", [xi, w, of_lin.whole, of_gain.whole], [xi_next, upsilon])


def _along(ocp: OptimalControlProblem, of_lin: _Column[Sym], _: _Column[Sym]) -> ca.Function:
    lin, kind = of_lin.blocks, type(of_lin.whole)
    xi, upsilon = kind.sym("xi", ocp.nx), kind.sym("upsilon", ocp.nu)
    g = lin["g"] + lin["G_x"] @ xi + lin["G_u"] @ upsilon
    return _dense_function("along", [xi, upsilon, of_lin.whole], [g])


def _adjoint(
    ocp: OptimalControlProblem, rows: Rows, of_lin: _Column[Sym], _: _Column[Sym]
) -> ca.Function:
    """Return the gradient by υ, from the interval's own numbers, and the size of its terms.

    A unit of control counts as a term too, because at rest all others vanish.
    """
    lin, nu, ns, kind = of_lin.blocks, ocp.nu, len(rows.states), type(of_lin.whole)
    xi, upsilon = kind.sym("xi", ocp.nx), kind.sym("upsilon", nu)
    costate, mu = kind.sym("costate", ocp.nx), kind.sym("mu", rows.values)
    on_path = mu[nu + ns :, 0]
    by_rows = mu[:nu, 0] + lin["G_u"].T @ on_path
    total = costate + rows.choose.T @ mu[nu : nu + ns, 0]
    by_cost = lin["s"] + lin["S"].T @ xi + lin["R"] @ upsilon
    by_costate = lin["B"].T @ total
    size = ca.sumsqr(by_cost) + ca.sumsqr(by_costate) + ca.sumsqr(by_rows) + ca.sumsqr(lin["R"])
    earlier = lin["q"] + lin["Q"] @ xi + lin["S"] @ upsilon + lin["A"].T @ total
    inputs = [costate, of_lin.whole, xi, upsilon, mu]
    earlier += lin["G_x"].T @ on_path
    return _dense_function("adjoint", inputs, [earlier, by_cost + by_costate + by_rows, size])


def _dense_function(name: str, inputs: list[Sym], outputs: list[Sym]) -> ca.Function:
    return ca.Function(name, inputs, [ca.densify(part) for part in outputs], {"cse": True})
