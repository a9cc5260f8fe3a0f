"""acados on one optimal control problem, as a program for the environment that has acados.

`mpc_acados` runs it there; it imports nothing of ours. Its argument is a folder with

    dynamics.casadi, residual.casadi, terminal.casadi    (x, u, p) → x_next, r; (x, p) → r
    slopes.casadi    (x, u, p) → x_next, its derivatives by (u, x), transposed
    path.casadi      (x, u, p) → g, rows of the samples but the given one and the last
    problem.json     name, kind ("SQP" or "SQP_RTI"), horizon, period, u_lower, u_upper, g_lower,
                     g_upper, tolerance, qp_tolerance, iterations; blocks of the partial condensing,
                     0 for its default; repeats, of which the least time is taken
    tasks.npz        x0 (n, nx), x (n, N + 1, nx), u (n, N, nu), p (n, N + 1, np)

It writes `results.npz`: seconds (n,), NaN where acados failed, and u (n, nu).
"""

import ctypes
import importlib
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

LIBRARIES = ("libblasfeo", "libhpipm", "libqpOASES_e", "libacados")
OPTIMAL, ITERATION_LIMIT = 0, 2  # of acados; its real-time iteration may end with the second


def main(folder: Path) -> None:
    """Solve the tasks of a folder."""
    os.chdir(folder)  # acados writes its C into the working directory
    warnings.simplefilter("ignore")
    acados: Any = importlib.import_module("acados")
    places = {"ACADOS_SOURCE_DIR": acados.DIR, "ACADOS_PYTHON_INTERFACE_PATH": acados.TEMPLATE_DIR}
    os.environ |= places
    for name in LIBRARIES:  # found by their names afterwards, without a path of the loader
        ctypes.CDLL(str(next(Path(acados.LIB_DIR).glob(f"{name}.*"))), ctypes.RTLD_GLOBAL)
    problem, tasks = json.loads(Path("problem.json").read_text()), np.load("tasks.npz")
    template = importlib.import_module("acados.acados_template")
    _give_slopes(template)
    solver = build(template, problem)
    seconds, controls = [], []
    for x0, x, u, p in zip(*(tasks[name] for name in ("x0", "x", "u", "p")), strict=True):
        best = np.inf
        for _ in range(problem["repeats"]):
            solver.reset()
            for k in range(len(x)):
                solver.set(k, "x", x[k])
                if p.size:
                    solver.set(k, "p", p[k])
                if k < len(u):
                    solver.set(k, "u", u[k])
            solver.set(0, "lbx", x0)
            solver.set(0, "ubx", x0)
            status = solver.solve()
            best = min(best, float(solver.get_stats("time_tot")))
        iterates = problem["kind"] == "SQP_RTI" and status == ITERATION_LIMIT
        seconds.append(best if status == OPTIMAL or iterates else np.nan)
        controls.append(np.array(solver.get(0, "u")))
    np.savez("results.npz", seconds=seconds, u=controls)


def _give_slopes(template: Any) -> None:
    """Let acados take the derivatives of the dynamics that it is given; no Hessian is needed."""

    def generate(model: Any, opts: dict[str, Any]) -> None:
        slopes = ca.Function.deserialize(Path("slopes.casadi").read_text())
        x, u, p = (ca.MX.sym(slopes.name_in(k), slopes.size1_in(k)) for k in range(3))
        x_next, by_ux = slopes(x, u, p)
        costate, size = ca.MX.sym("costate", x.numel()), x.numel() + u.numel()
        name, types = f"{model.name}_dyn_disc_phi_fun", {"casadi_int": "int"}
        folder, here = Path(opts["code_export_directory"], f"{model.name}_model"), Path.cwd()
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)  # CasADi writes into the working directory alone
        nothing = ca.MX.zeros(size, size)
        for end, given, found in (
            ("", [x, u, p], [model_of(x, u, p)]),
            ("_jac", [x, u, p], [x_next, by_ux]),
            ("_jac_hess", [x, u, costate, p], [x_next, by_ux, nothing]),
        ):
            function = ca.Function(name + end, given, found)
            function.generate(name + end, types | {"casadi_real": "double"})
        os.chdir(here)

    model_of = ca.Function.deserialize(Path("dynamics.casadi").read_text())
    template.acados_ocp_solver.generate_c_code_discrete_dynamics = generate


def build(template: Any, problem: dict[str, Any]) -> Any:
    """Return acados' solver; Gauss-Newton Hessians, partial condensing and HPIPM."""
    dynamics, residual, terminal, path = (
        ca.Function.deserialize(Path(f"{name}.casadi").read_text())
        for name in ("dynamics", "residual", "terminal", "path")
    )
    ocp, model = template.AcadosOcp(), template.AcadosModel()
    x, u, p = (ca.MX.sym(dynamics.name_in(k), dynamics.size1_in(k)) for k in range(3))
    model.name, model.x, model.u, model.p = problem["name"], x, u, p
    model.disc_dyn_expr = dynamics(x, u, p)
    model.cost_y_expr, model.cost_y_expr_e = residual(x, u, p), terminal(x, p)
    ocp.model, cost, limits, options = model, ocp.cost, ocp.constraints, ocp.solver_options
    cost.cost_type = cost.cost_type_e = "NONLINEAR_LS"
    # Stages are multiplied by the length of their interval there; our residuals hold the period.
    cost.W = np.eye(model.cost_y_expr.shape[0]) / problem["period"]
    cost.W_e = np.eye(model.cost_y_expr_e.shape[0])
    cost.yref, cost.yref_e = np.zeros(cost.W.shape[0]), np.zeros(cost.W_e.shape[0])
    ocp.parameter_values = np.zeros(p.numel())
    limits.x0 = np.zeros(x.numel())
    limits.lbu, limits.ubu = np.array(problem["u_lower"]), np.array(problem["u_upper"])
    limits.idxbu = np.arange(u.numel())
    if problem["g_lower"]:
        model.con_h_expr = path(x, u, p)
        limits.lh, limits.uh = np.array(problem["g_lower"]), np.array(problem["g_upper"])
    ocp.dims.N = problem["horizon"]
    options.tf = problem["horizon"] * problem["period"]
    options.integrator_type = "DISCRETE"
    options.nlp_solver_type, options.hessian_approx = problem["kind"], "GAUSS_NEWTON"
    options.qp_solver = "PARTIAL_CONDENSING_HPIPM"
    options.nlp_solver_max_iter = problem["iterations"]
    options.ext_fun_compile_flags = "-O3 -march=native"
    for name in ("stat", "eq", "ineq", "comp"):
        setattr(options, f"nlp_solver_tol_{name}", problem["tolerance"])
        if problem["kind"] == "SQP_RTI":
            setattr(options, f"qp_solver_tol_{name}", problem["qp_tolerance"])
    if problem["blocks"]:
        options.qp_solver_cond_N = problem["blocks"]
    return template.AcadosOcpSolver(ocp, json_file="ocp.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
