"""Contacts that slide: the normal direction is held, friction opposes the motion.

Only `n·(J a + c) = 0` is a constraint; its multiplier is the normal force f_n. The tangential force
is known from it,

    f_t = -mu f_n t,   t = v_t / (|v_t|² + v_s²)^½,

with the velocity v_t of the material along the surface: the measured one, or the one that the
reference of a task prescribes, which also breaks loose what sticks. The mechanism feels the force
`(J_nᵀ - mu J_tᵀ t) f_n`, which is not the transpose of the row: the equations of motion are

    M a = f + B p + Gᵀ lam + D σ,   σ = lam_s,

with the multipliers lam_s of the sliding rows and `D = -mu J_tᵀ t`. With σ as further forces beside
p, `a = T p + T_D σ + t` and `lam = -(E p + E_D σ + e)` follow as without friction, and

    (I + E_D,s) σ = -(E_s p + e_s)

eliminates σ, exactly and within the tick. Where the determinant of `I + E_D,s` is not positive,
friction turns the effect of the normal force round (Painlevé's paradox): there is no safe
answer, and the inertia counts as not definite.
"""

from collections.abc import Sequence

import casadi as ca

from mbcasadi import linalg
from mbcasadi.contacts.sliding import Sliding
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed, Dynamics
from mbcasadi.control.tasks.axes import AXES
from mbcasadi.control.tasks.frame_task import FrameTask
from mbcasadi.control.tick.design import Design
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.shapes import require_name


def sliding_of(design: Design, contact: Contact, friction: float | ca.SX, ref: ca.SX) -> Sliding:
    """Return what the friction of a contact follows from.

    Args:
        design: of the controller.
        contact: that slides.
        friction: its coefficient, which may be tuned.
        ref: (nref,) reference.
    """
    if not contact.slide_task:
        return Sliding(friction, contact.slide_speed, None)
    task = slide_task_of(design, contact)
    velocity, desired = ca.SX(3, 1), ref[design.reference_slices[f"{task.name}.velocity"], 0]
    velocity[[AXES.index(axis) for axis in task.position]] = desired
    return Sliding(friction, contact.slide_speed, velocity)


def slide_task_of(design: Design, contact: Contact) -> FrameTask:
    """Return the task whose reference has the velocity of a contact.

    Raises:
        UnknownNameError: no such task.
        ProblemError: a contact that does not slide on the world, or a task without positions in it.
    """
    tasks = {task.name: task for task in design.tasks if isinstance(task, FrameTask)}
    require_name("FrameTask", contact.slide_task, list(tasks))
    task = tasks[contact.slide_task]
    if not contact.slides or contact.other or task.base or not task.position:
        raise ProblemError(
            f"contact '{contact.frame}': slide_task = '{task.name}', slides {contact.slides}, "
            f"other '{contact.other}'; expected one that slides on the world, and a task of "
            "positions in the world"
        )
    return task


def with_drag(dynamics: Dynamics, drag: ca.SX, rows: Sequence[int]) -> Dynamics:
    """Return the dynamics with the friction of sliding rows as forces behind p.

    Args:
        dynamics: of the mechanism.
        drag: (nv, m) force by the multiplier of each row of the contacts.
        rows: of the contacts that slide.
    """
    columns = [ca.densify(drag[:, row]) for row in rows]
    return dynamics._replace(B=ca.horzcat(dynamics.B, *columns))


def without_drag(condensed: Condensed, nu: int, rows: Sequence[int]) -> Condensed:
    """Return what is condensed with σ eliminated, `(I + E_D,s) σ = -(E_s p + e_s)`.

    Args:
        condensed: with the forces (p, σ).
        nu: size of p.
        rows: of G that slide, in the order of σ.
    """
    T, E, places = condensed.T, condensed.E, list(rows)
    T_D, E_D = T[:, nu:], E[:, nu:]
    inverse, posed = in_scalars("slide", _inverse, {"E_D": E_D[places, :]})
    by_p = -linalg.product(inverse, E[places, :nu])
    at_0 = -linalg.product(inverse, condensed.e[places, 0])
    return condensed._replace(
        T=T[:, :nu] + linalg.product(T_D, by_p),
        t=condensed.t + linalg.product(T_D, at_0),
        E=E[:, :nu] + linalg.product(E_D, by_p),
        e=condensed.e + linalg.product(E_D, at_0),
        definite=ca.fmin(condensed.definite, posed),
    )


def _inverse(given: dict[str, ca.SX]) -> list[ca.SX]:
    """Return `(I + E_D,s)⁻¹` and the determinant of what is inverted."""
    K = ca.densify(given["E_D"]) + ca.SX.eye(given["E_D"].shape[0])
    return [ca.inv(ca.densify(K)), ca.det(ca.densify(K))]
