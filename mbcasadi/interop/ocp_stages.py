"""A stage of an optimal control problem without slacks: soft rows cost by their violation.

    l(x, u, p) = ½ ‖r‖² + c,   r = (residual, √ρ₂ v),   c = Σ ρ₁ v,   g_min <= g(x, u, p) <= g_max,

with the violation v of the soft rows, g the hard ones. That is the problem itself, whose slacks are
at their least: `e = v`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.errors import ShapeError
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.shapes import real_array

Array = NDArray[np.float64]


class StageOfOcp(NamedTuple):
    """One kind of stages: the first, another one, or the end.

    Attributes:
        values: (x, u, p) → (r, c, g); u is empty at the end.
        bounds: (m, 2) of g.
    """

    values: ca.Function
    bounds: Array

    def derivatives(self) -> ca.Function:
        """Return (x, u, p) → (l_x, l_u, l_xx, l_xu, l_uu, g_x, g_u), Gauss-Newton Hessians."""
        x, u, p = (ca.MX.sym(name, self.values.size1_in(name)) for name in ("x", "u", "p"))
        r, c, g = self.values(x, u, p)
        slopes = [ca.jacobian(r, each) for each in (x, u)]
        gradients = [J.T @ r + ca.gradient(c, each) for J, each in zip(slopes, (x, u), strict=True)]
        hessians = [slopes[0].T @ slopes[0], slopes[0].T @ slopes[1], slopes[1].T @ slopes[1]]
        of_rows = [ca.jacobian(g, each) for each in (x, u)]
        outputs = [ca.densify(each) for each in (*gradients, *hessians, *of_rows)]
        names = ["l_x", "l_u", "l_xx", "l_xu", "l_uu", "g_x", "g_u"]
        return ca.Function("derivatives", [x, u, p], outputs, ["x", "u", "p"], names)


def path_stage(ocp: OptimalControlProblem, *, first: bool = False) -> StageOfOcp:
    """Return a stage with a control; `first` has the bounds of the given state, which has none.

    Bounds of the state are rows of the others.
    """
    x, u, p = _symbols(ocp)
    bounds = ocp.first_path_bounds if first else ocp.path_bounds
    rows, prices = ocp.path(x, u, p), _prices(ocp.path_penalties, bounds)
    if not first:
        rows, bounds, prices = _with_state(ocp, x, rows, bounds, prices)
    return _stage("stage", (x, u, p), ocp.residual(x, u, p), (rows, bounds, prices))


def end_stage(ocp: OptimalControlProblem) -> StageOfOcp:
    """Return the last stage, whose control is empty."""
    x, _, p = _symbols(ocp)
    prices = _prices(ocp.end_penalties, ocp.end_bounds)
    limits = _with_state(ocp, x, ocp.end(x, p), ocp.end_bounds, prices)
    return _stage("end", (x, ca.MX.sym("u", 0), p), ocp.terminal(x, p), limits)


class Evaluation(NamedTuple):
    """One stage with its parameters, evaluated as NumPy arrays.

    Attributes:
        stage, derivatives: of `StageOfOcp`.
        p: (np,).
    """

    stage: StageOfOcp
    derivatives: ca.Function
    p: Array

    def values(self, x: Array, u: Array) -> tuple[float, Array]:
        """Return the cost and the rows (m,)."""
        r, c, g = (each.full().ravel() for each in self.stage.values(x, self._own(u), self.p))
        return float(r @ r / 2 + c[0]), g

    def slopes(self, x: Array, u: Array) -> list[Array]:
        """Return l_x, l_u, l_xx, l_xu, l_uu, g_x, g_u; empty ones at the end by u."""
        return [each.full() for each in self.derivatives(x, self._own(u), self.p)]

    def _own(self, u: Array) -> Array:
        return u[: self.stage.values.size1_in("u")]


def evaluations_of(ocp: OptimalControlProblem, p: Array) -> list[Evaluation]:
    """Return all stages with their parameters p (N + 1, np)."""
    kinds = [path_stage(ocp, first=True), path_stage(ocp), end_stage(ocp)]
    first, later, end = ((kind, kind.derivatives()) for kind in kinds)
    stages = [first, *[later] * (ocp.horizon - 1), end]
    return [Evaluation(*stage, values) for stage, values in zip(stages, p, strict=True)]


class Step(NamedTuple):
    """The dynamics with the parameters of one stage.

    Attributes:
        function: (x, u, p) → (x_next, F_x, F_u).
        p: (np,).
    """

    function: ca.Function
    p: Array

    def __call__(self, x: Array, u: Array) -> list[Array]:
        """Return x_next (nx,), F_x and F_u."""
        after, *slopes = (each.full() for each in self.function(x, u, self.p))
        return [after.ravel(), *slopes]


def step_of(ocp: OptimalControlProblem) -> ca.Function:
    """Return (x, u, p) → (x_next, F_x, F_u)."""
    x, u, p = _symbols(ocp)
    after = ocp.dynamics(x, u, p)
    slopes = [ca.jacobian(after, each) for each in (x, u)]
    return ca.Function("step", [x, u, p], [ca.densify(each) for each in (after, *slopes)])


def fill(data: object, names: Sequence[str], values: Sequence[Array]) -> None:
    """Write values into arrays of the data of another package; at the end nothing depends on u."""
    for name, value in zip(names, values, strict=True):
        member = getattr(data, name)
        member[...] = value.reshape(np.shape(member)) if value.size else 0.0


def parameters_of(ocp: OptimalControlProblem, p: ArrayLike | None) -> Array:
    """Return p (N + 1, np) of a caller; nominal by default.

    Raises:
        ShapeError: another shape, or NaN.
    """
    values = ocp.parameters() if p is None else real_array("p", p)
    if values.shape != (ocp.horizon + 1, ocp.np_) or not np.all(np.isfinite(values)):
        raise ShapeError(
            f"p has shape {values.shape}, expected {(ocp.horizon + 1, ocp.np_)}, all finite"
        )
    return values


def _symbols(ocp: OptimalControlProblem) -> tuple[ca.MX, ca.MX, ca.MX]:
    return ca.MX.sym("x", ocp.nx), ca.MX.sym("u", ocp.nu), ca.MX.sym("p", ocp.np_)


def _prices(penalties: Array | None, bounds: Array) -> Array:
    """Return (r, 2) ρ₁ and ρ₂ of all rows; inf for hard ones."""
    prices = np.full((len(bounds), 2), np.inf)
    if penalties is not None:
        prices[: len(penalties)] = penalties
    return prices


def _with_state(
    ocp: OptimalControlProblem, x: ca.MX, rows: ca.MX, bounds: Array, prices: Array
) -> tuple[ca.MX, Array, Array]:
    """Return rows with the bounded entries of the state behind them."""
    limited = np.flatnonzero(np.isfinite(ocp.x_bounds).any(axis=1)).tolist()
    hard = np.full((len(limited), 2), np.inf)
    return (
        ca.vertcat(rows, x[limited]),
        np.vstack([bounds, ocp.x_bounds[limited]]),
        np.vstack([prices, hard]),
    )


def _stage(
    name: str,
    symbols: tuple[ca.MX, ca.MX, ca.MX],
    residual: ca.MX,
    limits: tuple[ca.MX, Array, Array],
) -> StageOfOcp:
    rows, bounds, prices = limits
    limited, soft = np.isfinite(bounds).any(axis=1), np.isfinite(prices).all(axis=1)
    of_soft, of_hard = (np.flatnonzero(limited & kind).tolist() for kind in (soft, ~soft))
    values, (low, high) = rows[of_soft], bounds[of_soft].T
    violation = ca.MX.zeros(len(of_soft))
    for i in range(len(of_soft)):
        for side, bound in ((1, high[i]), (-1, low[i])):
            if np.isfinite(bound):
                violation[i] += ca.fmax(side * (values[i] - bound), 0)
    linear, quadratic = prices[of_soft].T
    r = ca.vertcat(residual, ca.DM(np.sqrt(quadratic)) * violation)
    c = ca.dot(ca.DM(linear), violation) if of_soft else ca.MX(0)
    outputs = [ca.densify(each) for each in (r, c, rows[of_hard])]
    function = ca.Function(name, [*symbols], outputs, ["x", "u", "p"], ["r", "c", "g"])
    return StageOfOcp(function, bounds[of_hard])
