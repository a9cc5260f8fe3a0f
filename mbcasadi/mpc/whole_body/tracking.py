"""How a law's tasks of joints and base bring a state back to the plan that it follows.

With `e = q ⊖ q_ref` a task demands `ë = -kd ė - kp e`, whose solution over a time h changes ė by

    E₁₀ e + (E₁₁ - 1) ė,    E = exp(h [[0, 1], [-kp, -kd]]).

A prediction that counts the accelerations of the plan alone takes a joint that does not move, held
by dry friction say, to be as fast as the plan meant it to be: the next plan stops it with the
opposite acceleration, the prediction after that is opposite and as large, and so on. So it is with
a base that lags behind its plan.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np
import scipy

from mbcasadi.control.tasks.frame_task import FrameTask
from mbcasadi.control.tasks.posture_task import PostureTask
from mbcasadi.control.tasks.task import Task, gains_of
from mbcasadi.description import Joint
from mbcasadi.mpc.legged.from_system import trunk_joint
from mbcasadi.spatial import rotation
from mbcasadi.system import System


def tracking_fun(tasks: Sequence[Task], system: System, span: float) -> ca.Function:
    """Return (q, v, q_ref, v_ref) → (a): (nv,) mean acceleration by which a law tracks a plan.

    Args:
        tasks: of the law; those but `PostureTask`, and `FrameTask` of the free body, count for
            nothing.
        system: without its contacts as rows, with one free joint.
        span: h, s.
    """
    sizes = {"q": system.nq, "v": system.nv, "q_ref": system.nq, "v_ref": system.nv}
    q, v, q_ref, v_ref = (ca.SX.sym(key, size) for key, size in sizes.items())
    error, rate, a = system.difference(q_ref, q), v - v_ref, ca.SX.zeros(system.nv)
    base = trunk_joint(system)
    for task in tasks:
        if isinstance(task, PostureTask):
            of_error, of_rate = _changes(task, system, span)
            dofs = list(task.rates(system))
            a[dofs] += of_error * error[dofs] + of_rate * rate[dofs]
        elif _is_of(base, task, system):
            of_error, of_rate = _changes(task, system, span)
            dofs = list(range(base.dof, base.dof + 6))
            rows = [_POSE.index(name) for name in task.components(system)]
            turn = ca.diagcat(ca.SX.eye(3), _rotation(q[base.qpos + 3 : base.qpos + 7]))
            to_rows = turn[rows, :]  # of axes of the base, for its rotation, to those of the task
            back = of_error * (to_rows @ error[dofs]) + of_rate * (to_rows @ rate[dofs])
            a[dofs] += to_rows.T @ back
    return ca.Function("tracking", [q, v, q_ref, v_ref], [a], [*sizes], ["a"])


_POSE = ("x", "y", "z", "rx", "ry", "rz")


def _is_of(base: Joint, task: Task, system: System) -> bool:
    """Return whether a task is that of the free body in the world."""
    assert system.tree is not None
    if not isinstance(task, FrameTask) or task.kind != "body" or task.base or any(task.offset):
        return False
    return system.tree.bodies[base.body].name == task.frame


def _changes(task: Task, system: System, span: float) -> tuple[ca.DM, ca.DM]:
    """Return the mean acceleration of each row by its error, and by the error's rate."""
    gains, changes = gains_of(task, system), []
    for kp, kd in zip(gains.kp, gains.kd, strict=True):
        E = scipy.linalg.expm(span * np.array([[0, 1], [-kp, -kd]]))
        changes.append([E[1, 0] / span, (E[1, 1] - 1) / span])
    of_error, of_rate = np.array(changes).T
    return ca.DM(of_error), ca.DM(of_rate)


def _rotation(quaternion: ca.SX) -> ca.SX:
    """Return the rotation matrix of w x y z."""
    w, x, y, z = ca.vertsplit(quaternion)
    return ca.vertcat(*(ca.horzcat(*row) for row in rotation((w, x, y, z))))
