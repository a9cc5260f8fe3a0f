"""The same optimal control problem, solved to its end by others, beside one real-time iteration.

Every solver starts from the guess that the tick starts from, at states of the closed loop. IPOPT,
Fatrop and sqpmethod get their functions compiled; each answer is examined by our residuals.
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

from mbcasadi.benchmarks import mpc_acados
from mbcasadi.benchmarks.rows import row
from mbcasadi.mpc import OptimalControlProblem, initial_guess, ocp_solver
from mbcasadi.mpc.rti.controller import RealTimeIteration

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
    """What a solver answers at some states.

    Attributes:
        name: of the solver; says so where it is absent.
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
    found = optima(rti, record, options)
    best = found[0].u
    own = row(model, "whole tick, one iteration", median, "-", None) | {"miss": _largest(u - best)}
    lines = [own]
    for peer in found:
        line = row(model, "whole tick against the whole problem", median, peer.name, peer.median)
        lines.append(line | {"miss": _largest(peer.u - best), "unsolved": peer.unsolved})
    return lines


def _largest(miss: Array) -> float | None:
    return float(np.nanmax(np.abs(miss))) if np.any(np.isfinite(miss)) else None


def optima(
    rti: RealTimeIteration, record: dict[str, Array], options: Mapping[str, Any]
) -> list[Optima]:
    """Return the answers of all solvers at the states of a record; IPOPT's come first.

    `options` are those of the functions that they call, `COMPILED` or none.
    """
    found = [_examined(rti, record, solver, options) for solver in OURS]
    nothing = np.full_like(found[0].u, np.nan)
    if importlib.util.find_spec("crocoddyl") is None:
        found.append(Optima(f"{CROCODDYL} (absent: install crocoddyl)", None, nothing))
    else:
        found.append(_crocoddyl(rti, record, options))
    for kind, name in mpc_acados.KINDS.items():
        if not mpc_acados.available():
            found.append(Optima(f"{name} ({mpc_acados.ABSENT})", None, nothing))
            continue
        found.append(_told(name, *mpc_acados.answers(rti.ocp, kind, _tasks(rti, record))))
    return found


def _told(name: str, seconds: Array, u: Array) -> Optima:
    """Return what a solver says that examines its answers itself; NaN where it failed."""
    good = np.isfinite(seconds)
    median = float(np.median(seconds[good])) if good.any() else None
    return Optima(name, median, np.where(good[:, None], u, np.nan), int(np.count_nonzero(~good)))


def _tasks(rti: RealTimeIteration, record: dict[str, Array]) -> list[tuple[Array, Array, Any]]:
    """Return measured state, parameters and guess of every tick."""
    ocp = rti.ocp
    tasks = []
    for q, v, ref, z in zip(*(record[key] for key in ("q", "v", "ref", "z")), strict=True):
        x0 = np.array(ocp.state(q, v)).ravel()
        guess = initial_guess(ocp, *rti.trajectory(z))
        tasks.append((x0, ref.reshape(ocp.horizon + 1, ocp.np_), guess))
    return tasks


def _examined(
    rti: RealTimeIteration, record: dict[str, Array], solver: str, options: Mapping[str, Any]
) -> Optima:
    solve = ocp_solver(rti.ocp, solver, options=options)
    answers = [solve(*task) for task in _tasks(rti, record)]
    good = np.array([answer.solved for answer in answers])
    u = np.array([answer.u[0] if answer.solved else answer.u[0] * np.nan for answer in answers])
    seconds = np.array([answer.seconds for answer in answers])[good]
    median = float(np.median(seconds)) if seconds.size else None
    return Optima(NAMES[solver], median, u, int(np.count_nonzero(~good)))


def _crocoddyl(
    rti: RealTimeIteration, record: dict[str, Array], options: Mapping[str, Any]
) -> Optima:
    crocoddyl: Any = importlib.import_module("crocoddyl")
    clock = [0.0]
    ocp = rti.ocp
    interval, ending = _compiled(ocp, options)
    seconds, controls = [], []
    for x0, p, guess in _tasks(rti, record):
        models = [_action(crocoddyl, rti.ocp, interval, p[k], clock) for k in range(ocp.horizon)]
        last = _action(crocoddyl, ocp, ending, p[-1], clock)
        problem = crocoddyl.ShootingProblem(x0, models, last)
        solver = crocoddyl.SolverBoxFDDP(problem)
        solver.th_stop = STOP
        clock[0] = 0.0
        begin = time.perf_counter()
        done = solver.solve(list(guess.x), list(guess.u), MOST, False)
        whole = time.perf_counter() - begin
        seconds.append(whole - clock[0] if done else np.nan)
        controls.append(np.array(solver.us[0]))
    return _told(CROCODDYL, np.array(seconds), np.array(controls))


def _compiled(
    ocp: OptimalControlProblem, options: Mapping[str, Any]
) -> tuple[ca.Function, ca.Function]:
    """Return (x, u, p) → (x_next, r, F_x, F_u, r_x, r_u) of an interval and of the end."""
    x, u, p = (ca.MX.sym(key, size) for key, size in
               (("x", ocp.nx), ("u", ocp.nu), ("p", ocp.np_)))  # fmt: skip
    made = []
    for name, F, r in (
        ("interval", ocp.dynamics(x, u, p), ocp.residual(x, u, p)),
        ("ending", x, ocp.terminal(x, p)),
    ):
        parts = [F, r, *(ca.densify(ca.jacobian(y, w)) for y in (F, r) for w in (x, u))]
        made.append(ca.Function(name, [x, u, p], parts, dict(options)))
    return made[0], made[1]


def _action(
    crocoddyl: Any, ocp: OptimalControlProblem, function: ca.Function, p: Array, clock: list[float]
) -> Any:
    """Return one interval as Crocoddyl's action model; what it takes is added to the clock."""

    class Interval(crocoddyl.ActionModelAbstract):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(crocoddyl.StateVector(ocp.nx), ocp.nu, 0)
            self.u_lb, self.u_ub = ocp.u_bounds.T
            self.kept: tuple[Array, ...] = ()

        def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
            begin = time.perf_counter()
            parts = function(x, np.zeros(ocp.nu) if u is None else u, p)
            self.kept = tuple(part.full() for part in parts)
            data.xnext = self.kept[0].ravel()
            data.cost = float(self.kept[1].ravel() @ self.kept[1].ravel()) / 2
            clock[0] += time.perf_counter() - begin

        def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:  # noqa: ARG002  # Crocoddyl's name
            begin = time.perf_counter()
            _, r, data.Fx, data.Fu, J_x, J_u = self.kept
            data.Lx, data.Lu = (J_x.T @ r).ravel(), (J_u.T @ r).ravel()
            data.Lxx, data.Lxu, data.Luu = J_x.T @ J_x, J_x.T @ J_u, J_u.T @ J_u
            clock[0] += time.perf_counter() - begin

    return Interval()
