"""Optimal control of a mechanism on its constraint manifold: from weights to data.

    r_k = √T (√Q (q_ref ⊖ q, v_ref - v), √R (u_ref - u), √w task errors, own residuals),
          and √S (u_k - u_{k-1}) without √T,
    r_N = (√Q_N (q_ref ⊖ q, v_ref - v), own terminal residuals),

T is the period: weights of stages count per second, and the solution hardly changes with T. The
state is x = (q, v), or (q, v, u_last) where changes of the control are weighted or bounded.
References, masks and own parameters are slices of p, one p for each sample.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.tasks.task import Task, gains_of
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.integrators.step import discrete_dynamics
from mbcasadi.mpc.integrators.step_options import require_step_options
from mbcasadi.mpc.ocp.constraints import penalties_of
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.stage import Bounded, Stage, StageSymbols, slots_of, stage_symbols
from mbcasadi.shapes import bounds, require_each, weight
from mbcasadi.system import System
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import Ranges


def optimal_control_problem(
    system: System,
    horizon: int,
    period: float,
    *,
    Q: ArrayLike | None = None,
    R: ArrayLike | None = None,
    Q_end: ArrayLike | None = None,
    S: ArrayLike | None = None,
    tasks: Sequence[Task] = (),
    symbols: StageSymbols | None = None,
    residual: ca.SX | None = None,
    terminal: ca.SX | None = None,
    path: Sequence[Bounded] = (),
    end: Sequence[Bounded] = (),
    u_bounds: ArrayLike | None = None,
    du_bounds: ArrayLike | None = None,
    q_bounds: ArrayLike | None = None,
    v_bounds: ArrayLike | None = None,
    name: str = "ocp",
    **integrator: Any,
) -> OptimalControlProblem:
    """Return the problem of the head of this file.

    Args:
        system: the mechanism.
        horizon: number of intervals N.
        period: length of one, s.
        Q, Q_end: (2 nv, 2 nv) or (2 nv,) weights of `(q_ref ⊖ q, v_ref - v)`, along the motion
            (per second) and at its end.
        R: (nu, nu) or (nu,) weight of `u_ref - u`, per second.
        S: (nu, nu) or (nu,) weight of `u_k - u_{k-1}`, of each change. With it, or with du_bounds,
            x0 holds the control of the interval before the first one: (q, v, u_last).
        tasks: those of inverse dynamics; the cost of their errors has their weights, per second.
        symbols: those of the expressions that follow; see `stage_symbols`.
        residual: r of `½ ‖r‖²` per second, of q, v, u and own parameters.
        terminal: r of `½ ‖r‖²` at the end, of q, v and own parameters.
        path: rows of q, v, u at every sample but the last, hard or soft. A row of q and v alone
            also bounds x0, which is given: from an x0 that violates it there is no solution. A
            real-time iteration applies such a row from the next sample on.
        end: rows of q, v at the last sample. On a manifold, fix independent coordinates and not all
            of q: rows that repeat the loops have no unique multipliers.
        u_bounds: (nu, 2); the model's ranges of controls and forces hold as well.
        du_bounds: (nu, 2) of `u_k - u_{k-1}`, per interval.
        q_bounds, v_bounds: (nq, 2), (nv, 2), from the second sample on.
        name: a C identifier.
        integrator: options of `integrators.step_fun` (`order`, `substeps`, `newton`, ...).

    Raises:
        ProblemError: an invalid horizon or period, an indefinite weight, empty bounds,
            a negative penalty, no cost.
        ShapeError: a wrong shape, rows that are no `Bounded`, an expression of other symbols.
        UnknownNameError: an option that neither this function nor the integrator has.
    """
    if not float(horizon).is_integer() or horizon < 1:
        raise ProblemError(f"horizon = {horizon}; expected a number of intervals, at least 1")
    require_step_options(optimal_control_problem, integrator)
    step = discrete_dynamics(system, period, **integrator)
    own = stage_symbols(system) if symbols is None else symbols
    follows = any(given is not None for given in (Q, R, Q_end))
    rates = None if du_bounds is None else bounds("du_bounds", du_bounds, system.nu)
    rated = rates is not None or S is not None
    stage = Stage(system, slots_of(system, follows, tasks, own), own, rated)
    running = [np.sqrt(period) * part for part in _running(stage, Q, R, tasks, residual)]
    running += [] if S is None else [_root("S", S, system.nu) @ (own.u - stage.u_last)]
    ending = _ending(stage, Q_end, terminal)
    if not running and not ending:
        raise ProblemError(f"{name}: no cost; give Q, R, Q_end, S, tasks, residual or terminal")
    limited = [*_force_ranges(system, stage), *_rate_rows(stage, rates)]
    along, at_end = _rows("path", [*path, *limited]), _rows("end", end)
    x_bounds = np.vstack(
        [
            bounds("q_bounds", q_bounds, system.nq),
            bounds("v_bounds", v_bounds, system.nv),
            np.tile([-np.inf, np.inf], (stage.u_last.numel(), 1)),
        ]
    )
    limits = _within(bounds("u_bounds", u_bounds, system.nu), system.limits.ctrl)
    return OptimalControlProblem(
        name=name,
        horizon=int(horizon),
        period=float(period),
        dynamics=stage.dynamics(step),
        residual=stage.function("residual", "r", running),
        terminal=stage.function("terminal", "r", ending, last=True),
        path=stage.function("path", "g", along.values),
        path_bounds=along.bounds,
        end=stage.function("end", "g", at_end.values, last=True),
        end_bounds=at_end.bounds,
        x_bounds=x_bounds,
        u_bounds=limits,
        slots=stage.slots,
        state=stage.state(),
        nominal=stage.nominal(int(horizon), float(period)),
        path_penalties=along.penalties,
        end_penalties=at_end.penalties,
        du_bounds=rates,
        rest=stage.rest(),
        labels=stage.labels() | {"path": along.names, "end": at_end.names},
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


class _Rows(NamedTuple):
    values: list[ca.SX]
    bounds: Array
    penalties: Array
    names: tuple[str, ...]


def _rows(kind: str, given: Sequence[Bounded]) -> _Rows:
    require_each(kind, given, Bounded)
    values = [ca.SX(row.value) for row in given]
    ends, prices, names = [np.empty((0, 2))], [np.empty((0, 2))], []
    for i, (row, value) in enumerate(zip(given, values, strict=True)):
        n, name = value.numel(), row.name or f"{kind}[{i}]"
        sides = [np.broadcast_to(np.asarray(e, float).ravel(), n) for e in (row.lower, row.upper)]
        ends.append(bounds(name, np.column_stack(sides), n))
        prices.append(penalties_of(name, row.linear_penalty, row.quadratic_penalty, ends[-1]))
        names += [name] if n == 1 else [f"{name}[{j}]" for j in range(n)]
    column = [ca.vec(value) for value in values]
    return _Rows(column, np.vstack(ends), np.vstack(prices), tuple(names))


def _rate_rows(stage: Stage, rates: Array | None) -> list[Bounded]:
    """Return the bounds of changes, one for each control that has any."""
    if rates is None:
        return []
    bounded = np.flatnonzero(np.isfinite(rates).any(axis=1))
    change = stage.own.u - stage.u_last
    names = stage.system.actuator_names
    return [
        Bounded(change[i], rates[i, 0], rates[i, 1], name=f"du.{names[i]}")
        for i in bounded.tolist()
    ]


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
        now = actuator_model(system, Ranges(limits.ctrl, limits.force), 1.0, own.q, own.v, None)
        force = (now.gain * own.u + now.bias)[limited.tolist()]
        rows.append(
            Bounded(force, limits.force[limited][:, 0], limits.force[limited][:, 1], name="force")
        )
    if system.tree is not None and np.isfinite(limits.joint_force).any():
        dofs = {joint.name: joint.dof for joint in system.tree.joints}
        finite = np.flatnonzero(np.isfinite(limits.joint_force).any(axis=1))
        force = system.actuation(own.q) @ own.u + system.actuator_bias(own.q, own.v)
        chosen = [dofs[limits.joint_names[i]] for i in finite]
        rows.append(
            Bounded(
                force[chosen],
                limits.joint_force[finite][:, 0],
                limits.joint_force[finite][:, 1],
                name="joint_force",
            )
        )
    return rows
