"""Quadratic costs of state, control and its changes, and of residuals of one's own."""

from dataclasses import dataclass, replace
from typing import Any, final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.tasks.task import Gains, Slot, Task, gains_of
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import weight
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.coordinates import rates


@final
@summarised
@readable_fields
@dataclass(frozen=True)
class Cost(StagePart):
    """`½ ‖r‖²` of these residuals; weights of stages count per second.

        r_k = √T (√Q (q_ref ⊖ q, v_ref - v), √R (u_ref - u), residual),  and  √S (u_k - u_{k-1}),
        r_N = (√Q_end (q_ref ⊖ q, v_ref - v), terminal).

    Attributes:
        Q, Q_end: (2 nv, 2 nv) or (2 nv,) weights of `(q_ref ⊖ q, v_ref - v)`, along the motion
            (per second) and at its end.
        R: (nu, nu) or (nu,) weight of `u_ref - u`, per second.
        S: (nu, nu) or (nu,) weight of `u_k - u_{k-1}`, of each change. With it x0 holds the control
            of the interval before the first one: (q, v, u_last).
        residual: r of q, v, u and own parameters, per second.
        terminal: r of q, v and own parameters, at the end.
    """

    Q: ArrayLike | None = None
    R: ArrayLike | None = None
    Q_end: ArrayLike | None = None
    S: ArrayLike | None = None
    residual: ca.SX | None = None
    terminal: ca.SX | None = None

    def __post_init__(self) -> None:
        require_fields(self)

    @property
    def has_setpoint(self) -> bool:
        """Whether it reads a setpoint of q, v and u."""
        return any(value is not None for value in (self.Q, self.R, self.Q_end))

    @property
    def has_changes(self) -> bool:
        """Whether it reads the control of the interval before."""
        return self.S is not None

    def terms(self, stage: Stage) -> StageTerms:
        """Return the residuals."""
        u = stage.variables.u
        running, changes, ending = list[ca.SX](), list[ca.SX](), list[ca.SX]()
        if self.Q is not None:
            running.append(_weight_root(stage, "Q", self.Q) @ _error(stage))
        if self.R is not None:
            running.append(_weight_root(stage, "R", self.R) @ (stage.ref["setpoint.u"] - u))
        if self.residual is not None:
            running.append(self.residual)
        if self.S is not None:
            changes.append(_weight_root(stage, "S", self.S) @ (u - stage.u_last))
        if self.Q_end is not None:
            ending.append(_weight_root(stage, "Q_end", self.Q_end) @ _error(stage))
        if self.terminal is not None:
            ending.append(self.terminal)
        return StageTerms(running=running, changes=changes, ending=ending)


@final
@dataclass(frozen=True)
class TaskCost(StagePart):
    """`½ Σ w |(kp e, kd ė)|²` per second: a task's errors, as the accelerations that they ask for.

    Gains and weight are those of inverse dynamics. A task with `kp = 1, kd = 0` costs `½ w |e|²`.
    """

    task: Task

    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slices of the task's reference."""
        return self.task.slots(system)

    def terms(self, stage: Stage) -> StageTerms:
        """Return the residuals."""
        gains, q, v = _tuned_gains(stage, self.task), stage.variables.carried_q, stage.variables.v
        ref = {
            slot.name.removeprefix(f"{self.task.name}."): stage.ref[slot.name]
            for slot in self.task.slots(stage.system)
        }
        feedback = self.task.rows(stage.members, q, v, ref, gains).feedback
        root = ca.sqrt(ca.SX(ca.vertcat(gains.weight)))
        columns = zip(ca.horzsplit(feedback), (gains.kp, gains.kd), strict=True)
        running = [root * column for column, gain in columns if not ca.SX(gain).is_zero()]
        held = self.task.hold_reference(stage.system, stage.rest()[: stage.system.nq])
        nominal = {f"{self.task.name}.{name}": np.array(value) for name, value in held.items()}
        return StageTerms(running=running, nominal=nominal)


def _error(stage: Stage) -> ca.SX:
    """Return `(q_ref ⊖ q, v_ref - v)`."""
    q, v = stage.variables.q, stage.variables.v
    return ca.vertcat(
        stage.system.difference(q, stage.ref["setpoint.q"]), stage.ref["setpoint.v"] - v
    )


def _tuned_gains(stage: Stage, task: Task) -> Gains:
    """Return the gains of a task's rows, entries of the tuning where they are tunable."""
    gains, rows = gains_of(task, stage.system), task.components(stage.system)
    kinds = {"kp": ("gains", "1/s²"), "kd": ("gains", "1/s"), "weight": ("weights", "")}
    tuned = dict[str, Any]()
    for key, (kind, unit) in kinds.items():
        names = [f"{task.name}.{key}.{row}" for row in rows]
        if kind in stage.tuning.tunable:
            tuned[key] = stage.tuning.numbers(kind, names, getattr(gains, key), unit)
    return replace(gains, **tuned)


def _weight_root(stage: Stage, name: str, value: ArrayLike) -> ca.DM | ca.SX:
    """Return L with `Lᵀ L` the weight, without rows that are zero.

    Where weights are tunable, the diagonal has an entry each, any other matrix a factor.
    """
    system = stage.system
    deviations = rates(system).components
    of_state = [*(f"q.{each}" for each in deviations), *(f"v.{each}" for each in deviations)]
    names = system.actuator_names if name in ("R", "S") else tuple(of_state)
    size = len(names)
    W = weight(name, value, size)
    is_diagonal = not np.any(W - np.diag(np.diag(W)))
    tuned = "weights" in stage.tuning.tunable
    if tuned and is_diagonal:
        entries = [f"{name}.{each}" for each in names]
        return ca.diag(ca.sqrt(stage.tuning.numbers("weights", entries, np.diag(W))))
    squares, V = (np.diag(W), np.eye(size)) if is_diagonal else np.linalg.eigh(W)
    L = np.sqrt(np.maximum(squares, 0.0))[:, None] * V.T
    root = ca.sparsify(ca.DM(L[squares > 0]))
    if not tuned:
        return root
    return ca.sqrt(stage.tuning.numbers("weights", [f"{name}.factor"], np.ones(1))) * root
