"""The solution of an optimal control problem, checked by residuals of our own.

The solver's status is not used. The residuals of a solution are

    gap           |x_{k+1} - F(x_k, u_k, p_k)|,   violation  of bounds and rows,
    stationarity  |f_w + g_wᵀ lam_g + lam_w| / (1 + |f_w| + |g_wᵀ lam_g|),
    complementarity  |lam| min(distance to the bound that it belongs to, 1) / (1 + |f_w|),

largest entries throughout; the status follows from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.description.status import QP_STATUS, Status
from mbcasadi.errors import ShapeError
from mbcasadi.mpc.ocp.constraints import describe_violations, end_rows, path_rows
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.shooting import Shooting, values_of
from mbcasadi.shapes import column, matrix, real_array
from mbcasadi.short_text import summarised

NOTICED = 1e-6
"""Least violation of a row, in its unit, that is reported."""


class SolverStats(TypedDict, total=False):
    """What CasADi's solvers report, each its part of it."""

    return_status: str
    unified_return_status: str
    success: bool
    iter_count: int


@summarised
@dataclass(frozen=True)
class OcpSolution:
    """A solution with its residuals.

    Attributes:
        x, u, p: (N + 1, nx), (N, nu), (N + 1, np).
        cost: of x and u.
        status: of `description.status`.
        gap: largest `|x_{k+1} - F(x_k, u_k, p_k)|`.
        violation: of bounds and rows, the largest.
        stationarity: largest entry of the gradient of the Lagrangian, relative to its terms.
        complementarity: largest product of a multiplier and the distance to its bound, relative.
        lam_w, lam_g: multipliers of bounds and rows, in the order of `Shooting`.
        violations: text for each row of path and end that violates its bounds, soft ones included.
        solver_status: the solver's own status.
        iterations, seconds: of the solver.
    """

    x: Array
    u: Array
    p: Array
    cost: float
    status: int
    gap: float
    violation: float
    stationarity: float
    complementarity: float
    lam_w: Array
    lam_g: Array
    solver_status: str
    iterations: int
    seconds: float
    violations: tuple[str, ...] = ()

    def _summary(self) -> dict[str, object]:
        return {
            "solved": self.solved,
            "cost": self.cost,
            "gap": self.gap,
            "violation": self.violation,
            "stationarity": self.stationarity,
            "solver": f"{self.solver_status}, {self.iterations} iterations",
        }

    @property
    def solved(self) -> bool:
        """Whether all residuals are within the tolerance."""
        return self.status == Status.SOLVED

    @property
    def in_words(self) -> str:
        """One sentence: status, residuals, the solver's own status."""
        return (
            f"{QP_STATUS.words[self.status]}: gap {self.gap:.1e}, violation {self.violation:.1e}, "
            f"stationarity {self.stationarity:.1e}, complementarity {self.complementarity:.1e}; "
            f"the solver says {self.solver_status} after {self.iterations} iterations"
        )


@checked
def initial_guess(ocp: OptimalControlProblem, x: ArrayLike, u: ArrayLike) -> OcpSolution:
    """Return a guess for `OcpSolver.solve` from states (N + 1, nx) and controls (N, nu).

    Raises:
        ShapeError: a wrong shape, or NaN.
    """
    states, controls = real_array("x", x).copy(), real_array("u", u).copy()
    sizes = {"x": (ocp.horizon + 1, ocp.nx), "u": (ocp.horizon, ocp.nu)}
    for (name, size), value in zip(sizes.items(), (states, controls), strict=True):
        if value.shape != size or not np.all(np.isfinite(value)):
            raise ShapeError(f"guess of {name} has shape {value.shape}, expected {size}, finite")
    along, last = path_rows(ocp), end_rows(ocp)
    rows = (ocp.horizon + 1) * ocp.nx + ocp.horizon * along.m + last.m
    slacks = ocp.horizon * along.k + last.k
    return OcpSolution(
        x=states,
        u=controls,
        p=ocp.parameters(),
        cost=np.inf,
        status=Status.FAILED,
        gap=np.inf,
        violation=np.inf,
        stationarity=np.inf,
        complementarity=np.inf,
        lam_w=np.zeros(states.size + controls.size + slacks),
        lam_g=np.zeros(rows),
        solver_status="a guess",
        iterations=0,
        seconds=0.0,
    )


@checked
def rollout(ocp: OptimalControlProblem, x0: Array, p: Array, u: Array | None = None) -> OcpSolution:
    """Return the motion from x0 under u as a guess.

    A motion that becomes infinite or NaN is replaced by rest at x0.

    Args:
        ocp: the problem.
        x0: (nx,) initial state.
        p: (N + 1, np) parameters.
        u: (N, nu) controls, clipped to their bounds; zero by default.
    """
    x0 = column("x0", x0, ocp.nx, finite=False)
    p = matrix("p", p, (ocp.horizon + 1, ocp.np_), finite=False)
    size = (ocp.horizon, ocp.nu)
    controls = np.zeros(size) if u is None else matrix("u", u, size, finite=False)
    controls = np.clip(controls, *ocp.u_bounds.T)
    motion = ocp.dynamics.mapaccum(ocp.horizon)(x0, controls.T, p[:-1].T).full().T
    x = np.vstack([x0, motion])
    return initial_guess(ocp, x if np.all(np.isfinite(x)) else np.tile(x0, (len(x), 1)), controls)


