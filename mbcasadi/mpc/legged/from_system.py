"""A legged robot as one rigid body, from its whole model.

The rows of the inertia matrix that belong to the free joint hold all of it. With the mass m, the
centre of mass c from the trunk's origin and the inertia I about that origin, in the trunk's axes,

    M = [ m 1      -m R c×  …
          m c× Rᵀ      I    … ]

and the first three rows times v are the linear momentum of everything.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.contacts.friction_cone import require_contacts, require_ground
from mbcasadi.description import Contact, Joint
from mbcasadi.errors import ProblemError
from mbcasadi.model import center_of_mass_arm, center_of_mass_velocity
from mbcasadi.mpc.legged.ground_axes import common_normal, ground_rotation, to_ground
from mbcasadi.mpc.legged.rigid_body import SingleRigidBody
from mbcasadi.shapes import column
from mbcasadi.spatial import rotation
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values, takes_parameters

LEVEL = (0.0, 0.0, 1.0)  # normal of level ground
LARGEST_SHARE = 2.0  # of the weight, on one foot without a limit of its own


@checked
@at_model_values
def single_rigid_body(
    system: System, contacts: Sequence[Contact], q0: ArrayLike
) -> SingleRigidBody:
    """Return the robot as one rigid body: mass, and inertia about the centre of mass at q0.

    The pyramid `|f_x|, |f_y| <= μ f_z` of the body lies inside Coulomb's cone, so its μ is the
    least friction of a contact divided by √2. Contacts without `max_force` carry twice the weight
    at most.

    Args:
        system: with one free joint, that of the trunk.
        contacts: the feet, all with the same normal, that of the ground.
        q0: (nq,) the pose whose inertia is taken.

    Raises:
        ProblemError: not one free joint, no contacts, contacts on different planes, gravity that
            does not press the feet on the ground.
        ShapeError: q0 has a wrong shape.
    """
    dof = trunk_joint(system).dof
    require_contacts(contacts)
    require_ground(contacts)
    if not contacts:
        raise ProblemError("no contacts; expected one for each foot")
    gravity = ground_rotation(common_normal(contacts)).T @ gravity_of(system)
    M = np.array(system.mass_matrix(column("q0", q0, system.nq)))[dof : dof + 6, dof : dof + 6]
    M -= np.diag(armature_of(system)[dof : dof + 6])
    mass, first_moment = M[0, 0], M[3:, :3]
    inertia = M[3:, 3:] - first_moment @ first_moment.T / mass
    limits = [contact.max_force for contact in contacts]
    weight = mass * float(np.linalg.norm(gravity))
    return SingleRigidBody(
        mass=mass,
        inertia=(inertia + inertia.T) / 2,
        feet=len(contacts),
        friction=min(contact.friction for contact in contacts) / np.sqrt(2),
        f_min=max(contact.min_force for contact in contacts),
        f_max=min(LARGEST_SHARE * weight if limit is None else limit for limit in limits),
        gravity=(float(gravity[0]), float(gravity[1]), float(gravity[2])),
    )


@checked
@takes_parameters
def rigid_body_state(system: System, normal: ArrayLike = LEVEL) -> ca.Function:
    """Return (q, v) → (x, R, arm): the state (rpy, p, ω, v) of the single rigid body.

    `p` and `v` are those of the centre of mass of the whole robot, `rpy` and `ω` the trunk's. `R`
    (3, 3) turns trunk's axes into those of the ground; `arm` (3,) leads from the centre of mass to
    the trunk's origin. All are in axes of the ground, on level ground the world's.

    Args:
        system: with one free joint, that of the trunk.
        normal: (3,) of the ground, world axes.

    Raises:
        ProblemError: not one free joint, or a normal of length zero.
        ShapeError: the normal has a wrong shape.
    """
    ground = ground_rotation(normal)
    joint = trunk_joint(system)
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    d, place = joint.dof, joint.qpos
    M = system.mass_matrix(q)[d : d + 3, :]
    mass = float(np.array(system.mass_matrix(_start(system)))[d, d] - armature_of(system)[d])
    quat = q[place + 3 : place + 7]
    w, x, y, z = ca.vertsplit(quat / ca.norm_2(quat))
    R = ca.vertcat(*(ca.horzcat(*row) for row in rotation((w, x, y, z))))
    arm = to_ground(ground, center_of_mass_arm(M, R, joint, mass))
    velocity = center_of_mass_velocity(M, v, joint, mass, armature_of(system))
    velocity, R = to_ground(ground, velocity), to_ground(ground, R)
    rpy = ca.vertcat(
        ca.atan2(R[2, 1], R[2, 2]),
        ca.atan2(-R[2, 0], ca.sqrt(R[2, 1] ** 2 + R[2, 2] ** 2)),
        ca.atan2(R[1, 0], R[0, 0]),
    )
    p = to_ground(ground, q[place : place + 3]) - arm
    state = ca.vertcat(rpy, p, R @ v[d + 3 : d + 6], velocity)
    outputs = [ca.densify(part) for part in (state, R, arm)]
    return ca.Function("rigid_body_state", [q, v], outputs, ["q", "v"], ["x", "R", "arm"])


def trunk_joint(system: System) -> Joint:
    """Return the free joint.

    Raises:
        ProblemError: there is none, or more than one.
    """
    free = [] if system.tree is None else [j for j in system.tree.joints if j.kind == "free"]
    if len(free) != 1:
        raise ProblemError(
            f"'{system.name}' has {len(free)} free joints; expected one, that of the trunk"
        )
    return free[0]


def robot_weight(system: System) -> float:
    """Return the weight of all that the free joint carries, N."""
    dof, q0 = trunk_joint(system).dof, _start(system)
    mass = float(np.array(system.mass_matrix(q0))[dof, dof] - armature_of(system)[dof])
    return mass * float(np.linalg.norm(gravity_of(system)))


def armature_of(system: System) -> np.ndarray:
    """Return (nv,) the inertia of rotors beside that of bodies."""
    assert system.tree is not None
    return np.asarray(system.tree.armature, dtype=float)


def gravity_of(system: System) -> np.ndarray:
    """Return (3,) the acceleration of gravity, m/s²."""
    assert system.tree is not None
    return np.asarray(system.tree.gravity, dtype=float)


def _start(system: System) -> np.ndarray:
    assert system.tree is not None
    return np.asarray(system.tree.q0, dtype=float)
