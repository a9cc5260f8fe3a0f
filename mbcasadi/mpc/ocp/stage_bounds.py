"""Bounds of state and control, and the ranges of a mechanism's actuators."""

from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import FREE, StagePart, StageTerms
from mbcasadi.qp.rows import Bounded
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import bounds
from mbcasadi.system import System, evaluate
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import Ranges


@final
@readable_fields
@dataclass(frozen=True)
class StageBounds(StagePart):
    """Bounds of controls, of their changes, and of the state.

    Attributes:
        u: (nu, 2); the model's ranges of controls and forces hold as well.
        du: (nu, 2) of `u_k - u_{k-1}`, per interval; where lengths are given, of one with the
            nominal length of the first, others in proportion. With it x0 holds the control of the
            interval before the first one: (q, v, u_last).
        q, v: (nq, 2), (nv, 2), from the second sample on.
    """

    u: ArrayLike | None = None
    du: ArrayLike | None = None
    q: ArrayLike | None = None
    v: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_fields(self)

    @property
    def has_changes(self) -> bool:
        """Whether it reads the control of the interval before."""
        return self.du is not None

    def terms(self, stage: Stage) -> StageTerms:
        """Return the bounds."""
        system, none = stage.system, np.tile(FREE, (stage.u_last.numel(), 1))
        du = None if self.du is None else bounds("du", self.du, system.nu)
        of_state = [bounds("q", self.q, system.nq), bounds("v", self.v, system.nv), none]
        u, x = bounds("u", self.u, system.nu), np.vstack(of_state)
        labels, names, change = stage.labels(), system.actuator_names, _change(stage)
        of_u = stage.tuning.rows([f"u.{name}" for name in names], stage.variables.u, u)
        of_x, of_du = stage.tuning.rows(labels["x"], stage.x, x), None
        if du is not None:
            of_du = stage.tuning.rows([f"du.{name}" for name in names], change, du)
        if of_u is None or of_x is None:
            rows = [] if du is None else _change_rows(stage, du)
            return StageTerms(rows=rows, x_bounds=x, u_bounds=u, du_bounds=du)
        rows = [*of_u, *(of_du or []), *of_x]
        places = range(len(rows) - len(of_x), len(rows))
        return StageTerms(
            rows=[*rows, *(replace(row, at_end=True) for row in of_x)],
            given=dict.fromkeys(places, FREE),
            du_bounds=None if du is None else np.tile(FREE, (system.nu, 1)),
        )


@final
@dataclass(frozen=True)
class ActuatorBounds(StagePart):
    """The model's ranges of controls, of actuator forces and of their sums on joints.

    Forces are those that act: at the end of a step where its motion is that under them.
    """

    def terms(self, stage: Stage) -> StageTerms:
        """Return the ranges that are finite."""
        return StageTerms(rows=_force_rows(stage), u_bounds=stage.system.limits.ctrl)


def _change_rows(stage: Stage, du: Array) -> list[Bounded]:
    """Return the bounds of changes, one for each control that has any."""
    bounded = np.flatnonzero(np.isfinite(du).any(axis=1))
    change, names = _change(stage), stage.system.actuator_names
    return [Bounded(change[i], du[i, 0], du[i, 1], name=f"du.{names[i]}") for i in bounded.tolist()]


def _change(stage: Stage) -> ca.SX:
    """Return the change of the controls over a nominal interval; none without the last ones."""
    if not stage.u_last.numel():
        return ca.SX(0, 1)
    return (stage.variables.u - stage.u_last) / stage.length


def _force_rows(stage: Stage) -> list[Bounded]:
    """Return the ranges of actuator forces and of their sums on joints, where they are finite."""
    system = stage.members
    limits, rows = system.limits, list[Bounded]()
    finite = np.flatnonzero(np.isfinite(limits.force).any(axis=1))
    if finite.size:
        force = actuator_forces(stage)[finite.tolist()]
        low, high = limits.force[finite].T
        rows.append(Bounded(force, low, high, name="force"))
    if system.tree is not None and np.isfinite(limits.joint_force).any():
        rows.append(_joint_force_row(system, stage))
    return rows


def actuator_forces(stage: Stage) -> ca.SX:
    """Return the forces (nu,) of the actuators under u, without clipping."""
    system, at = stage.members, stage.variables
    ranges = Ranges(system.limits.ctrl, system.limits.force)
    model = actuator_model(system, ranges, 1.0, at.carried_q, at.v, None)
    return model.gain * at.u + model.bias + stage.change_of_actuators()[0]


def _joint_force_row(system: System, stage: Stage) -> Bounded:
    """Return the ranges of the sums of actuator forces on joints."""
    q, v, limits = stage.variables.carried_q, stage.variables.v, system.limits
    assert system.tree is not None
    dofs = {joint.name: joint.dof for joint in system.tree.joints}
    finite = np.flatnonzero(np.isfinite(limits.joint_force).any(axis=1))
    B = evaluate(system.actuation, {"q": q, "v": v})
    force = B @ stage.variables.u + system.actuator_bias(q, v) + stage.change_of_actuators()[1]
    limited = [dofs[limits.joint_names[i]] for i in finite]
    low, high = limits.joint_force[finite].T
    return Bounded(force[limited], low, high, name="joint_force")
