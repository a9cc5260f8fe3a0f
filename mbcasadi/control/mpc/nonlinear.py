"""Optimal control of a mechanism on its constraint manifold: from weights to data.

    r_k = √T (√Q (q_ref ⊖ q, v_ref - v), √R (u_ref - u), √w task errors, own residuals),
    r_N = (√Q_N (q_ref ⊖ q, v_ref - v), own terminal residuals),

T is the period: weights of stages count per second, and the solution hardly changes with T.
References, masks and own parameters are slices of p, one p for each sample.
"""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.actuation import Ranges, drive
from mbcasadi.control.linear.riccati import weight
from mbcasadi.control.mpc.integrators import discrete_dynamics
from mbcasadi.control.mpc.linear_problem import bounds
from mbcasadi.control.mpc.ocp import Array, OptimalControlProblem
from mbcasadi.control.mpc.ocp_stage import (
    Bounded,
    Stage,
    StageSymbols,
    slots_of,
    stage_symbols,
)
from mbcasadi.control.tasks import Task, gains_of
from mbcasadi.errors import ProblemError
from mbcasadi.system import System


def optimal_control_problem(
    system: System,
    horizon: int,
    period: float,
    *,
    Q: ArrayLike | None = None,
    R: ArrayLike | None = None,
    Q_end: ArrayLike | None = None,
    tasks: Sequence[Task] = (),
    symbols: StageSymbols | None = None,
    residual: ca.SX | None = None,
    terminal: ca.SX | None = None,
    path: Sequence[Bounded] = (),
    end: Sequence[Bounded] = (),
    u_bounds: ArrayLike | None = None,
    q_bounds: ArrayLike | None = None,
    v_bounds: ArrayLike | None = None,
    name: str = "ocp",
    **integrator: Any,
) -> OptimalControlProblem:
    """Return the problem of the head of this file, `x = (q, v)`.

    Args:
        system: the mechanism.
        horizon: number of intervals N.
        period: length of one, s.
        Q, Q_end: (2 nv, 2 nv) or (2 nv,) weights of `(q_ref ⊖ q, v_ref - v)`, along the motion
            (per second) and at its end.
        R: (nu, nu) or (nu,) weight of `u_ref - u`, per second.
        tasks: as inverse dynamics takes them; their errors count with their weights, per second.
        symbols: those of the expressions that follow; see `stage_symbols`.
        residual: r of `½ ‖r‖²` per second, of q, v, u and own parameters.
        terminal: r of `½ ‖r‖²` at the end, of q, v and own parameters.
        path: rows of q, v, u at every sample but the last.
        end: rows of q, v at the last sample. On a manifold, fix freedoms and not all of q: rows
            that repeat what the loops say have no unique multipliers.
        u_bounds: (nu, 2); the model's ranges of controls and forces hold besides.
        q_bounds, v_bounds: (nq, 2), (nv, 2), from the second sample on.
        name: a C identifier.
        integrator: options of `integrators.step_fun` (`order`, `substeps`, `newton`, ...).

    Raises:
        ProblemError: a horizon or period that makes no sense, an indefinite weight, empty bounds,
            no cost.
        ShapeError: a wrong shape, or an expression of other symbols.
    """
    if not float(horizon).is_integer() or horizon < 1:
        raise ProblemError(f"horizon = {horizon}; expected a number of intervals, at least 1")
    step = discrete_dynamics(system, period, **integrator)
    own = stage_symbols(system) if symbols is None else symbols
    follows = any(given is not None for given in (Q, R, Q_end))
    stage = Stage(system, slots_of(system, follows, tasks, own), own)
    running = [np.sqrt(period) * part for part in _running(stage, Q, R, tasks, residual)]
    ending = _ending(stage, Q_end, terminal)
    if not running and not ending:
        raise ProblemError(f"{name}: no cost; give Q, R, Q_end, tasks, residual or terminal")
    rows = [*path, *_force_ranges(system, stage)]
    g, g_bounds = _rows("path", rows)
    g_end, end_bounds = _rows("end", end)
    x_bounds = np.vstack(
        [bounds("q_bounds", q_bounds, system.nq), bounds("v_bounds", v_bounds, system.nv)]
    )
    limits = _within(bounds("u_bounds", u_bounds, system.nu), system.limits.ctrl)
    return OptimalControlProblem(
        name=name,
        horizon=int(horizon),
        period=float(period),
        dynamics=stage.dynamics(step),
        residual=stage.function("residual", "r", running),
        terminal=stage.function("terminal", "r", ending, last=True),
        path=stage.function("path", "g", g),
        path_bounds=g_bounds,
        end=stage.function("end", "g", g_end, last=True),
        end_bounds=end_bounds,
        x_bounds=x_bounds,
        u_bounds=limits,
        slots=stage.slots,
        state=_state_fun(system),
        nominal=stage.nominal(int(horizon), float(period)),
    )


