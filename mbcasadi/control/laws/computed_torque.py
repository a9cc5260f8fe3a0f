"""Computed torque on the constraint manifold, in joint or task coordinates.

The task wants `J a + c_J = a_des`; the mechanism allows `a = a_across + P z` and, through its
actuators, `P (M a + h) = P (B u + f_0)`. Rank is revealed: loops may be redundant, joints
passive, actuators redundant.
"""

from collections.abc import Mapping

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.control.laws.actuation import allocate
from mbcasadi.control.laws.dynamics import RANK_TOL, Mechanism
from mbcasadi.control.laws.law import At, Command, Law
from mbcasadi.control.laws.making import make_law
from mbcasadi.control.tasks import Task, TaskRows, gains_of
from mbcasadi.linalg import complete_factor
from mbcasadi.system import System


def computed_torque(
    system: System,
    task: Task,
    *,
    damping: float = 0.0,
    rank_tol: float = RANK_TOL,
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    name: str = "computed_torque",
) -> Law:
    """Return `u = (P B)⁺ P (M a + h - f_0)`, `a = a_across + (J P)⁺ (a_des - c_J - J a_across)`.

    `a` is the admissible acceleration that is nearest to the task's wish, `u` the control of
    minimum norm that gives it. The forward part is [A16, eq. 19 corrected]. Directions that the
    task leaves free are damped with `damping`. At its limits u is cut entry by entry, so the
    direction of the force changes: give `Law.desired` to the QP where that matters.

    Args:
        system: the mechanism.
        task: `PostureTask`, `FrameTask` or your own; its slices make the reference.
        damping: 1/s, of what the task leaves free.
        rank_tol: relative length below which rows of A, J P and P B are dropped.
        ctrl_limits, period, name: as in `make_law`.

    Raises:
        ProblemError, UnknownNameError: the task or the options do not fit the system.
    """
    gains = gains_of(task, system)

    def equations(at: At) -> Command:
        mechanism = Mechanism(system, at, rank_tol)
        rows = task.rows(system, at.q, at.v, _own(at.ref, task.name), gains)
        a = nearest_acceleration(mechanism, rows, damping)
        found = allocate(mechanism, a)
        return Command(
            u=found.u,
            a=a,
            residual={"force": found.left},
            attainable=found.attainable,
            error=rows.error,
            target=rows.target,
        )

    return make_law(
        system,
        name,
        equations,
        slots=task.slots(system),
        tracked=[
            (f"{task.name}.{row}", unit)
            for row, unit in zip(task.components(system), task.units(system), strict=True)
        ],
        ctrl_limits=ctrl_limits,
        period=period,
        notes={"law": "computed torque on the constraint manifold", "task": task.name},
    )


def nearest_acceleration(mechanism: Mechanism, rows: TaskRows, damping: float = 0.0) -> ca.SX:
    """Return `a = a_across + (J P)⁺ (a_des - c_J - J a_across)`, free directions damped."""
    P, across = mechanism.P, mechanism.a_across
    JP = rows.J @ P
    factor = complete_factor(JP, rank_tol=mechanism.rank_tol)
    a = across + factor.pinv_times(rows.a_des - rows.c - rows.J @ across)
    if not damping:
        return a
    V = factor.basis.V
    free = P @ mechanism.at.v
    return a - damping * (free - V @ (V.T @ free))


def _own(ref: Mapping[str, ca.SX], name: str) -> dict[str, ca.SX]:
    """Return the task's slices under its own names for them."""
    return {key.removeprefix(f"{name}."): value for key, value in ref.items()}