def check_solution(
    program: Shooting,
    first_order: ca.Function,
    solver_output: Mapping[str, Array],
    p: Array,
    stats: SolverStats,
    tolerance: float,
    seconds: float,
) -> OcpSolution:
    """Return the solution with its residuals and the status that follows from them.

    Args:
        program, first_order: the program and its Function of that name.
        solver_output: x, lam_x, lam_g of the solver, and the p that it was given.
        p: (N + 1, np) parameters.
        stats: of the solver.
        tolerance: largest residual of an accepted solution.
        seconds: time of the solver.
    """
    w, lam_w, lam_g = solver_output["x"], solver_output["lam_x"], solver_output["lam_g"]
    f, f_w, g, g_w = first_order(w, solver_output["p"])
    of_rows, rows, cost_gradient = flat(g_w.T @ lam_g), flat(g), flat(f_w)
    violation = max(_violation(w, program.w_bounds), _violation(rows, program.g_bounds))
    gaps = _gaps(program, rows - np.clip(rows, *program.g_bounds.T))
    scale = 1 + _largest(cost_gradient)
    stationarity = _largest(cost_gradient + of_rows + lam_w) / (scale + _largest(of_rows))
    complementarity = max(
        _complementarity(w, program.w_bounds, lam_w),
        _complementarity(rows, program.g_bounds, lam_g),
    )
    residuals = (gaps, violation, stationarity, complementarity / scale)
    x, u = program.unpack(w)
    solver_status = str(stats.get("return_status", stats.get("unified_return_status", "")))
    solver_status = solver_status or ("success" if stats.get("success") else "no success")
    return OcpSolution(
        x,
        u,
        p,
        float(f),
        _status(residuals, solver_status, tolerance),
        *residuals,
        lam_w,
        lam_g,
        solver_status,
        int(stats.get("iter_count", 0)),
        seconds,
        violations_of(program.ocp, x, u, p),
    )


def violations_of(
    ocp: OptimalControlProblem, x: Array, u: Array, p: Array, tolerance: float = NOTICED
) -> tuple[str, ...]:
    """Return a sentence for each row of path and end, hard or soft, that violates its bounds.

    Args:
        ocp: the problem.
        x, u, p: (N + 1, nx), (N, nu), (N + 1, np).
        tolerance: least violation that is reported, in the row's unit.
    """
    along, at_end = values_of(ocp, x, u, p)
    limits = np.array([ocp.first_path_bounds, *[ocp.path_bounds] * (ocp.horizon - 1)])
    sentences = describe_violations(ocp.names("path"), limits, along, 0, tolerance)
    sentences += describe_violations(
        ocp.names("end"), ocp.end_bounds, at_end[None], ocp.horizon, tolerance
    )
    return tuple(sentences)


def _status(residuals: tuple[float, ...], solver_status: str, tolerance: float) -> int:
    """Return the status; NaN counts as large.

    A solution with a violation is infeasible where the solver reports this too, else failed.
    """
    gap, violation, stationarity, complementarity = residuals
    if not (gap <= tolerance and violation <= tolerance):
        return Status.INFEASIBLE if "infeasible" in solver_status.lower() else Status.FAILED
    return (
        Status.SOLVED
        if stationarity <= tolerance and complementarity <= tolerance
        else Status.SUBOPTIMAL
    )


def _gaps(program: Shooting, rows: Array) -> float:
    """Return the largest gap of the dynamics, or of the initial state, from the rows' values."""
    ocp = program.ocp
    ng, nx = path_rows(ocp).m, ocp.nx
    first, later = rows[: 2 * nx], rows[2 * nx + ng : rows.size - end_rows(ocp).m]
    return max(_largest(first), _largest(later.reshape(ocp.horizon - 1, nx + ng)[:, :nx]))


def _violation(value: Array, bounds: Array) -> float:
    return _largest(np.maximum(value - bounds[:, 1], bounds[:, 0] - value).clip(min=0.0))


def _complementarity(value: Array, bounds: Array, lam: Array) -> float:
    """Return the largest product of a multiplier and the distance to its bound, at most one."""
    distance = np.where(lam > 0, bounds[:, 1] - value, value - bounds[:, 0])
    return _largest(lam * np.minimum(np.abs(distance), 1.0))


def flat(value: ca.DM) -> Array:
    """Return the entries of a dense or sparse column."""
    return np.asarray(ca.DM(value).full()).ravel()


def _largest(value: Array) -> float:
    return float(np.abs(value).max(initial=0.0)) if np.all(np.isfinite(value)) else float("inf")
