"""Solving trajectory problems by multiple shooting; every solution is checked.

Durations, start and period are part of the program, so the residuals of `OcpSolution` hold for them
too: stationarity by a duration is `∂H/∂T`, which is zero where no bound of it is active.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.operating_point import Array, numbers, place_of, rows_fun
from mbcasadi.control.regulators.tangent import TANGENT_RANK_TOL, free_directions_of
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.ocp.collocation import mean_rates
from mbcasadi.mpc.ocp.shooting import shooting
from mbcasadi.mpc.ocp.solution import OcpSolution, initial_guess
from mbcasadi.mpc.ocp.solver import OCP_TOLERANCE, OcpSolver, program_solver
from mbcasadi.mpc.trajectory.constraints import require_independent
from mbcasadi.mpc.trajectory.initial_state import complete_start
from mbcasadi.mpc.trajectory.problem import TrajectoryProblem
from mbcasadi.mpc.trajectory.solution import TrajectorySolution
from mbcasadi.shapes import matrix, real_array
from mbcasadi.short_text import summarised


@summarised
@dataclass(frozen=True)
class TrajectorySolver:
    """A problem with its solver, built once for many guesses and parameters."""

    problem: TrajectoryProblem
    solver: OcpSolver

    def _summary(self) -> dict[str, object]:
        return {"problem": self.problem.ocp.name, "rows": self.solver.rows}

    @checked
    def solve(self, guess: OcpSolution, p: ArrayLike | None = None) -> TrajectorySolution:
        """Return the solution from a guess of `trajectory_guess` or another solution.

        Args:
            guess: starting point.
            p: (N + 1, np) parameters, of `problem.ocp.parameters`; nominal by default.

        Raises:
            ShapeError: a wrong shape, or NaN.
            ProblemError: rows of start and end that repeat or contradict each other there.
        """
        _require_independent(self.problem, guess, p)
        solution = self.solver.solve(np.zeros(self.problem.ocp.nx), p, guess)
        return TrajectorySolution(self.problem, solution)


@checked
def trajectory_solver(
    problem: TrajectoryProblem,
    solver: str = "ipopt",
    *,
    hessian: str | None = None,
    tolerance: float = OCP_TOLERANCE,
    options: Mapping[str, Any] | None = None,
) -> TrajectorySolver:
    """Return a solver of the problem.

    Args:
        problem: from `trajectory_problem`.
        solver, hessian, tolerance, options: as in `ocp_solver`.

    Raises:
        SolverError: as in `ocp_solver`.
    """
    program = complete_start(shooting(problem.ocp), problem.start, problem.options, problem.layout)
    return TrajectorySolver(problem, program_solver(program, solver, hessian, tolerance, options))


@checked
def solve_trajectory(
    problem: TrajectoryProblem,
    guess: OcpSolution,
    p: ArrayLike | None = None,
    *,
    solver: str = "ipopt",
    hessian: str | None = None,
    tolerance: float = OCP_TOLERANCE,
    options: Mapping[str, Any] | None = None,
) -> TrajectorySolution:
    """Return the solution of a trajectory problem.

    Args:
        problem: from `trajectory_problem`.
        guess: of `trajectory_guess`, or another solution.
        p: (N + 1, np) parameters, of `problem.ocp.parameters`; nominal by default.
        solver, hessian, tolerance, options: as in `ocp_solver`.

    Raises:
        ShapeError, ProblemError: as in `TrajectorySolver.solve`.
        SolverError: as in `ocp_solver`.
    """
    built = trajectory_solver(
        problem, solver, hessian=hessian, tolerance=tolerance, options=options
    )
    return built.solve(guess, p)


@checked
def trajectory_guess(
    problem: TrajectoryProblem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    u: ArrayLike | None = None,
    *,
    durations: ArrayLike | None = None,
) -> OcpSolution:
    """Return a guess of samples.

    Args:
        problem: from `trajectory_problem`.
        q: (N + 1, nq) poses; see `pose_path`.
        v: (N + 1, nv) velocities; differences of q by default.
        u: (N, nu) controls; zero inside the bounds by default.
        durations: (phases,) s; the middle of the bounds by default.

    Raises:
        ShapeError: a wrong shape, or NaN.
        ProblemError: durations that are not positive.
    """
    system, N, layout = problem.system, problem.ocp.horizon, problem.layout
    spans = problem.options.spans
    T = (
        spans.mean(axis=1)
        if durations is None
        else np.atleast_1d(real_array("durations", durations))
    )
    if T.shape != (layout.phases,) or not np.all(T > 0):
        raise ProblemError(f"durations {T}; expected {layout.phases} positive numbers, s")
    poses = real_array("q", q).copy()
    sizes = {"q": (N + 1, system.nq), "v": (N + 1, system.nv), "u": (N, system.nu)}
    if poses.shape != sizes["q"]:
        raise ShapeError(f"guess of q has shape {poses.shape}, expected {sizes['q']}")
    speeds = _rates(problem, poses, T) if v is None else real_array("v", v).copy()
    low, high = problem.limits.T
    controls = np.clip(np.zeros(sizes["u"]) if u is None else real_array("u", u), low, high)
    for name, value in (("v", speeds), ("u", controls)):
        if value.shape != sizes[name]:
            raise ShapeError(f"guess of {name} has shape {value.shape}, expected {sizes[name]}")
    X = np.hstack([poses, speeds, np.tile(T, (N + 1, 1))])
    if layout.has_rates:
        X = np.hstack([X, np.vstack([controls[:1], controls])])
    if layout.periodic:
        X = np.hstack([X, np.tile(layout.periodic_part(ca.DM(X[0])).full().ravel(), (N + 1, 1))])
    if problem.options.points:
        h = problem.lengths(T)[:, None]
        controls = np.hstack([controls, mean_rates(speeds, h, problem.options.points)])
    return initial_guess(problem.ocp, X, controls)


def _rates(problem: TrajectoryProblem, q: Array, T: Array) -> Array:
    """Return the mean rates of both intervals beside a sample."""
    apart = problem.system.difference.map(len(q) - 1)(q[:-1].T, q[1:].T).full().T
    once = apart / problem.lengths(T)[:, None]
    return np.asarray((np.vstack([once[:1], once]) + np.vstack([once, once[-1:]])) / 2)


def _require_independent(
    problem: TrajectoryProblem, guess: OcpSolution, p: ArrayLike | None
) -> None:
    """Raise where equalities of start and end depend on each other at the guess.

    The last (q, v) moves on the manifold only, because the steps before it end there.
    """
    ocp, layout = problem.ocp, problem.layout
    first, last = guess.x[0], guess.x[-1]
    parameters = ocp.nominal if p is None else matrix("p", p, (ocp.horizon + 1, ocp.np_))
    assert parameters is not None
    X, P = ca.MX.sym("X", ocp.nx), ca.MX.sym("P", ocp.np_)
    slopes = [ca.jacobian(problem.start.rows(X), X), ca.jacobian(ocp.end(X, P), X)]
    slopes_fun = ca.Function("slopes", [X, P], slopes)
    start = slopes_fun(first, parameters[0])[0].full()
    end = slopes_fun(last, parameters[-1])[1].full()
    mask = slot_slices(ocp.slots).get("mask")  # that of the last interval, where the last step ends
    moves = _moves(problem, last, None if mask is None else parameters[-2][mask])
    constant = np.zeros((ocp.nx, ocp.nx))
    for part in (layout.durations, layout.start):
        constant[part, part] = np.eye(part.stop - part.start)
    start_rows = np.flatnonzero(np.ptp(problem.start.limits, axis=1) == 0)
    end_rows = np.flatnonzero(np.ptp(ocp.end_bounds, axis=1) == 0)
    rows = np.block(
        [
            [start[start_rows], np.zeros((len(start_rows), moves.shape[1]))],
            [(end @ constant)[end_rows], (end @ moves)[end_rows]],
        ]
    )
    names = [problem.start.names[i] for i in start_rows] + [f"end[{i}]" for i in end_rows]
    require_independent(names, rows)


def _moves(problem: TrajectoryProblem, X: Array, mask: Array | None) -> Array:
    """Return (nx, k) directions in which (q, v) and the control before can move at the end."""
    system, layout = problem.system, problem.layout
    place = place_of(system, X[: system.nq], X[system.nq : layout.nx], mask=mask)
    rows = numbers(rows_fun(system), place.values)
    N = system.velocity_map(place.q).full()
    Z_q = free_directions_of(system, rows["of_phi"] * rows["A"], TANGENT_RANK_TOL)
    Z_v = free_directions_of(system, rows["A"], TANGENT_RANK_TOL)
    before = layout.before
    free = np.zeros((layout.size, Z_q.shape[1] + Z_v.shape[1] + before.stop - before.start))
    free[: system.nq, : Z_q.shape[1]] = N @ Z_q
    free[system.nq : layout.nx, Z_q.shape[1] :][:, : Z_v.shape[1]] = Z_v
    free[before, Z_q.shape[1] + Z_v.shape[1] :] = np.eye(before.stop - before.start)
    return free
