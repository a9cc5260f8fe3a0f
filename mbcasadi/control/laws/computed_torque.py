"""Computed torque on the constraint manifold, in joint or task coordinates.

The task requires `J a + c_J = a_des`; the mechanism allows `a = a_across + P z` and, through its
actuators, `P (M a + h) = P (B u + f_0)`. Rank is revealed: loops may be redundant, joints
passive, actuators redundant.
"""

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.arguments import require_law_arguments
from mbcasadi.control.law_interface.law import Array, Command, Law, LawInputs
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import LAW_RANK_TOL, Mechanism
from mbcasadi.control.tasks.task import (
    Task,
    TaskRows,
    gains_of,
    own_slices,
    require_task,
    tracked_rows,
)
from mbcasadi.linalg import complete_factor
from mbcasadi.system import System


@checked
def computed_torque(
    system: System,
    task: Task,
    *,
    damping: float = 0.0,
    rank_tol: float = LAW_RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "computed_torque",
) -> Law:
    """Return `u = (P B)⁺ P (M a + h - f_0)`, `a = a_across + (J P)⁺ (a_des - c_J - J a_across)`.

    `a` is the admissible acceleration nearest to that of the task, `u` the control of
    minimum norm that gives it. The forward part is [A16, eq. 19 corrected]. Directions that the
    task leaves free are damped with `damping`. At its limits u is clipped entry by entry, so the
    direction of the force changes; use `within_limits` where that matters.

    Args:
        system: the mechanism.
        task: `PostureTask`, `FrameTask` or your own; its slices form the reference.
        damping: 1/s, of motions that the task leaves free.
        rank_tol: relative length below which rows of A, J P and P B are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        ProblemError, UnknownNameError: the task or the options do not fit the system.
    """
    require_law_arguments(system, rank_tol, damping=damping)
    require_task("task", task)
    gains = gains_of(task, system)

    def equations(at: LawInputs) -> Command:
        mechanism = Mechanism(system, at, rank_tol)
        rows = task.rows(system, at.q, at.v, own_slices(task, system, at.ref), gains)
        a = nearest_acceleration(mechanism, rows, gains.weight, damping)
        u, desired, missing = allocate(mechanism, a)
        return Command(
            u=u,
            a=a,
            residual={"force": missing},
            attainable=mechanism.is_attained(missing, desired),
            error=rows.error,
            target=rows.target,
        )

    return make_law(
        system,
        name,
        equations,
        slots=task.slots(system),
        tracked=tracked_rows(task, system),
        ctrl_limits=ctrl_limits,
        period=period,
        notes={"law": "computed torque on the constraint manifold", "task": task.name},
    )


def nearest_acceleration(
    mechanism: Mechanism, rows: TaskRows, weight: Array, damping: float = 0.0
) -> ca.SX:
    """Return `a = a_across + (J P)⁺ (a_des - c_J - J a_across)`, free directions damped.

    Args:
        mechanism: at the present state.
        rows: of the task.
        weight: (k,) of the rows, where the mechanism cannot do what all of them ask for.
        damping: 1/s, of directions that the task leaves free.
    """
    P, across = mechanism.P, mechanism.a_across
    root = ca.DM(np.sqrt(weight))
    J = ca.diag(root) @ rows.J
    factor = mechanism.factor_along(J)
    a = across + factor.pinv_times(root * (rows.a_des - rows.c) - J @ across)
    if not damping:
        return a
    V = factor.basis.V
    v_free = P @ mechanism.at.v
    return a - damping * (v_free - V @ (V.T @ v_free))


def allocate(mechanism: Mechanism, a: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return `u = (P B)⁺ f`, `f = P (M a + h - f_0)` and `f - P B u`  [A16, eq. 19 corrected].

    u has the minimum norm among the controls that come nearest; the last output, the force that
    no control gives, is zero where the motion is possible.
    """
    m = mechanism
    desired = m.P @ (m.M @ a + m.h - m.f_0)
    PB = m.P @ m.B
    actuators = complete_factor(PB, row_scale=m.scale_of_forces(m.B), rank_tol=m.rank_tol)
    u = actuators.pinv_times(desired)
    return u, desired, desired - PB @ u
