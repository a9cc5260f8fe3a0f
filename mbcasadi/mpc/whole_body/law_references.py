"""The references of inverse dynamics along the motion of a plan's interval."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import casadi as ca

from mbcasadi.contacts.constraints import contact_force_fun
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.tasks.axes import AXES
from mbcasadi.control.tasks.frame_task import FrameTask
from mbcasadi.control.tasks.posture_task import PostureTask
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.control.tasks.task import Task
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.system import System


class Motion(NamedTuple):
    """Pose, rates and accelerations of the plan at a moment: (nq,), (nv,), (nv,)."""

    q: ca.SX
    v: ca.SX
    a: ca.SX


Column = TypeVar("Column", ca.SX, ca.MX)


def way_within(tau: Column, h: Column | float, v: Column, a: Column) -> Column:
    """Return the way `(τ - ½ h) v + ½ τ² a` from the positions of a sample, τ s behind it.

    They are half an interval of length h ahead of the sample's rates v.
    """
    way: Column = (tau - h / 2) * v + tau**2 / 2 * a
    return way


def law_references(
    law: InverseDynamicsQP,
    touching: System,
    contacts: Sequence[Contact],
    length: float | None,
) -> ca.Function:
    """Return (p, v, a, tau, lam, ends, [h]) → (ref), of positions and rates of an interval.

    Args:
        law: whose references they are.
        touching: the mechanism with its contacts as rows.
        contacts: of the law.
        length: of all intervals, s; None where it is the input h.

    Raises:
        ProblemError: a law with references that a plan does not have.
    """
    system = law.system.at()
    h = ca.SX.sym("h") if length is None else ca.SX(length)
    p, v, a = (ca.SX.sym(k, n) for k, n in (("p", system.nq), ("v", system.nv), ("a", system.nv)))
    tau, lam, ends = ca.SX.sym("tau"), ca.SX.sym("lam", touching.nc), ca.SX.sym("ends")
    q = system.integrate(p, (1 - ends) * way_within(tau, h, v, a))
    now = Motion(q, (1 - ends) * (v + tau * a), (1 - ends) * a)
    values = dict[str, ca.SX]()
    for task in law.tasks:
        own = _reference(task, system, now)
        values |= {f"{task.name}.{key}": value for key, value in own.items()}
    if contacts:
        values["force"] = contact_force_fun(touching, contacts)(p, lam)
    slots = slot_slices(law.slots)
    missing = next((name for name in slots if name not in values), None)
    if missing is not None:
        raise ProblemError(
            f"the law that follows a plan has a reference {missing!r}, and a plan gives none; "
            "expected PostureTask, FrameTask in the world, and force_reference=True"
        )
    ref = ca.vertcat(*(values[name] for name in slots))
    inputs = [p, v, a, tau, lam, ends, *([h] if length is None else [])]
    return ca.Function("reference", inputs, [ca.densify(ref)])


def _reference(task: Task, system: System, now: Motion) -> dict[str, ca.SX]:
    """Return the slices of a task's reference along a motion; nothing for other tasks."""
    if isinstance(task, PostureTask):
        dofs = task.rates(system)
        return {"q": now.q[task.coordinates(system)], "v": now.v[dofs], "a": now.a[dofs]}
    if isinstance(task, FrameTask) and not task.base:
        frame = system.frame(task.frame, task.kind)
        twist = ca.SX(frame.velocity(now.q, now.v))
        change = ca.SX(frame.jacobian(now.q)) @ now.a + ca.SX(frame.bias(now.q, now.v))
        along, about = ([AXES.index(x) for x in axes] for axes in (task.position, task.orientation))
        values = dict[str, ca.SX]()
        if along:
            values["position"] = ca.SX(frame.pose(now.q)[0])[along]
            values["velocity"], values["acceleration"] = twist[along], change[along]
        if about:
            turned = [3 + i for i in about]
            values["quaternion"] = ca.SX(frame.quaternion(now.q))
            values["angular_velocity"] = twist[turned]
            values["angular_acceleration"] = change[turned]
        return values
    return {}
