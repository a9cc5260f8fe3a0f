"""The same optimal control problem, solved to its end by others, beside one real-time iteration.

Every solver starts from the guess that the tick starts from, at states of the closed loop. IPOPT,
Fatrop and sqpmethod get their functions compiled; each solution is checked by our residuals.
Crocoddyl gets the same dynamics and Gauss-Newton costs, compiled too, through an action model in
Python: the calls of that model are timed and taken off, so that the time is its own solver's.
acados is timed by its own clock where it is built, see `mpc_acados`.
"""

import importlib.util
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench import mpc_acados
from bench.rows import row
from mbcasadi.errors import SolverError
from mbcasadi.mpc import OptimalControlProblem, initial_guess, ocp_solver
from mbcasadi.mpc.rti.iteration import RealTimeIteration

Array = NDArray[np.float64]

COMPILED = {"jit": True, "compiler": "shell", "jit_options": {"flags": ["-O3", "-march=native"]}}
OURS = ("ipopt", "fatrop", "sqpmethod")
NAMES = {
    "sqpmethod": "sqpmethod with HPIPM, whole problem",
    "fatrop": "Fatrop, whole problem",
    "ipopt": "IPOPT, whole problem",
}
CROCODDYL = "Crocoddyl, BoxFDDP, whole problem, its own time"
STOP, MOST = 1e-14, 200  # of Crocoddyl


@dataclass(frozen=True)
class Optima:
    """The solutions of a solver at some states.

    Attributes:
        name: of the solver, with a note where it is absent.
        median: s, of those that it solved; None where it is absent.
        u: (states, nu) first controls, NaN where it did not solve the problem.
        unsolved: number of states.
    """

    name: str
    median: float | None
    u: Array
    unsolved: int = 0


