"""Residuals of a plan in the original nonlinear problem, by differences: nothing of a solver.

    gaps: x_{k+1} ⊖ F(x_k, u_k, p_k), and of the first state from the measured one, in parts of the
        steps of q and of v;
    violations of bounds and rows, in parts of the bounds' width, or of the largest value;
    stationarity: ∇ᵤ r ᵀr + Bᵀ costate + Gᵀ y, in parts of its terms;
    complementarity: Σ |y · distance to its bound|, in parts of the cost.

Costates run backward; all derivatives are central differences along tangents.
"""

from dataclasses import dataclass, field
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
    _built: dict[str, ca.Function] = field(default_factory=dict)

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
        ocp, N, size = self.ocp, self.ocp.horizon, self.tangents
        half = size // 2
        stages = [self._stages(*each) for each in zip(plan.x, plan.u, plan.p, strict=False)]
        F, r, g, slopes = ([np.array(s[i]) for s in stages] for i in range(4))
        r_end, slope_end = (np.array(a) for a in self._end(plan.x[N], plan.p[N]))
        ends = [np.array(self._difference(a, b)).ravel()
                for a, b in zip([plan.x0, *(f.ravel() for f in F)], plan.x, strict=True)]  # fmt: skip
        gaps = np.array(ends)
        steps = np.array([np.array(self._difference(a, b)).ravel()
                          for a, b in zip(plan.x[:-1], plan.x[1:], strict=True)])  # fmt: skip
        rates = plan.x[:, -half:]
        gap = max(
            _ratio(gaps[:, :half], steps[:, :half]),
            _ratio(gaps[:, half:], rates),
        )
        nr, ng = len(r[0]), len(g[0])
        y = np.zeros((N, ocp.nu + ng)) if plan.rows is None else plan.rows
        costate = slope_end.T @ r_end.ravel()
        slopes_u, sizes = list[Array](), list[float]()
        for k in reversed(range(N)):
            A, J, G = np.split(slopes[k], [size, size + nr])
            terms = [J.T @ r[k].ravel(), A.T @ costate, G.T @ y[k, ocp.nu :]]
            terms[2][size:] += y[k, : ocp.nu]
            sizes += [float(np.sum(term[size:] ** 2)) for term in terms]
            slope = sum(terms)
            slopes_u.append(slope[size:])
            costate = slope[:size]
        stationarity = float(np.linalg.norm(slopes_u) / np.sqrt(sum(sizes)))
        cost = 0.5 * (sum(float(np.sum(each**2)) for each in r) + float(np.sum(r_end**2)))
        violation = complementarity = 0.0
        if plan.rows is not None:
            values = np.hstack([plan.u, np.array(g).reshape(N, ng)])
            bounds = np.vstack([ocp.u_bounds, ocp.path_bounds])
            above, below = values - bounds[:, 1], bounds[:, 0] - values
            width = np.where(np.isfinite(bounds).all(axis=1), bounds[:, 1] - bounds[:, 0], 0.0)
            width[ocp.nu :] = max(1.0, float(np.abs(values[:, ocp.nu :]).max())) if ng else 0
            violation = float(np.max(np.maximum(above, below) / width))
            distance = np.where(y > 0, above, np.where(y < 0, below, 0.0))
            complementarity = float(np.sum(np.abs(y * distance)) / cost)
        return Residuals(gap, max(0.0, violation), stationarity, complementarity, cost)

    @cached_property
    def _difference(self) -> ca.Function:
        x, y = ca.MX.sym("x", self.ocp.nx), ca.MX.sym("y", self.ocp.nx)
        return ca.Function("difference", [x, y], [self._gap(x, y)])


def _ratio(gaps: Array, steps: Array) -> float:
    return float(np.linalg.norm(gaps) / max(np.linalg.norm(steps), np.finfo(float).tiny))
