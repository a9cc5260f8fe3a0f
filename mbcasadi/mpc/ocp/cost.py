"""The cost of an optimal control problem as residuals, of which it is half the square."""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.tasks.task import Task, gains_of
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.shapes import weight


def stage_residuals(
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
    residuals = [] if Q is None else [weight_root("Q", Q, 2 * system.nv) @ _error(stage)]
    if R is not None:
        residuals.append(weight_root("R", R, system.nu) @ (stage.ref["setpoint.u"] - variables.u))
    for task in tasks:
        gains = gains_of(task, system)
        ref = {slot.name.split(".")[-1]: stage.ref[slot.name] for slot in task.slots(system)}
        rows = task.rows(stage.members, variables.carried_q, variables.v, ref, gains)
        residuals.append(ca.DM(np.sqrt(gains.weight)) * rows.error)
    return residuals if residual is None else [*residuals, residual]


def end_residuals(stage: Stage, Q_end: ArrayLike | None, terminal: ca.SX | None) -> list[ca.SX]:
    """Return the residuals at the end."""
    size = 2 * stage.system.nv
    residuals = [] if Q_end is None else [weight_root("Q_end", Q_end, size) @ _error(stage)]
    return residuals if terminal is None else [*residuals, terminal]


def _error(stage: Stage) -> ca.SX:
    """Return `(q_ref ⊖ q, v_ref - v)`."""
    q, v = stage.variables.q, stage.variables.v
    return ca.vertcat(
        stage.system.difference(q, stage.ref["setpoint.q"]), stage.ref["setpoint.v"] - v
    )


def weight_root(name: str, value: ArrayLike, size: int) -> ca.DM:
    """Return L with `Lᵀ L` the weight, without rows that are zero."""
    W = weight(name, value, size)
    squares, V = (
        np.linalg.eigh(W) if np.any(W - np.diag(np.diag(W))) else (np.diag(W), np.eye(size))
    )
    L = np.sqrt(np.maximum(squares, 0.0))[:, None] * V.T
    return ca.sparsify(ca.DM(L[squares > 0]))
