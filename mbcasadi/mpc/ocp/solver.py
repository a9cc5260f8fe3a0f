"""Solving optimal control problems by multiple shooting; every solution is checked."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ShapeError, SolverError
from mbcasadi.mpc.ocp.constraints import end_rows
from mbcasadi.mpc.ocp.problem import OptimalControlProblem
from mbcasadi.mpc.ocp.shooting import Shooting, shooting
from mbcasadi.mpc.ocp.solution import OcpSolution, SolverStats, check_solution, flat, rollout
from mbcasadi.shapes import column, real_array, require_name
from mbcasadi.short_text import summarised

OCP_TOLERANCE = 1e-6
"""Largest residual of an accepted solution, in the units of states and rows."""

ROUNDS = 500
"""Largest number of iterations."""

PREFERRED_QP = ("hpipm", "qrqp")
"""QP solvers of sqpmethod: the first that this CasADi has. The structured one takes milliseconds
where the other takes a second (30 stages of 9 unknowns), but has no soft rows at the end."""

SOLVERS: dict[str, dict[str, Any]] = {
    "sqpmethod": {
        "max_iter": ROUNDS,
        "tol_pr": 1e-9,
        "tol_du": 1e-8,
        "min_step_size": 1e-14,
        "print_header": False,
        "print_iteration": False,
        "print_status": False,
    },
    "ipopt": {
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "ipopt.tol": 1e-9,
        "ipopt.max_iter": ROUNDS,
        # We would report slightly widened bounds as violated.
        "ipopt.bound_relax_factor": 0.0,
    },
    "fatrop": {"fatrop.print_level": 0, "fatrop.tol": 1e-9, "fatrop.max_iter": ROUNDS},
}
FUNCTION_OPTIONS = (
    *("jit", "jit_cleanup", "jit_name", "jit_options", "jit_serialize", "jit_temp_suffix"),
    *("compiler", "codegen_options", "cache", "common_options", "error_on_fail", "max_io"),
    *("print_time", "record_time", "verbose", "print_in", "print_out", "inputs_check"),
    *("dump", "dump_dir", "dump_format", "dump_in", "dump_out", "regularity_check"),
)
"""Options that every CasADi Function takes; `nlpsol_options` lists those of a plugin alone."""

HESSIANS = ("gauss-newton", "exact")


@summarised
@dataclass(frozen=True)
class OcpSolver:
    """A problem with its solver, built once for many initial states."""

    program: Shooting
    function: ca.Function
    first_order: ca.Function
    tolerance: float

    def _summary(self) -> dict[str, object]:
        return {"problem": self.program.ocp.name, "rows": self.rows, "tolerance": self.tolerance}

    @property
    def rows(self) -> int:
        """Number of rows of the program."""
        return len(self.program.g_bounds)

    @checked
    def solve(
        self, x0: ArrayLike, p: ArrayLike | None = None, guess: OcpSolution | None = None
    ) -> OcpSolution:
        """Return the solution from x0.

        Args:
            x0: (nx,) initial state; it ends with the control before the first where changes of the
                control are weighted or bounded.
            p: (N + 1, np) parameters, see `OptimalControlProblem.parameters`; nominal by default.
            guess: a solution to start from (`initial_guess` builds one from arrays); by default the
                motion from x0 without control.

        Raises:
            ShapeError: a wrong shape, or NaN.
        """
        ocp = self.program.ocp
        initial_state = column("x0", x0, ocp.nx)
        parameters = ocp.parameters() if p is None else real_array("p", p)
        if parameters.shape != (ocp.horizon + 1, ocp.np_) or not np.all(np.isfinite(parameters)):
            raise ShapeError(
                f"p has shape {parameters.shape}, expected {(ocp.horizon + 1, ocp.np_)}, all finite"
            )
        first = rollout(ocp, initial_state, parameters) if guess is None else guess
        if (first.lam_w.size, first.lam_g.size) != (len(self.program.w_bounds), self.rows):
            raise ShapeError(
                f"guess has {first.lam_w.size} unknowns and {first.lam_g.size} rows, expected "
                f"{len(self.program.w_bounds)} and {self.rows}: it is of another problem"
            )
        values = np.concatenate([initial_state, parameters.ravel()])
        start_time = time.perf_counter()
        out = self.function(
            x0=self.program.pack(first.x, first.u, parameters),
            lam_x0=first.lam_w,
            lam_g0=first.lam_g,
            p=values,
            lbx=self.program.w_bounds[:, 0],
            ubx=self.program.w_bounds[:, 1],
            lbg=self.program.g_bounds[:, 0],
            ubg=self.program.g_bounds[:, 1],
        )
        seconds = time.perf_counter() - start_time
        stats = cast(SolverStats, self.function.stats())
        solver_output = {name: flat(out[name]) for name in ("x", "lam_x", "lam_g")} | {"p": values}
        return check_solution(
            self.program,
            self.first_order,
            solver_output,
            parameters,
            stats,
            self.tolerance,
            seconds,
        )


@checked
def solve_ocp(
    ocp: OptimalControlProblem,
    x0: ArrayLike,
    p: ArrayLike | None = None,
    guess: OcpSolution | None = None,
    *,
    solver: str = "ipopt",
    hessian: str | None = None,
    tolerance: float = OCP_TOLERANCE,
    options: Mapping[str, Any] | None = None,
) -> OcpSolution:
    """Return the solution from x0.

    Args:
        ocp: the problem.
        x0: (nx,) initial state.
        p: (N + 1, np) parameters; nominal by default.
        guess: a solution to start from; by default the motion from x0 without control.
        solver, hessian, tolerance, options: as in `ocp_solver`.

    Raises:
        ShapeError: a wrong shape, or NaN.
        SolverError: no such solver or Hessian here.
    """
    built = ocp_solver(ocp, solver, hessian=hessian, tolerance=tolerance, options=options)
    return built.solve(x0, p, guess)


@checked
def ocp_solver(
    ocp: OptimalControlProblem,
    solver: str = "ipopt",
    *,
    hessian: str | None = None,
    tolerance: float = OCP_TOLERANCE,
    options: Mapping[str, Any] | None = None,
) -> OcpSolver:
    """Return a solver of the problem, by multiple shooting.

    Args:
        ocp: the problem.
        solver: "ipopt" and "fatrop" converge from poor guesses; "sqpmethod" is for good ones.
        hessian: "gauss-newton" (default of sqpmethod; convex for any dynamics) or "exact"
            (default of the others, and the only one of fatrop).
        tolerance: largest residual of an accepted solution.
        options: of the solver and of CasADi's Functions, beside ours; `{"qpsol": "daqp"}` gives
            sqpmethod another QP solver, `{"jit": True, "compiler": "shell"}` compiles what it
            calls.

    Raises:
        SolverError: no such solver or Hessian here.
    """
    return program_solver(shooting(ocp), solver, hessian, tolerance, options)


def program_solver(
    program: Shooting,
    solver: str,
    hessian: str | None = None,
    tolerance: float = OCP_TOLERANCE,
    options: Mapping[str, Any] | None = None,
) -> OcpSolver:
    """Return a solver of a program.

    Args:
        program: the nonlinear program.
        solver, hessian, tolerance, options: as in `ocp_solver`.

    Raises:
        SolverError: as in `ocp_solver`.
    """
    kind = _hessian_of(solver, hessian)
    valid = [*ca.nlpsol_options(solver), *FUNCTION_OPTIONS]
    for name in options or {}:
        require_name(f"option of {solver}", name.partition(".")[0], valid)
    solver_options: dict[str, Any] = {
        "print_time": False,
        "error_on_fail": False,
        **SOLVERS[solver],
    }
    if kind == "gauss-newton":
        solver_options["hess_lag"] = program.gauss_newton(upper=solver == "ipopt")
    elif solver == "sqpmethod":
        solver_options["convexify_strategy"] = "eigen-clip"
    if solver == "fatrop":
        solver_options |= program.structure()
    if solver == "sqpmethod":
        solver_options |= _qp_of(program, options or {})
    function = ca.nlpsol("ocp", solver, program.program, solver_options | dict(options or {}))
    return OcpSolver(program, function, program.first_order(), tolerance)


def _hessian_of(solver: str, hessian: str | None) -> str:
    if solver not in SOLVERS:
        raise SolverError(f"solver {solver!r}; expected one of {', '.join(map(repr, SOLVERS))}")
    if not ca.has_nlpsol(solver):
        raise SolverError(f"this CasADi has no plugin {solver!r}; install the official wheel")
    kind = hessian or ("gauss-newton" if solver == "sqpmethod" else "exact")
    valid = HESSIANS[1:] if solver == "fatrop" else HESSIANS
    if kind not in valid:
        raise SolverError(
            f"hessian {kind!r} with {solver!r}; expected one of {', '.join(map(repr, valid))}"
        )
    return kind


def _qp_of(program: Shooting, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the QP solver and its options."""
    # A slack at the end is a control of the last stage, which CasADi's HPIPM does not support.
    dense = bool(end_rows(program.ocp).k)
    available = [plugin for plugin in PREFERRED_QP[dense:] if ca.has_conic(plugin)]
    qpsol = options.get("qpsol", available[0])
    quiet = {"print_iter": False, "print_header": False} if qpsol == "qrqp" else {}
    return {"qpsol": qpsol, "qpsol_options": {"error_on_fail": False, **quiet}}
