"""How a law's posture tasks bring a state back to the plan that it follows.

With `e = q ⊖ q_ref` a task demands `ë = -kd ė - kp e`, whose solution over a time h changes ė by

    E₁₀ e + (E₁₁ - 1) ė,    E = exp(h [[0, 1], [-kp, -kd]]).

A prediction that counts the accelerations of the plan alone takes a joint that does not move, held
by dry friction say, to be as fast as the plan meant it to be: the next plan stops it with the
opposite acceleration, the prediction after that is opposite and as large, and so on.
"""

from collections.abc import Sequence

import casadi as ca
import scipy

from mbcasadi.control.tasks.posture_task import PostureTask
from mbcasadi.control.tasks.task import Task, gains_of
from mbcasadi.system import System


def tracking_fun(tasks: Sequence[Task], system: System, span: float) -> ca.Function:
    """Return (q, v, q_ref, v_ref) → (a): (nv,) mean acceleration by which a law tracks a plan.

    Args:
        tasks: of the law; those but `PostureTask` count for nothing.
        system: without its contacts as rows.
        span: h, s.
    """
    sizes = {"q": system.nq, "v": system.nv, "q_ref": system.nq, "v_ref": system.nv}
    q, v, q_ref, v_ref = (ca.SX.sym(key, size) for key, size in sizes.items())
    error, rate, a = system.difference(q_ref, q), v - v_ref, ca.SX.zeros(system.nv)
    for task in tasks:
        if not isinstance(task, PostureTask):
            continue
        gains = gains_of(task, system)
        for dof, kp, kd in zip(task.rates(system), gains.kp, gains.kd, strict=True):
            E = scipy.linalg.expm(span * ca.DM([[0, 1], [-kp, -kd]]).full())
            a[dof] += (E[1, 0] * error[dof] + (E[1, 1] - 1) * rate[dof]) / span
    return ca.Function("tracking", [q, v, q_ref, v_ref], [a], [*sizes], ["a"])
