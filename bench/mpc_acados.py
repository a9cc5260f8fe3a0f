"""acados on our optimal control problem: SQP to its end, and its own real-time iteration.

The stages are ours: discrete dynamics and residuals as nonlinear least squares with Gauss-Newton
Hessians, controls bounded; HPIPM solves the QPs after partial condensing. The wheel
`comma-deps-acados` brings acados, and a CasADi of its own in the place of ours. So acados is taken
from an environment of its own, with our CasADi in it, whose Python `MBCASADI_ACADOS_PYTHON` names:

    python -m venv acados
    acados/bin/pip install comma-deps-acados "numpy<2"
    acados/bin/pip install --force-reinstall --no-deps "casadi>=3.8"
    export MBCASADI_ACADOS_PYTHON=$PWD/acados/bin/python

`acados_program.py` runs there; the times are of acados' own clock.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench import acados_program
from mbcasadi.errors import SolverError
from mbcasadi.mpc import OptimalControlProblem

Array = NDArray[np.float64]

PYTHON = "MBCASADI_ACADOS_PYTHON"
ABSENT = f"absent: install comma-deps-acados in an environment of its own, name it by {PYTHON}"
TOLERANCE, MOST = 1e-9, 200
FREE = 1e8  # bound of a control that has none
KINDS = {
    "SQP": "acados, SQP with HPIPM, whole problem",
    "SQP_RTI": "acados, its real-time iteration",
}


def available() -> bool:
    """Return whether an environment with acados is named."""
    return PYTHON in os.environ


def solve_tasks(
    ocp: OptimalControlProblem, kind: str, tasks: list[tuple[Array, Array, Any]]
) -> tuple[Array, Array]:
    """Return seconds (n,), NaN where it failed, and first controls (n, nu), for every task.

    Args:
        ocp: the problem; bounds on controls only.
        kind: "SQP" or "SQP_RTI".
        tasks: measured state, parameters (N + 1, np) and guess of each.

    Raises:
        SolverError: acados could not be run; the message has its last line.
    """
    with tempfile.TemporaryDirectory(prefix="mbcasadi-acados-") as name:
        folder = Path(name)
        _write_problem(folder, ocp, kind)
        states, parameters, guesses = zip(*tasks, strict=True)
        np.savez(
            folder / "tasks.npz",
            x0=np.array(states),
            p=np.array(parameters),
            x=np.array([guess.x for guess in guesses]),
            u=np.array([guess.u for guess in guesses]),
        )
        command = [os.environ[PYTHON], acados_program.__file__, name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise SolverError(f"{PYTHON}: {error}; expected the path of a Python") from error
        if done.returncode:
            last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
            raise SolverError(f"acados, run by {PYTHON}={os.environ[PYTHON]}: {last}")
        with np.load(folder / "results.npz") as results:
            return results["seconds"], results["u"]


def _write_problem(folder: Path, ocp: OptimalControlProblem, kind: str) -> None:
    """Write the problem as `acados_program` reads it."""
    x, u, p = (ca.MX.sym(key, size) for key, size in
               (("x", ocp.nx), ("u", ocp.nu), ("p", ocp.np_)))  # fmt: skip
    functions = {
        "dynamics": ca.Function("dynamics", [x, u, p], [ocp.dynamics(x, u, p)]),
        "residual": ca.Function("residual", [x, u, p], [ocp.residual(x, u, p)]),
        "terminal": ca.Function("terminal", [x, p], [ocp.terminal(x, p)]),
    }
    for name, function in functions.items():
        (folder / f"{name}.casadi").write_text(function.serialize(), encoding="utf-8")
    lower, upper = np.clip(ocp.u_bounds.T, -FREE, FREE).tolist()
    problem = {
        "name": f"{ocp.name}_{kind.lower()}",
        "kind": kind,
        "horizon": ocp.horizon,
        "period": ocp.period,
        "u_lower": lower,
        "u_upper": upper,
        "tolerance": TOLERANCE,
        "iterations": MOST,
    }
    (folder / "problem.json").write_text(json.dumps(problem), encoding="utf-8")
