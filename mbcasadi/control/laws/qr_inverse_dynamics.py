"""Inverse dynamics by a QR factorisation of the constraints, of any rank.

`Aᵀ = [V Z] [R; 0]`: the lower part of the equations of motion, `Zᵀ (M a + h) = Zᵀ B u`, holds no
multiplier and gives the control; the upper part gives the multiplier.
"""

from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.arguments import require_law_arguments
from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import LAW_RANK_TOL, Mechanism
from mbcasadi.control.laws.computed_torque import nearest_acceleration
from mbcasadi.control.tasks.task import Task, gains_of, own_slices, require_task
from mbcasadi.formulation.null_space import null_space_inverse
from mbcasadi.system import System
from mbcasadi.system.parametric import carries_parameters


@checked
@carries_parameters
def qr_inverse_dynamics(
    system: System,
    task: Task,
    *,
    damping: float = 0.0,
    metric: ArrayLike | None = None,
    control_metric: ArrayLike | None = None,
    rank_tol: float = LAW_RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "qr_inverse_dynamics",
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
        rank_tol: relative length below which rows of A and J P, and columns of Zᵀ B, are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        ProblemError, UnknownNameError: the task or the options do not fit the system.
    """
    require_law_arguments(rank_tol, damping=damping)
    require_task("task", task)
    gains = gains_of(task, system)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, metric=metric, control_metric=control_metric)
        rows = task.rows(system, at.q, at.v, own_slices(task, system, at.ref), gains)
        a = nearest_acceleration(m, rows, gains.weight, damping)
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

    return make_law(
        system,
        name,
        equations,
        LawInterface.of_task(task, system, "QR inverse dynamics [S20, eq. 20-21]"),
        ctrl_limits=ctrl_limits,
        period=period,
    )
