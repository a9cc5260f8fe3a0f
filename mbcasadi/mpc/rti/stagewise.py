"""An optimal control problem about a guess, as the data of a `StagewiseQP`.

Rows of an interval are its controls, its state and its path; those of the end are its state and the
rows of the end. Rows of the first state alone are none: it is given.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.stagewise_qp import StagewiseQP, StagewiseRows
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.rti.linearise import derivative_blocks
from mbcasadi.qp.stagewise import columns_of, end_blocks, interval_blocks

FLAT = 1e-9
"""Share of the largest curvature of the cost that a direction has at least, for stiffnesses."""


@dataclass(frozen=True)
class StagewiseLinearised:
    """The Functions of a problem about its guess.

    Attributes:
        interval: (x, u, p, x_next, is_first) → (column) of the data.
        end: (x, p) → (column).
        problem: the problem.
    """

    interval: ca.Function
    end: ca.Function
    problem: StagewiseQP

    def data(self, X: ca.MX, U: ca.MX, P: ca.MX) -> ca.MX:
        """Return the data about a guess (nx, N + 1), (nu, N) with parameters (np, N + 1)."""
        N = self.problem.horizon
        is_first = ca.DM(np.eye(N)[:1])
        columns = self.interval.map(N)(X[:, :N], U, P[:, :N], X[:, 1:], is_first)
        return ca.vertcat(ca.vec(columns), self.end(X[:, N], P[:, N]))


def stagewise(ocp: OptimalControlProblem, guess: tuple[Array, Array]) -> StagewiseLinearised:
    """Return a problem about its guess.

    Args:
        ocp: the problem.
        guess: X (nx, N + 1) and U (nu, N) at which the stiffness of rows is measured.

    Raises:
        ProblemError: the cost does not determine every control at the guess.
    """
    states = np.flatnonzero(np.isfinite(ocp.x_bounds).any(axis=1)).tolist()
    hard = np.full((ocp.nu + len(states), 2), np.inf)
    prices = [np.vstack([hard, _prices(ocp.path_penalties, len(ocp.path_bounds))])]
    prices += [np.vstack([hard[ocp.nu :], _prices(ocp.end_penalties, len(ocp.end_bounds))])]
    interval, patterns = _interval(ocp, states)
    end, patterns_end = _end(ocp, states)
    problem = StagewiseQP(
        horizon=ocp.horizon,
        nu=ocp.nu,
        na=0,
        nb=ocp.nx,
        F=patterns["F"],
        H=patterns["H"],
        H_end=patterns_end["H"],
        inside=StagewiseRows(
            patterns["G"].T,
            prices[0],
            np.ones(len(prices[0])),
            np.isfinite(np.vstack([ocp.u_bounds, ocp.x_bounds[states], ocp.path_bounds])),
            tuple(np.flatnonzero(_is_of_state(ocp, len(states)).full().ravel()).tolist()),
        ),
        at_end=StagewiseRows(
            patterns_end["G"].T,
            prices[1],
            np.ones(len(prices[1])),
            np.isfinite(np.vstack([ocp.x_bounds[states], ocp.end_bounds])),
        ),
        rotations=(),
        step=ocp.period,
    )
    plain = StagewiseLinearised(interval, end, problem)
    X, U = (ca.MX(ca.DM(part)) for part in guess)
    data = ca.evalf(plain.data(X, U, ca.MX(ca.DM(ocp.parameters().T))))
    measured = _stiffness(problem, data)
    if measured is None:
        raise undetermined(ocp.name)
    inside, at_end = measured
    return replace(
        plain,
        problem=replace(
            problem,
            inside=replace(problem.inside, stiffness=inside),
            at_end=replace(problem.at_end, stiffness=at_end),
        ),
    )


def undetermined(name: str) -> ProblemError:
    """Return the error of a problem whose cost does not determine every control at the guess."""
    return ProblemError(
        f"'{name}' leaves some control without cost, or its dynamics are not finite at the guess; "
        "expected R, S or another cost of every control, and a guess of numbers"
    )


def _prices(penalties: Array | None, count: int) -> Array:
    return np.full((count, 2), np.inf) if penalties is None else penalties


def _interval(
    ocp: OptimalControlProblem, states: list[int]
) -> tuple[ca.Function, dict[str, ca.Sparsity]]:
    """Return the column of an interval, and the patterns of its matrices; G is transposed."""
    nx, nu, w = ocp.nx, ocp.nu, ca.MX.sym("w", ocp.nx + ocp.nu)
    p, x_next, is_first = ca.MX.sym("p", ocp.np_), ca.MX.sym("x_next", nx), ca.MX.sym("first")
    x, u = w[:nx], w[nx:]
    blocks = derivative_blocks(ocp, w, p, x_next)
    H = ca.vertcat(ca.horzcat(blocks["R"], blocks["S"].T), ca.horzcat(blocks["S"], blocks["Q"]))
    chosen = ca.DM.eye(nx)[states, :]
    G = ca.vertcat(
        ca.horzcat(ca.MX(ca.DM.eye(nu)), ca.MX(nu, nx)),
        ca.horzcat(ca.MX(len(states), nu), ca.MX(ca.sparsify(chosen))),
        ca.horzcat(blocks["G_u"], blocks["G_x"]),
    )
    matrices = {"F": ca.horzcat(blocks["B"], blocks["A"]), "H": ca.triu(H), "G": G.T}
    values = ca.vertcat(u, x[states], blocks["g"])
    bounds = np.vstack([ocp.u_bounds, ocp.x_bounds[states], ocp.path_bounds])
    free = _is_of_state(ocp, len(states)) * is_first
    lower, upper = _rest(bounds, values, free)
    column = ca.vertcat(
        _entries(matrices["F"]),
        blocks["d"],
        _entries(matrices["H"]),
        ca.densify(blocks["r"]),
        ca.densify(blocks["q"]),
        _entries(matrices["G"]),
        lower,
        upper,
    )
    inner = ca.Function("interval_w", [w, p, x_next, is_first], [column])
    x, u = ca.MX.sym("x", nx), ca.MX.sym("u", nu)
    column = inner(ca.vertcat(x, u), p, x_next, is_first)
    function = ca.Function("interval", [x, u, p, x_next, is_first], [column])
    return function, {key: matrix.sparsity() for key, matrix in matrices.items()}


def _is_of_state(ocp: OptimalControlProblem, states: int) -> ca.DM:
    """Return 1 for rows of an interval that no control reaches."""
    path = ocp.path
    with_control = set(path.jac_sparsity(0, path.index_in("u")).row())
    alone = [float(i not in with_control) for i in range(len(ocp.path_bounds))]
    return ca.DM([0.0] * ocp.nu + [1.0] * states + alone)


def _rest(bounds: Array, values: ca.MX, free: ca.MX) -> tuple[ca.MX, ca.MX]:
    """Return what is left to the bounds; where rows are free, nothing bounds them."""
    finite = np.abs(np.clip(bounds, -UNBOUNDED, UNBOUNDED)) < UNBOUNDED
    ends = []
    for i, far in ((0, -UNBOUNDED), (1, UNBOUNDED)):
        near = ca.DM(np.where(finite[:, i], bounds[:, i], 0.0))
        bound = ca.if_else(ca.DM(finite[:, i].astype(float)), near - values, far)
        ends.append(ca.if_else(free, far, bound))
    return ends[0], ends[1]


def _end(
    ocp: OptimalControlProblem, states: list[int]
) -> tuple[ca.Function, dict[str, ca.Sparsity]]:
    """Return the column of the end, and the patterns of its matrices; G is transposed."""
    x, p = ca.MX.sym("x", ocp.nx), ca.MX.sym("p", ocp.np_)
    r, g = ocp.terminal(x, p), ocp.end(x, p)
    J = ca.jacobian(r, x)
    chosen = ca.MX(ca.sparsify(ca.DM.eye(ocp.nx)[states, :]))
    matrices = {"H": ca.triu(J.T @ J), "G": ca.vertcat(chosen, ca.jacobian(g, x)).T}
    bounds = np.vstack([ocp.x_bounds[states], ocp.end_bounds])
    lower, upper = _rest(bounds, ca.vertcat(x[states], g), ca.MX.zeros(len(bounds)))
    slope = ca.densify(J.T @ r)
    column = ca.vertcat(_entries(matrices["H"]), slope, _entries(matrices["G"]), lower, upper)
    function = ca.Function("end", [x, p], [column])
    return function, {key: matrix.sparsity() for key, matrix in matrices.items()}


def _entries(block: ca.MX) -> ca.MX:
    """Return the nonzeros as a column."""
    count = block.nnz()
    return ca.reshape(block.nz[:], count, 1) if count else ca.MX(0, 1)


def _stiffness(problem: StagewiseQP, data: ca.DM) -> tuple[Array, Array] | None:
    """Return the median over the intervals of the cost's curvature along each row, and the end's.

    It is `1 / (G H⁻¹ Gᵀ)` with the Hessian of the cost from an interval on, by a recursion.
    None where that determines some control not.
    """
    if not np.all(np.isfinite(data.full())):
        return None
    symbol = ca.MX.sym("data", problem.size)
    last = end_blocks(problem, symbol)
    columns = ca.horzsplit(columns_of(problem, symbol))
    blocks = [interval_blocks(problem, column) for column in columns]
    outputs = [
        ca.densify(each) for block in (*blocks, last) for each in (block.A, block.H, block.G)
    ]
    numbers = ca.Function("blocks", [symbol], outputs)(data)
    triples = [[part.full() for part in numbers[3 * k : 3 * k + 3]] for k in range(len(blocks) + 1)]
    P, nu, along = triples[-1][1], problem.nu, []
    at_end = _curvature_along(triples[-1][2], P)
    for A, H, G in reversed(triples[:-1]):
        whole = H + A.T @ P @ A
        if not np.linalg.eigvalsh(whole[:nu, :nu])[0] > FLAT**2 * np.trace(whole):
            return None
        along.append(_curvature_along(G, whole))
        P = whole[nu:, nu:] - whole[nu:, :nu] @ np.linalg.solve(whole[:nu, :nu], whole[:nu, nu:])
    return np.median(along, axis=0) if along else np.zeros(0), at_end


def _curvature_along(G: Array, H: Array) -> Array:
    floor = FLAT * max(np.trace(H) / len(H), np.finfo(float).tiny)
    given: Array = np.einsum("ij,ji->i", G, np.linalg.solve(H + floor * np.eye(len(H)), G.T))
    known: Array = np.where(given > 0, given, 1.0)
    return 1 / known
