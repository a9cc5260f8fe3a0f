"""A base that is moved and turned over feet which stay: how the joints of its pose follow.

With the base where the shift has it, steps of Gauss and Newton take back the errors e of feet and
loops by the joints,

    δ = -(Jᵀ J + ε I)⁻¹ Jᵀ e,

each within a largest step and the ranges of the joints. A setpoint whose legs are too long or too
short for the place of its base would pull the base elsewhere. Where legs do not reach, feet are
near.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np

from mbcasadi.description import Contact
from mbcasadi.linalg import tree_cholesky, tree_solve
from mbcasadi.mpc.legged.from_system import trunk_joint
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.whole_body.contact_mask import mask_of_contacts
from mbcasadi.system import System, evaluate

STEPS, LARGEST = 6, 0.3
"""Steps of Gauss and Newton, and the largest motion of a joint in one, rad or m."""

DAMPING = 1e-3
"""ε by the largest diagonal entry of Jᵀ J at q0."""


def shifted_pose(
    system: System,
    contacts: Sequence[Contact],
    q0: Array,
    heading: Array,
    shift: ca.SX,
) -> ca.SX:
    """Return the pose (nq,) whose base is shifted from q0 and whose feet stay where they are.

    Args:
        system: with its contacts as rows.
        contacts: those of the rows.
        q0: (nq,) pose in which it stands.
        heading: (3, 3) rotation from axes along, across and over the heading to the world's.
        shift: (6,) of the base along these, m, and its turn about them, rad.
    """
    from scipy.spatial.transform import Rotation

    joint, moves = trunk_joint(system), ca.SX(system.nv, 1)
    turn = Rotation.from_quat(q0[joint.qpos + 3 : joint.qpos + 7], scalar_first=True)
    moves[joint.dof : joint.dof + 3] = ca.DM(heading) @ shift[:3]
    moves[joint.dof + 3 : joint.dof + 6] = ca.DM(turn.inv().as_matrix() @ heading) @ shift[3:]
    q, closer = ca.SX(system.integrate(q0, moves)), _closer_fun(system, contacts, q0)
    for _ in range(STEPS):
        q = closer(q)
    return q


def _closer_fun(system: System, contacts: Sequence[Contact], q0: Array) -> ca.Function:
    """Return (q) → (q): a pose with the same base and feet nearer to where they are at q0."""
    dof, on = trunk_joint(system).dof, ca.DM.zeros(len(contacts))
    loops = np.flatnonzero(mask_of_contacts(system, contacts, on).full()).tolist()
    joints = np.delete(np.arange(system.nv), np.arange(dof, dof + 6)).tolist()
    q = ca.SX.sym("q", system.nq)
    at = {"q": q, "v": ca.SX(system.nv, 1), "t": ca.SX(0)}
    frames = [system.frame(contact.frame, contact.kind) for contact in contacts]
    places = [ca.SX(frame.pose(q)[0]) for frame in frames]
    slopes = [ca.SX(frame.jacobian(q))[:3, :] for frame in frames]
    if loops:
        gaps = ca.SX(evaluate(system.constraint, {"q": q, "t": at["t"]}))
        places.append(gaps[loops])
        slopes.append(ca.SX(evaluate(system.loop_jacobian, at))[loops, :])
    place, J = ca.vertcat(*places), ca.sparsify(ca.vertcat(*slopes)[:, joints])
    there, J0 = ca.Function("at_q0", [q], [place, J])(q0)
    least = DAMPING * float(np.square(J0.full()).sum(axis=0).max())
    normal = ca.sparsify(J.T @ J) + least * ca.SX.eye(len(joints))
    step = -tree_solve(tree_cholesky(normal), J.T @ (place - there))
    moves = ca.SX(system.nv, 1)
    moves[joints] = step * ca.fmin(1, LARGEST / ca.fmax(ca.norm_inf(step), LARGEST))
    nearer = ca.SX(system.integrate(q, moves))
    assert system.tree is not None
    limits, coordinates = system.limits, {j.name: j.qpos for j in system.tree.joints}
    for name, (low, high) in zip(limits.joint_names, limits.joint, strict=True):
        here, first = coordinates[name], q0[coordinates[name]]
        nearer[here] = ca.fmin(ca.fmax(nearer[here], min(low, first)), max(high, first))
    return ca.Function("closer", [q], [nearer])
