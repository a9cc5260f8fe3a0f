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
from mbcasadi.control.law_interface.law import Array, Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import LAW_RANK_TOL, Mechanism
from mbcasadi.control.tasks.task import (
    Task,
    TaskRows,
    gains_of,
    own_slices,
    require_task,
)
from mbcasadi.system import System
from mbcasadi.system.parametric import carries_parameters


@checked
@carries_parameters
def computed_torque(
    system: System,
    task: Task,
    *,
    damping: float = 0.0,
    metric: ArrayLike | None = None,
    control_metric: ArrayLike | None = None,
    rank_tol: float = LAW_RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "computed_torque",
) -> Law:
    """Return `u = (P B)⁺ P (M a + h - f_0)`, `a = a_across + (J P)⁺ (a_des - c_J - J a_across)`.

    `a` is the admissible acceleration nearest to that of the task, and the least of those where
    the task leaves motions free; `u` is the least control that gives it. Both norms come from the
    model, so u does not depend on its units. The forward part is [A16, eq. 19 corrected].
    Directions that the task leaves free are damped with `damping`. At its limits u is clipped entry
    by entry, so the direction of the force changes; use `within_limits` where that matters.

    Args:
        system: the mechanism.
        task: `PostureTask`, `FrameTask` or your own; its slices form the reference.
        damping: 1/s, of motions that the task leaves free.
        metric: (nv, nv) W, symmetric positive definite, of accelerations and forces; by default
            that of `law_interface/weights.py`, `np.eye(nv)` for the Euclidean one.
        control_metric: (nu, nu), or (nu,) for a diagonal one, of controls; in the same way.
        rank_tol: relative length below which rows of A, J P and P B are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        ProblemError, UnknownNameError: the task or the options do not fit the system.
    """
    require_law_arguments(rank_tol, damping=damping)
    require_task("task", task)
    gains = gains_of(task, system)

    def equations(at: LawInputs) -> Command:
        mechanism = Mechanism.measured(
            system, at, rank_tol, metric=metric, control_metric=control_metric
        )
        rows = task.rows(system, at.q, at.v, own_slices(task, system, at.ref), gains)
        a = nearest_acceleration(mechanism, rows, gains.weight, damping)
        u, desired, missing = mechanism.least_control(mechanism.M @ a + mechanism.h)
        return Command(
            u=u,
            a=mechanism.joint_rate(a),
            residual={"force": mechanism.joint_force(missing)},
            attainable=mechanism.is_attained(missing, desired),
            error=rows.error,
            target=rows.target,
        )

    return make_law(
        system,
        name,
        equations,
        LawInterface.of_task(task, system, "computed torque on the constraint manifold"),
        ctrl_limits=ctrl_limits,
        period=period,
    )


def nearest_acceleration(
    mechanism: Mechanism, rows: TaskRows, weight: Array, damping: float = 0.0
) -> ca.SX:
    """Return `a = a_across + (J P)⁺ (a_des - c_J - J a_across)`, free directions damped.

    Args:
        mechanism: at the present state.
        rows: of the task.
        weight: (k,) of the rows, where the mechanism cannot meet all of them.
        damping: 1/s, of directions that the task leaves free.

    Returns:
        (nv, 1) in the mechanism's weighted coordinates.
    """
    P, across = mechanism.P, mechanism.a_across
    root = ca.DM(np.sqrt(weight))
    J = ca.diag(root) @ mechanism.weighted_rows(ca.SX(rows.J))
    factor = mechanism.factor_along(J)
    a = across + factor.pinv_times(root * (rows.a_des - rows.c) - J @ across)
    if not damping:
        return a
    V = factor.basis.V
    v_free = P @ mechanism.weighted_rate(mechanism.at.v)
    return a - damping * (v_free - V @ (V.T @ v_free))
