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
from mbcasadi.mpc.ocp.problem import DERIVATIVES, Array, MotionForm, OptimalControlProblem
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
        moved, gap: (x, deviation) → (x ⊕ deviation), (x, y) → (y ⊖ x).
    """

    interval: ca.Function
    end: ca.Function
    problem: StagewiseQP
    moved: ca.Function
    gap: ca.Function

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
    form = ocp.motion
    interval, patterns = _interval(ocp, states)
    end, patterns_end = _end(ocp, states)
    na = 0 if form is None else form.derivatives.size1_out("a")
    problem = StagewiseQP(
        horizon=ocp.horizon,
        nu=ocp.nu,
        na=na,
        nb=patterns["F"].size1(),
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
        rotations=() if form is None else form.rotations,
        step=ocp.period,
    )
    plain = StagewiseLinearised(interval, end, problem, *_chart(ocp))
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


def _chart(ocp: OptimalControlProblem) -> tuple[ca.Function, ca.Function]:
    """Return (x, deviation) → (x ⊕ deviation), and (x, y) → (y ⊖ x)."""
    if ocp.motion is not None:
        return ocp.motion.moved, ocp.motion.gap
    x, y = ca.SX.sym("x", ocp.nx), ca.SX.sym("y", ocp.nx)
    return ca.Function("moved", [x, y], [x + y]), ca.Function("gap", [x, y], [y - x])


def _interval(
    ocp: OptimalControlProblem, states: list[int]
) -> tuple[ca.Function, dict[str, ca.Sparsity]]:
    """Return the column of an interval, and the patterns of its matrices; G is transposed."""
    x, u, p = ca.MX.sym("x", ocp.nx), ca.MX.sym("u", ocp.nu), ca.MX.sym("p", ocp.np_)
    x_next, is_first = ca.MX.sym("x_next", ocp.nx), ca.MX.sym("first")
    form = ocp.motion
    if form is None:
        about = _coordinates(ocp, x, u, p, x_next)
        along = ca.MX(ca.DM.eye(ocp.nx))
    else:
        about = _tangents(form, x, u, p, x_next)
        along = form.tangent(x)
    nu, nx = ocp.nu, about["F"].shape[1] - ocp.nu
    J = about["J"]
    H, slope = J.T @ J, ca.densify(J.T @ about["r"])
    G = ca.vertcat(
        ca.horzcat(ca.MX(ca.DM.eye(nu)), ca.MX(nu, nx)),
        ca.horzcat(ca.MX(len(states), nu), along[states, :]),
        about["D"],
    )
    matrices = {"F": about["F"], "H": ca.triu(H), "G": G.T}
    values = ca.vertcat(u, x[states], about["values"])
    bounds = np.vstack([ocp.u_bounds, ocp.x_bounds[states], ocp.path_bounds])
    lower, upper = _rest(bounds, values, _is_of_state(ocp, len(states)) * is_first)
    parts = {key: _entries(matrix) for key, matrix in matrices.items()}
    parts |= {key: ca.densify(about[key]) for key in ("Phi", "Gamma", "d_a", "d_b")}
    parts |= {"g": slope, "lower": lower, "upper": upper}
    column = ca.vertcat(*(parts[key] for key in COLUMN))
    function = ca.Function("interval", [x, u, p, x_next, is_first], [column], {"cse": True})
    return function, {key: matrix.sparsity() for key, matrix in matrices.items()}


COLUMN = ("F", "Phi", "Gamma", "d_a", "d_b", "H", "g", "G", "lower", "upper")
"""The parts of a column, in the order of `StagewiseQP.column`."""


def _coordinates(
    ocp: OptimalControlProblem, x: ca.MX, u: ca.MX, p: ca.MX, x_next: ca.MX
) -> dict[str, ca.MX]:
    """Return motion, residuals and path by (u, x), in the coordinates of x."""
    nx, w = ocp.nx, ca.MX.sym("w", ocp.nx + ocp.nu)
    F, r, g = (part(w[:nx], w[nx:], p) for part in (ocp.dynamics, ocp.residual, ocp.path))
    outputs = [F, r, g, *(_by_u_first(ca.jacobian(part, w), nx) for part in (F, r, g))]
    at_w = ca.Function("interval_w", [w, p], outputs, {"cse": True})
    F, r, g, A, J, D = at_w(ca.vertcat(x, u), p)
    none = ca.MX(0, 1)
    return {
        "F": A,
        "J": J,
        "D": D,
        "r": r,
        "values": g,
        "Phi": none,
        "Gamma": none,
        "d_a": none,
        "d_b": F - x_next,
    }


def _by_u_first(jacobian: ca.MX, nx: int) -> ca.MX:
    return ca.horzcat(jacobian[:, nx:], jacobian[:, :nx])


def _tangents(form: MotionForm, x: ca.MX, u: ca.MX, p: ca.MX, x_next: ca.MX) -> dict[str, ca.MX]:
    """Return motion, residuals and path by (u, δx), along tangents."""
    h, found = form.step, dict(zip(DERIVATIVES, form.derivatives(x, u, p), strict=True))
    nv, nu = found["a"].shape[0], u.shape[0]
    nx = form.tangent.size2_out(0)
    rates = nx - 2 * nv
    own = ca.horzcat(ca.DM(nv, nu + nv), ca.DM.eye(nv), ca.DM(nv, rates))
    motion = {
        key: ca.horzcat(found[f"{key}_u"], found[f"{key}_q"], found[f"{key}_v"])
        for key in ("a", "lam")
    }
    motion = {key: ca.horzcat(J, ca.MX(J.shape[0], rates)) for key, J in motion.items()}
    F = ca.vertcat(own + h * motion["a"], ca.horzcat(ca.DM.eye(nu), ca.DM(nu, nx))[:rates, :])
    v = x[x.shape[0] - nv - rates :][:nv]
    v_next = v + h * found["a"]
    q_end = x_next.shape[0] - nv - rates
    reached = ca.vertcat(form.moved(x, _step(h * v_next, nx))[:q_end], v_next, u[:rates])
    gap = form.gap(x_next, reached)
    d_b = gap[nv:]
    Phi, Gamma = form.turns(v_next)
    moved = h * d_b[:nv]
    for k, first in enumerate(form.rotations):
        block = ca.reshape(Gamma[9 * k : 9 * k + 9], 3, 3).T
        moved[first : first + 3] = block @ d_b[first : first + 3]
    parts = {"Phi": Phi, "Gamma": Gamma, "d_a": gap[:nv] - moved, "d_b": d_b, "F": F}
    for key, value, function in (("r", "J", form.residual), ("values", "D", form.path)):
        parts[key] = function(x, u, p, found["a"], found["lam"])
        by_x, by_u, by_a, by_lam = _jacobians(function, x, u, p, found)
        of_state = ca.horzcat(by_u, by_x @ form.tangent(x))
        parts[value] = of_state + by_a @ motion["a"] + by_lam @ motion["lam"]
    return parts


def _step(dq: ca.MX, size: int) -> ca.MX:
    """Return a deviation of the positions alone."""
    return ca.vertcat(dq, ca.MX.zeros(size - dq.shape[0]))


def _jacobians(
    function: ca.Function, x: ca.MX, u: ca.MX, p: ca.MX, found: dict[str, ca.MX]
) -> list[ca.MX]:
    """Return the Jacobians of (x, u, p, a, lam) → (value) by x, u, a and lam."""
    s = function.sx_in()
    value = function(*s)
    outputs = [ca.jacobian(value, s[i]) for i in (0, 1, 3, 4)]
    jacobians = ca.Function(f"jacobians_{function.name()}", s, outputs, {"cse": True})
    return list(jacobians.call([x, u, p, found["a"], found["lam"]]))


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
    along = ca.MX(ca.DM.eye(ocp.nx)) if ocp.motion is None else ocp.motion.tangent(x)
    J = ca.jacobian(r, x) @ along
    rows = ca.vertcat(along[states, :], ca.jacobian(g, x) @ along)
    matrices = {"H": ca.triu(J.T @ J), "G": rows.T}
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
