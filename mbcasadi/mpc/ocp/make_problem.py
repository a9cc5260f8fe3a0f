"""Optimal control of a mechanism on its constraint manifold: from weights to data."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.task import Task, gains_of
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.integrators.step import discrete_dynamics, require_horizon
from mbcasadi.mpc.integrators.step_options import DEFAULT_STEP, StepOptions
from mbcasadi.mpc.ocp.actuator_limits import change_rows, control_bounds, force_rows
from mbcasadi.mpc.ocp.constraints import penalties_of
from mbcasadi.mpc.ocp.contact_schedule import schedule_rows
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.mpc.ocp.stage import Bounded, Stage, StageSymbols, slots_of, stage_symbols
from mbcasadi.shapes import bounds, real_array, require_each, weight
from mbcasadi.system import System


@checked
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
    closing: float | None = None,
    depth: float | None = None,
    not_below: Mapping[str, int] = MappingProxyType({}),
    name: str = "ocp",
    step: StepOptions = DEFAULT_STEP,
) -> OptimalControlProblem:
    """Return the optimal control problem of a mechanism on its constraint manifold.

        r_k = √T (√Q (q_ref ⊖ q, v_ref - v), √R (u_ref - u), √w task errors, own residuals),
              and √S (u_k - u_{k-1}) without √T,
        r_N = (√Q_N (q_ref ⊖ q, v_ref - v), own terminal residuals),

    T is the period: weights of stages count per second, and the solution hardly changes with T. The
    state is x = (q, v), or (q, v, u_last) where changes of the control are weighted or bounded.
    References, masks, own parameters and those of the system (`physical`) are slices of p, one p
    for each sample.

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
        closing: largest distance, in a row's unit, from which a mask may close it: the step moves
            it onto `phi = 0`; by default 1 % of a length of the model, or of 1 rad. A schedule that
            closes a row farther away is infeasible.
        not_below: rows that a mask switches and that are unilateral, by name: 1 for `phi >= 0`, -1
            for `phi <= 0`, kept at all samples.
        depth: largest depth, in a row's unit, of a row "not below" in x0, which is measured: where
            feet land, they penetrate the floor of a plant by more than `closing`, which planned
            samples keep; 4 % by default. A larger `closing` counts in its place.
        name: a C identifier.
        step: options of the integrator: `StepOptions(order=, substeps=, newton=, ...)`.

    Raises:
        ProblemError: an invalid horizon or period, an indefinite weight, empty bounds,
            a negative penalty, no cost.
        ShapeError: a wrong shape, rows that are no `Bounded`, an expression of other symbols.
    """
    N = require_horizon(horizon)
    require_each("path", path, Bounded)
    require_each("end", end, Bounded)
    single = discrete_dynamics(system, period, step)
    variables = stage_symbols(system) if symbols is None else symbols
    has_setpoint = any(value is not None for value in (Q, R, Q_end))
    rates = None if du_bounds is None else bounds("du_bounds", du_bounds, system.nu)
    has_rates = rates is not None or S is not None
    stage = Stage(
        system, slots_of(system, has_setpoint, tasks, variables), variables, has_rates, tasks
    )
    running = [np.sqrt(period) * part for part in _stage_residuals(stage, Q, R, tasks, residual)]
    running += [] if S is None else [_weight_root("S", S, system.nu) @ (variables.u - stage.u_last)]
    ending = _end_residuals(stage, Q_end, terminal)
    if not running and not ending:
        raise ProblemError(f"{name}: no cost; give Q, R, Q_end, S, tasks, residual or terminal")
    contacts = schedule_rows(stage, closing, depth, not_below)
    limits = [*force_rows(stage), *change_rows(stage, rates)]
    path_rows = _stack_rows("path", [*path, *limits, *contacts.path])
    end_rows = _stack_rows("end", [*end, *contacts.end])
    first_given = len(path_rows.bounds) - len(contacts.given)
    return OptimalControlProblem(
        name=name,
        horizon=N,
        period=float(period),
        dynamics=stage.dynamics(single),
        residual=stage.function("residual", "r", running),
        terminal=stage.function("terminal", "r", ending, last=True),
        path=stage.function("path", "g", path_rows.values),
        path_bounds=path_rows.bounds,
        end=stage.function("end", "g", end_rows.values, last=True),
        end_bounds=end_rows.bounds,
        x_bounds=_state_bounds(stage, q_bounds, v_bounds),
        u_bounds=control_bounds(system, u_bounds),
        slots=stage.slots,
        state=stage.state(),
        nominal=stage.nominal(N, float(period)),
        path_penalties=path_rows.penalties,
        end_penalties=end_rows.penalties,
        du_bounds=rates,
        given_rows=tuple(range(first_given, len(path_rows.bounds))),
        given_bounds=contacts.given if len(contacts.given) else None,
        rest=stage.rest(),
        tracking=stage.tracking(),
        system=stage.system,
        physical=system.parameters,
        tasks=tuple(tasks),
        labels=stage.labels() | {"path": path_rows.names, "end": end_rows.names},
    )


class _StackedRows(NamedTuple):
    """Rows of all `Bounded`, one below the other."""

    values: list[ca.SX]
    bounds: Array
    penalties: Array
    names: tuple[str, ...]


def _stack_rows(kind: str, rows: Sequence[Bounded]) -> _StackedRows:
    """Return the rows of "path" or "end"."""
    values = [ca.SX(row.value) for row in rows]
    limits, penalties, names = [np.empty((0, 2))], [np.empty((0, 2))], []
    for i, (row, value) in enumerate(zip(rows, values, strict=True)):
        n, name = value.numel(), row.name or f"{kind}[{i}]"
        sides = [np.broadcast_to(real_array(name, e).ravel(), n) for e in (row.lower, row.upper)]
        limits.append(bounds(name, np.column_stack(sides), n))
        penalties.append(penalties_of(name, row.linear_penalty, row.quadratic_penalty, limits[-1]))
        names += [name] if n == 1 else [f"{name}[{j}]" for j in range(n)]
    columns = [ca.vec(value) for value in values]
    return _StackedRows(columns, np.vstack(limits), np.vstack(penalties), tuple(names))


def _state_bounds(stage: Stage, q_bounds: ArrayLike | None, v_bounds: ArrayLike | None) -> Array:
    """Return bounds of x; the last control in it has none of its own."""
    return np.vstack(
        [
            bounds("q_bounds", q_bounds, stage.system.nq),
            bounds("v_bounds", v_bounds, stage.system.nv),
            np.tile([-np.inf, np.inf], (stage.u_last.numel(), 1)),
        ]
    )


def _stage_residuals(
    stage: Stage,
    Q: ArrayLike | None,
    R: ArrayLike | None,
    tasks: Sequence[Task],
    residual: ca.SX | None,
) -> list[ca.SX]:
    """Return the residuals of one stage, per second.

    Args:
        stage: symbols.
        Q, R, tasks, residual: as in `optimal_control_problem`.
    """
    variables, system = stage.variables, stage.system
    residuals = [] if Q is None else [_weight_root("Q", Q, 2 * system.nv) @ _error(stage)]
    if R is not None:
        residuals.append(_weight_root("R", R, system.nu) @ (stage.ref["setpoint.u"] - variables.u))
    for task in tasks:
        gains = gains_of(task, system)
        ref = {slot.name.split(".")[-1]: stage.ref[slot.name] for slot in task.slots(system)}
        rows = task.rows(stage.members, variables.carried_q, variables.v, ref, gains)
        residuals.append(ca.DM(np.sqrt(gains.weight)) * rows.error)
    return residuals if residual is None else [*residuals, residual]


def _end_residuals(stage: Stage, Q_end: ArrayLike | None, terminal: ca.SX | None) -> list[ca.SX]:
    """Return the residuals at the end."""
    size = 2 * stage.system.nv
    residuals = [] if Q_end is None else [_weight_root("Q_end", Q_end, size) @ _error(stage)]
    return residuals if terminal is None else [*residuals, terminal]


def _error(stage: Stage) -> ca.SX:
    """Return `(q_ref ⊖ q, v_ref - v)`."""
    q, v = stage.variables.q, stage.variables.v
    return ca.vertcat(
        stage.system.difference(q, stage.ref["setpoint.q"]), stage.ref["setpoint.v"] - v
    )


def _weight_root(name: str, value: ArrayLike, size: int) -> ca.DM:
    """Return L with `Lᵀ L` the weight, without rows that are zero."""
    W = weight(name, value, size)
    squares, V = (
        np.linalg.eigh(W) if np.any(W - np.diag(np.diag(W))) else (np.diag(W), np.eye(size))
    )
    L = np.sqrt(np.maximum(squares, 0.0))[:, None] * V.T
    return ca.sparsify(ca.DM(L[squares > 0]))
