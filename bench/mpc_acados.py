"""acados on our optimal control problem: SQP to its end, and its own real-time iteration.

The stages are ours: discrete dynamics and residuals as nonlinear least squares with Gauss-Newton
Hessians, controls and rows of the path bounded; HPIPM solves the QPs after partial condensing. The
wheel `comma-deps-acados` brings acados, and a CasADi of its own in the place of ours. So acados is
taken from an environment of its own, with our CasADi in it, whose Python `MBCASADI_ACADOS_PYTHON`
names:

    python -m venv acados
    acados/bin/pip install comma-deps-acados "numpy<2"
    acados/bin/pip install --force-reinstall --no-deps "casadi>=3.8"
    export MBCASADI_ACADOS_PYTHON=$PWD/acados/bin/python

`acados_program.py` runs there; the times are of acados' own clock.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench import acados_program
from bench.programs import pinned
from mbcasadi.errors import SolverError
from mbcasadi.mpc import OptimalControlProblem

Array = NDArray[np.float64]

PYTHON = "MBCASADI_ACADOS_PYTHON"
ABSENT = f"absent: install comma-deps-acados in an environment of its own, name it by {PYTHON}"
TOLERANCE, MOST = 1e-9, 200
QP_TOLERANCE = 1e-6  # of a real-time iteration: that of ours
FREE = 1e8  # bound of a control that has none
NO_ROW = 1e10  # acados' infinity: it leaves such a bound out
KINDS = {
    "SQP": "acados, SQP with HPIPM, whole problem",
    "SQP_RTI": "acados, its real-time iteration",
}


def available() -> bool:
    """Return whether an environment with acados is named."""
    return PYTHON in os.environ


def solve_tasks(
    ocp: OptimalControlProblem,
    kind: str,
    tasks: list[tuple[Array, Array, Any]],
    blocks: int = 0,
    repeats: int = 1,
) -> tuple[Array, Array]:
    """Return seconds (n,), NaN where it failed, and first controls (n, nu), for every task.

    Args:
        ocp: the problem; no bounds of states, no rows of the end.
        kind: "SQP" or "SQP_RTI".
        tasks: measured state, parameters (N + 1, np) and guess of each.
        blocks: of the partial condensing; 0 for acados' default.
        repeats: the least time of so many is taken.

    Raises:
        SolverError: acados could not be run; the message has its last line.
    """
    if shutil.which(os.environ[PYTHON]) is None:
        raise SolverError(f"{PYTHON}={os.environ[PYTHON]}: expected the path of a Python")
    with tempfile.TemporaryDirectory(prefix="mbcasadi-acados-") as name:
        folder = Path(name)
        _write_problem(folder, ocp, kind, {"blocks": blocks, "repeats": repeats})
        states, parameters, guesses = zip(*tasks, strict=True)
        np.savez(
            folder / "tasks.npz",
            x0=np.array(states),
            p=np.array(parameters),
            x=np.array([guess.x for guess in guesses]),
            u=np.array([guess.u for guess in guesses]),
        )
        command = [*pinned(), os.environ[PYTHON], acados_program.__file__, name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
            raise SolverError(f"acados, run by {PYTHON}={os.environ[PYTHON]}: {last}")
        with np.load(folder / "results.npz") as results:
            return results["seconds"], results["u"]


def _write_problem(
    folder: Path, ocp: OptimalControlProblem, kind: str, options: dict[str, int]
) -> None:
    """Write the problem as `acados_program` reads it."""
    x, u, p = (ca.MX.sym(key, size) for key, size in
               (("x", ocp.nx), ("u", ocp.nu), ("p", ocp.np_)))  # fmt: skip
    functions = {
        "dynamics": ca.Function("dynamics", [x, u, p], [ocp.dynamics(x, u, p)]),
        "slopes": ca.Function("slopes", [x, u, p], [ocp.dynamics(x, u, p), _slopes(ocp, x, u, p)]),
        "residual": ca.Function("residual", [x, u, p], [ocp.residual(x, u, p)]),
        "terminal": ca.Function("terminal", [x, p], [ocp.terminal(x, p)]),
        "path": ca.Function("path", [x, u, p], [ocp.path(x, u, p)]),
    }
    for name, function in functions.items():
        (folder / f"{name}.casadi").write_text(function.serialize(), encoding="utf-8")
    lower, upper = np.clip(ocp.u_bounds.T, -FREE, FREE).tolist()
    g_lower, g_upper = np.clip(ocp.path_bounds.T, -NO_ROW, NO_ROW).tolist()
    problem = {
        "name": f"{ocp.name}_{kind.lower()}",
        "kind": kind,
        "horizon": ocp.horizon,
        "period": ocp.period,
        "u_lower": lower,
        "u_upper": upper,
        "g_lower": g_lower,
        "g_upper": g_upper,
        "tolerance": TOLERANCE,
        "qp_tolerance": QP_TOLERANCE,
        "iterations": MOST,
    } | options
    (folder / "problem.json").write_text(json.dumps(problem), encoding="utf-8")


def _slopes(ocp: OptimalControlProblem, x: ca.MX, u: ca.MX, p: ca.MX) -> ca.MX:
    """Return the derivatives of the next state by (u, x), transposed.

    Those of a semi-implicit step are our formulas: acados would differentiate the factorisation of
    the mechanism's inertia.
    """
    form = ocp.motion
    if form is None:
        return ca.jacobian(ocp.dynamics(x, u, p), ca.vertcat(u, x)).T
    found, names = form.derivatives(x, u, p), form.derivatives.name_out()
    a, a_q, a_v, a_u = (found[names.index(key)] for key in ("a", "a_q", "a_v", "a_u"))
    nv, nu = a.numel(), u.numel()
    N = form.tangent(x)[: ocp.nx - nv, :nv]  # its columns are orthogonal
    a_x = ca.horzcat(a_q @ ca.diag(1 / ca.sum1(ca.densify(N) ** 2)) @ N.T, a_v)
    sizes = (("x", ocp.nx), ("a", nv), ("u", nu), ("p", ocp.np_))
    y, by_a = (ca.SX.sym(key, size) for key, size in sizes[:2])
    rate = form.step * by_a
    moved = form.moved(y, ca.vertcat(form.step * (y[-nv:] + rate), rate))
    chain = ca.Function("chain", [y, by_a], [ca.jacobian(moved, y), ca.jacobian(moved, by_a)])
    of_x, of_a = chain(x, a)
    return ca.densify(ca.horzcat(of_a @ a_u, of_x + of_a @ a_x)).T