def rows(
    model: str,
    median: float,
    rti: RealTimeIteration,
    loop: tuple[dict[str, Array], Array],
    options: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return a row for each solver; the miss of each is from IPOPT's first control.

    Args:
        model: name of the problem.
        median: of our tick, s.
        rti: the controller.
        loop: its inputs at some states, and its controls there.
        options: as in `optima`.
    """
    record, u = loop
    solvers = optima(rti, record, options)
    u_ipopt = solvers[0].u
    our_row = row(model, "whole tick, one iteration", median, "-", None) | {
        "miss": _largest(u - u_ipopt)
    }
    lines = [our_row]
    for peer in solvers:
        line = row(model, "whole tick against the whole problem", median, peer.name, peer.median)
        lines.append(line | {"miss": _largest(peer.u - u_ipopt), "unsolved": peer.unsolved})
    return lines


def _largest(miss: Array) -> float | None:
    return float(np.nanmax(np.abs(miss))) if np.any(np.isfinite(miss)) else None


def optima(
    rti: RealTimeIteration, record: dict[str, Array], options: Mapping[str, Any]
) -> list[Optima]:
    """Return the solutions of all solvers at the states of a record; IPOPT's come first.

    `options` are those of the functions that they call, `COMPILED` or none.
    """
    results = [_casadi_optima(rti, record, solver, options) for solver in OURS]
    nothing = np.full_like(results[0].u, np.nan)
    if importlib.util.find_spec("crocoddyl") is None:
        results.append(Optima(f"{CROCODDYL} (absent: install crocoddyl)", None, nothing))
    else:
        results.append(_crocoddyl(rti, record, options))
    for kind, name in mpc_acados.KINDS.items():
        if not mpc_acados.available():
            results.append(Optima(f"{name} ({mpc_acados.ABSENT})", None, nothing))
            continue
        try:
            answers = mpc_acados.solve_tasks(rti.ocp, kind, _tasks(rti, record))
        except SolverError as error:
            results.append(Optima(f"{name} ({error})", None, nothing))
        else:
            results.append(_optima_of_times(name, *answers))
    return results


def _optima_of_times(name: str, seconds: Array, u: Array) -> Optima:
    """Return the optima of a solver that reports its own failures; NaN where it failed."""
    succeeded = np.isfinite(seconds)
    median = float(np.median(seconds[succeeded])) if succeeded.any() else None
    return Optima(
        name, median, np.where(succeeded[:, None], u, np.nan), int(np.count_nonzero(~succeeded))
    )


def _tasks(rti: RealTimeIteration, record: dict[str, Array]) -> list[tuple[Array, Array, Any]]:
    """Return measured state, parameters and guess of every tick."""
    ocp = rti.ocp
    tasks = []
    for q, v, ref, z in zip(*(record[key] for key in ("q", "v", "ref", "z")), strict=True):
        x0 = np.array(ocp.state(q, v)).ravel()
        guess = initial_guess(ocp, *rti.trajectory(z))
        tasks.append((x0, ref.reshape(ocp.horizon + 1, ocp.np_), guess))
    return tasks


def _casadi_optima(
    rti: RealTimeIteration, record: dict[str, Array], solver: str, options: Mapping[str, Any]
) -> Optima:
    built = ocp_solver(rti.ocp, solver, options=options)
    solutions = [built.solve(*task) for task in _tasks(rti, record)]
    succeeded = np.array([solution.solved for solution in solutions])
    u = np.array(
        [solution.u[0] if solution.solved else solution.u[0] * np.nan for solution in solutions]
    )
    seconds = np.array([solution.seconds for solution in solutions])[succeeded]
    median = float(np.median(seconds)) if seconds.size else None
    return Optima(NAMES[solver], median, u, int(np.count_nonzero(~succeeded)))


def _crocoddyl(
    rti: RealTimeIteration, record: dict[str, Array], options: Mapping[str, Any]
) -> Optima:
    crocoddyl: Any = importlib.import_module("crocoddyl")
    clock = [0.0]
    ocp = rti.ocp
    interval, ending = _interval_functions(ocp, options)
    seconds, controls = [], []
    for x0, p, guess in _tasks(rti, record):
        models = [_action(crocoddyl, rti.ocp, interval, p[k], clock) for k in range(ocp.horizon)]
        end_model = _action(crocoddyl, ocp, ending, p[-1], clock)
        problem = crocoddyl.ShootingProblem(x0, models, end_model)
        solver = crocoddyl.SolverBoxFDDP(problem)
        solver.th_stop = STOP
        clock[0] = 0.0
        begin = time.perf_counter()
        converged = solver.solve(list(guess.x), list(guess.u), MOST, False)
        elapsed = time.perf_counter() - begin
        seconds.append(elapsed - clock[0] if converged else np.nan)
        controls.append(np.array(solver.us[0]))
    return _optima_of_times(CROCODDYL, np.array(seconds), np.array(controls))


def _interval_functions(
    ocp: OptimalControlProblem, options: Mapping[str, Any]
) -> tuple[ca.Function, ca.Function]:
    """Return (x, u, p) → (x_next, r, F_x, F_u, r_x, r_u) of an interval and of the end."""
    x, u, p = (ca.MX.sym(key, size) for key, size in
               (("x", ocp.nx), ("u", ocp.nu), ("p", ocp.np_)))  # fmt: skip
    functions = []
    for name, F, r in (
        ("interval", ocp.dynamics(x, u, p), ocp.residual(x, u, p)),
        ("ending", x, ocp.terminal(x, p)),
    ):
        outputs = [F, r, *(ca.densify(ca.jacobian(y, w)) for y in (F, r) for w in (x, u))]
        functions.append(ca.Function(name, [x, u, p], outputs, dict(options)))
    return functions[0], functions[1]


def _action(
    crocoddyl: Any, ocp: OptimalControlProblem, function: ca.Function, p: Array, clock: list[float]
) -> Any:
    """Return one interval as Crocoddyl's action model; what it takes is added to the clock."""

    class Interval(crocoddyl.ActionModelAbstract):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(crocoddyl.StateVector(ocp.nx), ocp.nu, 0)
            self.u_lb, self.u_ub = ocp.u_bounds.T
            self._outputs: tuple[Array, ...] = ()

        def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
            begin = time.perf_counter()
            outputs = function(x, np.zeros(ocp.nu) if u is None else u, p)
            self._outputs = tuple(output.full() for output in outputs)
            data.xnext = self._outputs[0].ravel()
            data.cost = float(self._outputs[1].ravel() @ self._outputs[1].ravel()) / 2
            clock[0] += time.perf_counter() - begin

        def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:  # noqa: ARG002  # Crocoddyl's name
            begin = time.perf_counter()
            _, r, data.Fx, data.Fu, J_x, J_u = self._outputs
            data.Lx, data.Lu = (J_x.T @ r).ravel(), (J_u.T @ r).ravel()
            data.Lxx, data.Lxu, data.Luu = J_x.T @ J_x, J_x.T @ J_u, J_u.T @ J_u
            clock[0] += time.perf_counter() - begin

    return Interval()
