"""All tasks of a controller at one instant, one below the other."""

from dataclasses import dataclass

import casadi as ca

from mbcasadi.control.tasks.task import own_slices
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant


@dataclass(frozen=True)
class TaskStack:
    """All tasks, one below the other: `J a + offset` is the error in acceleration.

    Attributes:
        J: (k, nv).
        c: (k,) bias `J̇ v`.
        offset: (k,) `c - a_des`.
        weight: (k,).
        stated: (k,) weights that the user gave; `weight` is smaller for far tasks.
        error, target: (k,) see `TaskRows`.
        home_error: (k,) error in the pose that light postures desire, see `far_errors.py`; none
            where it is not read.
        feedback: (k,) `kd rate_error + kp error`.
        kp, kd: (k,) gains.
    """

    J: ca.SX
    c: ca.SX
    offset: ca.SX
    weight: ca.DM | ca.SX
    stated: ca.DM | ca.SX
    error: ca.SX
    home_error: ca.SX
    target: ca.SX
    feedback: ca.SX
    kp: ca.SX
    kd: ca.SX


def stack_tasks(design: Design, now: Instant) -> TaskStack:
    """Return the rows of all tasks."""
    ref = {name: now.ref[place, 0] for name, place in now.slices.items()}
    parts = [
        task.rows(design.system, now.q, now.v, own_slices(task, design.system, ref), gains)
        for task, gains in zip(design.tasks, now.gains, strict=True)
    ]
    weights = [gains.weight for gains in now.gains]
    is_tuned = any(isinstance(weight, ca.SX) for weight in weights)
    weight = ca.vertcat(*(ca.SX(w) if is_tuned else ca.DM(w) for w in weights))
    return TaskStack(
        J=ca.vertcat(*(part.J for part in parts)),
        c=ca.vertcat(*(part.c for part in parts)),
        offset=ca.vertcat(*(part.c - part.a_des for part in parts)),
        weight=weight,
        stated=weight,
        error=ca.vertcat(*(part.error for part in parts)),
        home_error=ca.SX(0, 1),
        target=ca.vertcat(*(part.target for part in parts)),
        feedback=ca.vertcat(*(part.a_des - part.a_ref for part in parts)),
        kp=ca.vertcat(*(ca.SX(gains.kp) for gains in now.gains)),
        kd=ca.vertcat(*(ca.SX(gains.kd) for gains in now.gains)),
    )