def _running(
    stage: Stage,
    Q: ArrayLike | None,
    R: ArrayLike | None,
    tasks: Sequence[Task],
    residual: ca.SX | None,
) -> list[ca.SX]:
    own, system = stage.own, stage.system
    parts = [] if Q is None else [_root("Q", Q, 2 * system.nv) @ _error(stage)]
    if R is not None:
        parts.append(_root("R", R, system.nu) @ (stage.ref["setpoint.u"] - own.u))
    for task in tasks:
        gains = gains_of(task, system)
        ref = {slot.name.split(".")[-1]: stage.ref[slot.name] for slot in task.slots(system)}
        error = task.rows(system, own.q, own.v, ref, gains).error
        parts.append(ca.DM(np.sqrt(gains.weight)) * error)
    return parts if residual is None else [*parts, residual]


def _ending(stage: Stage, Q_end: ArrayLike | None, terminal: ca.SX | None) -> list[ca.SX]:
    size = 2 * stage.system.nv
    parts = [] if Q_end is None else [_root("Q_end", Q_end, size) @ _error(stage)]
    return parts if terminal is None else [*parts, terminal]


def _error(stage: Stage) -> ca.SX:
    q, v = stage.own.q, stage.own.v
    return ca.vertcat(
        stage.system.difference(q, stage.ref["setpoint.q"]), stage.ref["setpoint.v"] - v
    )


def _root(name: str, value: ArrayLike, size: int) -> ca.DM:
    """Return L with `Lᵀ L` the weight, without rows that are zero."""
    W = weight(name, value, size)
    squares, V = (
        np.linalg.eigh(W) if np.any(W - np.diag(np.diag(W))) else (np.diag(W), np.eye(size))
    )
    L = np.sqrt(np.maximum(squares, 0.0))[:, None] * V.T
    return ca.sparsify(ca.DM(L[squares > 0]))


def _rows(name: str, given: Sequence[Bounded]) -> tuple[list[ca.SX], Array]:
    values = [ca.SX(row.value) for row in given]
    ends = []
    for i, (row, value) in enumerate(zip(given, values, strict=True)):
        n = value.numel()
        sides = [np.broadcast_to(np.asarray(e, float).ravel(), n) for e in (row.lower, row.upper)]
        ends.append(bounds(f"{name}[{i}]", np.column_stack(sides), n))
    return [ca.vec(value) for value in values], np.vstack([np.empty((0, 2)), *ends])


def _within(given: Array, ranges: Array) -> Array:
    """Return bounds inside the model's ranges."""
    cut = np.column_stack(
        [np.maximum(given[:, 0], ranges[:, 0]), np.minimum(given[:, 1], ranges[:, 1])]
    )
    return bounds("u_bounds inside the model's ctrlrange", cut, cut.shape[0])


def _force_ranges(system: System, stage: Stage) -> list[Bounded]:
    """Return the ranges of actuator forces and of their sums on joints, where they are finite."""
    limits, own = system.limits, stage.own
    rows = []
    limited = np.flatnonzero(np.isfinite(limits.force).any(axis=1))
    if limited.size:
        now = drive(system, Ranges(limits.ctrl, limits.force), 1.0, own.q, own.v, None)
        force = (now.gain * own.u + now.bias)[limited.tolist()]
        rows.append(Bounded(force, *limits.force[limited].T))
    if system.tree is not None and np.isfinite(limits.joint_force).any():
        dofs = {joint.name: joint.dof for joint in system.tree.joints}
        finite = np.flatnonzero(np.isfinite(limits.joint_force).any(axis=1))
        force = system.actuation(own.q) @ own.u + system.actuator_bias(own.q, own.v)
        chosen = [dofs[limits.joint_names[i]] for i in finite]
        rows.append(Bounded(force[chosen], *limits.joint_force[finite].T))
    return rows


def _state_fun(system: System) -> ca.Function:
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    return ca.Function("state", [q, v], [ca.vertcat(q, v)], ["q", "v"], ["x"])
