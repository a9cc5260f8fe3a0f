"""The cost of the QP: tasks, and the regularisation by forces."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed
from mbcasadi.control.inverse_dynamics.far_errors import home_error
from mbcasadi.control.inverse_dynamics.inputs import Inputs
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.weighed_forces import WeighedForces
from mbcasadi.control.tasks.task import own_slices

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.problem import Problem

Array = NDArray[np.float64]


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
        home_error: (k,) error in the pose that light postures desire, see `far_errors.py`.
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


class ForceWeights(NamedTuple):
    """The weights r_p (nu,) of the actuator forces and r_w of the internal forces."""

    actuators: Array
    internal: float


def stack_tasks(setup: Setup, at: Inputs) -> TaskStack:
    """Return the rows of all tasks."""
    ref = {name: at.ref[place, 0] for name, place in setup.reference_slices.items()}
    parts = [
        task.rows(setup.system, at.q, at.v, own_slices(task, setup.system, ref), gains)
        for task, gains in zip(setup.tasks, at.tuned.gains, strict=True)
    ]
    weights = [gains.weight for gains in at.tuned.gains]
    is_tuned = any(isinstance(weight, ca.SX) for weight in weights)
    weight = ca.vertcat(*(ca.SX(w) if is_tuned else ca.DM(w) for w in weights))
    return TaskStack(
        J=ca.vertcat(*(part.J for part in parts)),
        c=ca.vertcat(*(part.c for part in parts)),
        offset=ca.vertcat(*(part.c - part.a_des for part in parts)),
        weight=weight,
        stated=weight,
        error=ca.vertcat(*(part.error for part in parts)),
        home_error=home_error(setup, at.q, at.v, ref),
        target=ca.vertcat(*(part.target for part in parts)),
        feedback=ca.vertcat(*(part.a_des - part.a_ref for part in parts)),
        kp=ca.vertcat(*(ca.SX(gains.kp) for gains in at.tuned.gains)),
        kd=ca.vertcat(*(ca.SX(gains.kd) for gains in at.tuned.gains)),
    )


def objective(
    setup: Setup,
    problem: "Problem",
    condensed: Condensed,
    weights: ForceWeights,
    forces: WeighedForces,
) -> tuple[ca.SX, ca.SX]:
    """Return the QP's cost at y = (p, w) = 0: lower triangle of the Hessian, gradient (n,).

    The Hessian (k, k) is that of p where nothing couples w with it: that of w is `r_w I`.
    """
    nw, tasks = problem.contacts.of_w.shape[1], problem.tasks
    r_p, r_w = ca.DM(weights.actuators), weights.internal
    E_rows = linalg.product(condensed.T.T, tasks.J.T)
    missing = tasks.weight * (linalg.product(tasks.J, condensed.t) + tasks.offset)
    H = linalg.weighted_gram(E_rows, tasks.weight, r_p)
    g = ca.vertcat(linalg.product(E_rows, missing) - r_p * problem.p_ref, ca.DM.zeros(nw))
    if np.any(setup.force_costs) and forces.of_lam.shape[1]:
        F, f = forces.map(condensed)
        push = ca.DM(setup.force_costs)
        H = ca.diagcat(H, r_w * ca.DM.eye(nw)) + linalg.weighted_gram(F.T, push)
        g += linalg.product(F.T, push * (f - forces.ref))
    return H, ca.densify(g)
