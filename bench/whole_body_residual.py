"""Residuals of a plan in the original nonlinear problem, by differences: nothing of a solver.

    gaps: x_{k+1} ⊖ F(x_k, u_k, p_k), and of the first state from the measured one, in parts of the
        steps of q and of v;
    violations of bounds and rows, in parts of the bounds' width, or of the largest value;
    stationarity: ∇ᵤ r ᵀr + Bᵀ costate + Gᵀ y, in parts of its terms;
    complementarity: Σ |y · distance to its bound|, in parts of the cost.

Costates run backward; all derivatives are central differences along tangents.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import export_c
from mbcasadi.mpc import OptimalControlProblem

Array = NDArray[np.float64]

STEP = 1e-6  # of the differences, in SI units
FLAGS = ("-O1",)


@dataclass(frozen=True)
class Plan:
    """A plan, and the problem's numbers.

    Attributes:
        x0: (nx,) the measured state.
        p: (N + 1, np) parameters.
        x, u: (N + 1, nx), (N, nu).
        rows: (N, nu + ng) multipliers of bounds of u and of the path, positive at upper bounds;
            None where there are no inequalities.
    """

    x0: Array
    p: Array
    x: Array
    u: Array
    rows: Array | None = None


@dataclass(frozen=True)
class Residuals:
    """The residuals of a plan, and its cost."""

    gap: float
    violation: float
    stationarity: float
    complementarity: float
    cost: float

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(self.gap, self.violation, self.stationarity, self.complementarity)


@dataclass
class Judge:
    """Judges the plans of a problem whose step is semi-implicit or explicit.

    Attributes:
        ocp: the problem, with bounds of u and rows of the path.
        folder: an empty one, for compiled Functions.
    """

    ocp: OptimalControlProblem
    folder: Path

    @cached_property
    def _stages(self) -> ca.Function:
        """(x, u, p) of N stages → F, r, g and their differences, stacked, of each."""
        ocp, d = self.ocp, 2 * STEP
        x, u, p = (ca.MX.sym(k, n) for k, n in (("x", ocp.nx), ("u", ocp.nu), ("p", ocp.np_)))
        size = self.tangents
        F = ocp.dynamics(x, u, p)
        r, g = ocp.residual(x, u, p), ocp.path(x, u, p)
        deviation = ca.MX.sym("deviation", size)
        at = self._moved(x, deviation)
        step = ca.MX.sym("step", ocp.nu)
        values = (
            self._gap(F, ocp.dynamics(at, u + step, p)),
            ocp.residual(at, u + step, p),
            ocp.path(at, u + step, p),
        )
        value = ca.Function("value", [x, u, p, deviation, step], [ca.vertcat(*values)])
        values_of = value.map(2 * (size + ocp.nu))
        moves = np.hstack([STEP * np.eye(size + ocp.nu), -STEP * np.eye(size + ocp.nu)])
        count = moves.shape[1]
        given = [ca.repmat(each, 1, count) for each in (x, u, p)]
        every = values_of(*given, ca.DM(moves[:size]), ca.DM(moves[size:]))
        half = size + ocp.nu
        slopes = (every[:, :half] - every[:, half:]) / d
        stage = ca.Function("stage", [x, u, p], [F, r, g, slopes], ["x", "u", "p"],
                            ["F", "r", "g", "slopes"])  # fmt: skip
        return self._compiled(stage)

    @cached_property
    def _end(self) -> ca.Function:
        """(x, p) → r, its slopes."""
        ocp, size = self.ocp, self.tangents
        x, p, deviation = (
            ca.MX.sym(k, n) for k, n in (("x", ocp.nx), ("p", ocp.np_), ("deviation", size))
        )
        value = ca.Function(
            "value", [x, p, deviation], [ocp.terminal(self._moved(x, deviation), p)]
        )
        moves = STEP * np.hstack([np.eye(size), -np.eye(size)])
        every = value.map(2 * size)(*(ca.repmat(e, 1, 2 * size) for e in (x, p)), ca.DM(moves))
        slopes = (every[:, :size] - every[:, size:]) / (2 * STEP)
        return ca.Function("end", [x, p], [ocp.terminal(x, p), slopes])

    @property
    def tangents(self) -> int:
        """Size of a deviation of the state."""
        return self.ocp.nx if self.ocp.motion is None else int(self.ocp.motion.moved.size1_in(1))

    def _moved(self, x: ca.MX, deviation: ca.MX) -> ca.MX:
        return x + deviation if self.ocp.motion is None else self.ocp.motion.moved(x, deviation)

    def _gap(self, x: ca.MX, y: ca.MX) -> ca.MX:
        return y - x if self.ocp.motion is None else self.ocp.motion.gap(x, y)

    def _compiled(self, function: ca.Function) -> ca.Function:
        return export_c(function, self.folder / function.name()).load(flags=FLAGS)

    def residuals(self, plan: Plan) -> Residuals:
        """Return the residuals of a plan."""
        N = self.ocp.horizon
        stages = [self._stages(*each) for each in zip(plan.x, plan.u, plan.p, strict=False)]
        F, r, g, slopes = ([np.array(stage[i]) for stage in stages] for i in range(4))
        r_end, slopes_end = (np.array(a) for a in self._end(plan.x[N], plan.p[N]))
        cost = 0.5 * (sum(float(np.sum(each**2)) for each in r) + float(np.sum(r_end**2)))
        values = np.hstack([plan.u, np.array(g).reshape(N, -1)])
        rows = np.zeros_like(values) if plan.rows is None else plan.rows
        slope_end = slopes_end.T @ r_end.ravel()
        violation, complementarity = (
            self._of_rows(values, rows) if plan.rows is not None else (0, 0)
        )
        return Residuals(
            self._gaps(plan, [f.ravel() for f in F]),
            violation,
            self._stationarity((r, slopes, rows), slope_end),
            complementarity / cost,
            cost,
        )

    def _gaps(self, plan: Plan, F: list[Array]) -> float:
        """Return the gaps of positions, or those of velocities if they are larger."""
        half = self.tangents // 2
        gaps = self._differences([plan.x0, *F], plan.x)
        steps = self._differences(plan.x[:-1], plan.x[1:])
        of_q = _ratio(gaps[:, :half], steps[:, :half])
        return max(of_q, _ratio(gaps[:, half:], plan.x[:, -half:]))

    def _differences(self, before: Iterable[Array], after: Iterable[Array]) -> Array:
        pairs = zip(before, after, strict=True)
        return np.array([np.array(self._difference(a, b)).ravel() for a, b in pairs])

    def _stationarity(self, stages: tuple[list[Array], list[Array], Array], end: Array) -> float:
        """Return the slopes by u over their terms, with costates that end with `end`."""
        size, nu, costate = self.tangents, self.ocp.nu, end
        slopes_by_u, squares = list[Array](), 0.0
        for r, slopes, y in reversed(list(zip(*stages, strict=True))):
            A, J, G = np.split(slopes, [size, size + r.size])
            terms = [J.T @ r.ravel(), A.T @ costate, G.T @ y[nu:]]
            terms[2][size:] += y[:nu]
            squares += sum(float(np.sum(term[size:] ** 2)) for term in terms)
            costate, by_u = np.split(np.sum(terms, axis=0), [size])
            slopes_by_u.append(by_u)
        return float(np.linalg.norm(slopes_by_u) / np.sqrt(squares))

    def _of_rows(self, values: Array, y: Array) -> tuple[float, float]:
        """Return the violation of bounds of u and rows, and `Σ |y · distance to the bound|`."""
        nu, bounds = self.ocp.nu, np.vstack([self.ocp.u_bounds, self.ocp.path_bounds])
        above, below = values - bounds[:, 1], bounds[:, 0] - values
        width = np.where(np.isfinite(bounds).all(axis=1), bounds[:, 1] - bounds[:, 0], 1.0)
        width[nu:] = np.max(np.abs(values[:, nu:]), initial=1.0)
        distance = np.where(y > 0, above, np.where(y < 0, below, 0.0))
        violation = float(np.max(np.maximum(above, below) / width))
        return max(0.0, violation), float(np.sum(np.abs(y * distance)))

    @cached_property
    def _difference(self) -> ca.Function:
        x, y = ca.MX.sym("x", self.ocp.nx), ca.MX.sym("y", self.ocp.nx)
        return ca.Function("difference", [x, y], [self._gap(x, y)])


def _ratio(gaps: Array, steps: Array) -> float:
    return float(np.linalg.norm(gaps) / max(np.linalg.norm(steps), np.finfo(float).tiny))
