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
from mbcasadi.linalg.least_squares import least_squares
from mbcasadi.linalg.loops import product
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.rti.interval_derivatives import by_coordinates, by_tangents, chart_of
from mbcasadi.mpc.rti.scales import measured_scales


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
        nb=patterns["F"].size2() - ocp.nu - na,
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
        step=None if form is not None and form.step_row is not None else ocp.period,
        units=np.ones(patterns["F"].size2()),
    )
    plain = StagewiseLinearised(interval, end, problem, *chart_of(ocp))
    X, U = (ca.MX(ca.DM(part)) for part in guess)
    data = ca.evalf(plain.data(X, U, ca.MX(ca.DM(ocp.parameters(ocp.usual).T))))
    scales = measured_scales(problem, data)
    if scales is None:
        raise undetermined(ocp.name)
    return replace(
        plain,
        problem=replace(
            problem,
            inside=replace(problem.inside, stiffness=scales.inside),
            at_end=replace(problem.at_end, stiffness=scales.at_end),
            units=scales.units,
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
    x, u, p = ca.MX.sym("x", ocp.nx), ca.MX.sym("u", ocp.nu), ca.MX.sym("p", ocp.np_)
    x_next, is_first = ca.MX.sym("x_next", ocp.nx), ca.MX.sym("first")
    form = ocp.motion
    if form is None:
        about = by_coordinates(ocp, x, u, p, x_next)
        along = ca.MX(ca.DM.eye(ocp.nx))
    else:
        about = by_tangents(form, x, u, p, x_next)
        along = form.tangent(x)
    nu, (nf, nz) = ocp.nu, about["F"].shape
    H, slope = least_squares(about["J"], ca.densify(about["r"]))
    priced = [j - nz for j in sorted(set(about["J"].sparsity().get_col())) if j >= nz]
    of_rates = product(about["F"][priced, :].T, slope[nz:][priced, 0]) if priced else 0
    slope = slope[:nz] + of_rates
    G = ca.horzcat(
        ca.vertcat(ca.MX(ca.DM.eye(nu)), ca.MX(nz - nu + nf, nu)),
        ca.vertcat(ca.MX(nu, len(states)), along[states, :].T, ca.MX(nf, len(states))),
        about["D"],
    )
    matrices = {"F": about["F"], "H": H, "G": G}
    values = ca.vertcat(u, x[states], about["values"])
    bounds = np.vstack([ocp.u_bounds, ocp.x_bounds[states], ocp.path_bounds])
    lower, upper = _rest(bounds, values, _is_of_state(ocp, len(states)) * is_first)
    parts = {key: _entries(matrix) for key, matrix in matrices.items()}
    parts |= {key: ca.densify(about[key]) for key in ("Phi", "Gamma", "d_a", "d_b")}
    parts |= {"g": slope, "lower": lower, "upper": upper}
    given = form is not None and form.step_row is not None
    parts["step"] = ca.MX(form.length(p)) if form is not None and given else ca.MX(0, 1)
    column = ca.vertcat(*(parts[key] for key in COLUMN))
    function = ca.Function("interval", [x, u, p, x_next, is_first], [column], {"cse": True})
    return function, {key: matrix.sparsity() for key, matrix in matrices.items()}


COLUMN = ("F", "Phi", "Gamma", "d_a", "d_b", "H", "g", "G", "lower", "upper", "step")
"""The parts of a column, in the order of `StagewiseQP.column`."""


def _is_of_state(ocp: OptimalControlProblem, states: int) -> ca.DM:
    """Return 1 for rows of an interval that no control reaches."""
    alone = np.zeros(len(ocp.path_bounds))
    alone[ocp.rows_of_state] = 1.0
    return ca.DM([0.0] * ocp.nu + [1.0] * states + alone.tolist())


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
