"""Computed torque on the constraint manifold, in joint or task coordinates.

The task requires `J a + c_J = a_des`; the mechanism allows `a = a_across + P z` and, through its
actuators, `P (M a + h) = P (B u + f_0)`. Rank is revealed: loops may be redundant, joints
passive, actuators redundant.

The same by a QR factorisation of the constraints, of any rank, `Aᵀ = [V Z] [R; 0]`: the lower part
of the equations of motion, `Zᵀ (M a + h) = Zᵀ B u`, holds no multiplier and gives the control; the
upper part gives the multiplier.
"""

from collections.abc import Callable

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Array, Command, Law, LawInputs, interface_of_task
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.tasks.task import Task, TaskRows, gains_of, own_slices, require_task
from mbcasadi.formulation.null_space import null_space_inverse
from mbcasadi.shapes import require_numbers
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
    options: LawOptions = LAW_OPTIONS,
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
        options: see `LawOptions`.

    Raises:
        ProblemError, UnknownNameError: the task or the options do not fit the system.
    """
    require_numbers(damping=damping)
    rank_tol = options.tolerance
    motion_at = _task_motion(system, task, damping)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric, control_metric=control_metric)
        rows, a = motion_at(m)
        return m.command(m.M @ a + m.h, a, rows.error, rows.target)

    interface = interface_of_task(task, system, "computed torque on the constraint manifold")
    return make_law(system, "computed_torque", equations, interface, options)


def _task_motion(
    system: System, task: Task, damping: float
) -> Callable[[Mechanism], tuple[TaskRows, ca.SX]]:
    """Return the rows of a checked task and the acceleration nearest to theirs, at a state."""
    require_task("task", task)
    gains = gains_of(task, system)

    def motion_at(m: Mechanism) -> tuple[TaskRows, ca.SX]:
        ref = own_slices(task, system, m.at.ref)
        rows = task.rows(system, m.at.q, m.at.v, ref, gains)
        return rows, nearest_acceleration(m, rows, gains.weight, damping)

    return motion_at


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


@checked
@carries_parameters
def qr_inverse_dynamics(
    system: System,
    task: Task,
    *,
    damping: float = 0.0,
    metric: ArrayLike | None = None,
    control_metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = (Zᵀ B)⁺ Zᵀ (M a + h - f_0)`, `lam = A⁺ᵀ (M a + h - f_0 - B u)`  [S20, eq. 20-21].

    S20 inverts the triangle R, which needs independent rows; with the rank revealed, `A⁺ᵀ`
    replaces `R⁻¹ S₁ Qᵀ`, and the multipliers are the least ones. u is the least control that
    gives a, the solution of the quadratic program (22) without its second constraint, which has
    no unknown: a must obey it. So a is the admissible acceleration nearest to that of the task;
    `status` does not report this distance, which is never zero for a task with more rows than
    freedoms.

    `Law.desired` gives a and `f_c = Aᵀ lam`, the load of the motion on the constraints.
    Status 2 means that no control gives a ((14) for `Zᵀ B`): u is then the nearest, and `residual`
    the missing force. At saturation u is clipped entry by entry.

    Args:
        system: the mechanism.
        task: the motion to track; its slices form the reference.
        damping: 1/s, of motions that the task leaves free.
        metric, control_metric: as in `computed_torque`.
        options: see `LawOptions`.

    Raises:
        ProblemError, UnknownNameError: the task or the options do not fit the system.
    """
    require_numbers(damping=damping)
    rank_tol = options.tolerance
    motion_at = _task_motion(system, task, damping)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric, control_metric=control_metric)
        rows, a = motion_at(m)
        force = m.h - m.f_0
        u, lam, missing = null_space_inverse(m.M, force, m.A, m.unit_actuation, a, **m.rule)
        needed = m.P @ (m.M @ a + force)
        return Command(
            u=m.control(u),
            a=m.joint_rate(a),
            f_c=m.joint_force(m.A.T @ lam),
            residual={"force": m.joint_force(missing)},
            attainable=m.is_attained(missing, needed),
            error=rows.error,
            target=rows.target,
        )

    interface = interface_of_task(task, system, "QR inverse dynamics [S20, eq. 20-21]")
    return make_law(system, "qr_inverse_dynamics", equations, interface, options)
