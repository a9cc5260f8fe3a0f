"""acados on our optimal control problem: SQP to its end, and its own real-time iteration.

The stages are ours: discrete dynamics and residuals as nonlinear least squares with Gauss-Newton
Hessians, controls bounded; HPIPM solves the QPs after partial condensing. acados has no wheel on
PyPI: its library and `acados_template` are built from source, and `ACADOS_SOURCE_DIR` names the
place.
"""

import contextlib
import importlib
import importlib.util
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.mpc import OptimalControlProblem

Array = NDArray[np.float64]

ABSENT = "absent: build acados and name it by ACADOS_SOURCE_DIR"
TOLERANCE, MOST = 1e-9, 200
KINDS = {
    "SQP": "acados, SQP with HPIPM, whole problem",
    "SQP_RTI": "acados, its real-time iteration",
}


def available() -> bool:
    """Return whether acados is built here."""
    installed = importlib.util.find_spec("acados_template") is not None
    return installed and "ACADOS_SOURCE_DIR" in os.environ


def solve_tasks(
    ocp: OptimalControlProblem, kind: str, tasks: list[tuple[Array, Array, Any]]
) -> tuple[Array, Array]:
    """Return seconds (n,), NaN where it failed, and first controls (n, nu), for every task.

    Args:
        ocp: the problem; bounds on controls only.
        kind: "SQP" or "SQP_RTI".
        tasks: measured state, parameters (N + 1, np) and guess of each.
    """
    with tempfile.TemporaryDirectory(prefix="mbcasadi-acados-") as folder, _quiet_in(folder):
        solver = _solver(ocp, kind)
        results = [_solve_task(solver, ocp, kind, *task) for task in tasks]
    return np.array([result[0] for result in results]), np.array([result[1] for result in results])


def _solve_task(
    solver: Any, ocp: OptimalControlProblem, kind: str, x0: Array, p: Array, guess: Any
) -> tuple[float, Array]:
    solver.reset()
    for k in range(ocp.horizon + 1):
        solver.set(k, "x", guess.x[k])
        if ocp.np_:
            solver.set(k, "p", p[k])
        if k < ocp.horizon:
            solver.set(k, "u", guess.u[k])
    solver.set(0, "lbx", x0)
    solver.set(0, "ubx", x0)
    status = solver.solve()
    succeeded = status == 0 or (kind == "SQP_RTI" and status == 2)
    return float(solver.get_stats("time_tot")) if succeeded else np.nan, np.array(
        solver.get(0, "u")
    )


def _solver(ocp: OptimalControlProblem, kind: str) -> Any:
    acados: Any = importlib.import_module("acados_template")
    problem, model = acados.AcadosOcp(), acados.AcadosModel()
    x, u, p = (ca.MX.sym(key, size) for key, size in
               (("x", ocp.nx), ("u", ocp.nu), ("p", ocp.np_)))  # fmt: skip
    model.name, model.x, model.u, model.p = f"{ocp.name}_{kind.lower()}", x, u, p
    model.disc_dyn_expr = ocp.dynamics(x, u, p)
    model.cost_y_expr, model.cost_y_expr_e = ocp.residual(x, u, p), ocp.terminal(x, p)
    problem.model, cost, limits = model, problem.cost, problem.constraints
    cost.cost_type = cost.cost_type_e = "NONLINEAR_LS"
    cost.W, cost.W_e = (np.eye(r.shape[0]) for r in (model.cost_y_expr, model.cost_y_expr_e))
    cost.yref, cost.yref_e = np.zeros(cost.W.shape[0]), np.zeros(cost.W_e.shape[0])
    problem.parameter_values = np.zeros(ocp.np_)
    limits.x0 = np.zeros(ocp.nx)
    limits.lbu, limits.ubu = np.clip(ocp.u_bounds.T, -1e8, 1e8)
    limits.idxbu = np.arange(ocp.nu)
    _options(problem.solver_options, ocp, kind)
    problem.code_gen_options.json_file = "ocp.json"
    problem.code_gen_options.ext_fun_compile_flags = "-O3 -march=native"
    return acados.AcadosOcpSolver(problem, verbose=False)


def _options(options: Any, ocp: OptimalControlProblem, kind: str) -> None:
    options.N_horizon, options.tf = ocp.horizon, ocp.horizon * ocp.period
    options.cost_scaling = np.ones(ocp.horizon + 1)  # our residuals hold the period
    options.integrator_type = "DISCRETE"
    options.nlp_solver_type, options.hessian_approx = kind, "GAUSS_NEWTON"
    options.qp_solver = "PARTIAL_CONDENSING_HPIPM"
    options.nlp_solver_max_iter = MOST
    for name in ("stat", "eq", "ineq", "comp"):
        setattr(options, f"nlp_solver_tol_{name}", TOLERANCE)


@contextlib.contextmanager
def _quiet_in(folder: str) -> Iterator[None]:
    """Work in this folder, where acados writes its C, without its notes and warnings."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with (
            Path(os.devnull).open("w", encoding="utf-8") as silent,
            contextlib.redirect_stdout(silent),
            warnings.catch_warnings(action="ignore"),
        ):
            yield
    finally:
        os.chdir(before)
