"""The equations of motion as linear in their physical parameters.

    M a + h - f_passive = Y θ + y_0

θ has, for each body that can move, its mass m, first moment `m c` and rotational inertia about the
origin of the body frame, in body axes, then armature and damping of each joint [C. G. Atkeson,
C. H. An, J. M. Hollerbach, *Estimation of inertial parameters of manipulator loads and links*, Int.
J. Robotics Research 5, 1986]. y_0 has what is not linear in these, or not of these: springs,
polynomial dampers, tendons, armature and damping of actuators, forces of a fluid.

Row j of the columns of a link is the power of the link's wrench on the unit twist of dof j, seen
from the link. So a twist is transformed from link to link, not the wrenches of ten parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Actuator, Body, Joint, RigidTree
from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.model.chain import WORLD, Chain, chain_of
from mbcasadi.model.motion import steps_of
from mbcasadi.model.newton_euler import inverse_dynamics, moment_of_field
from mbcasadi.model.passive import passive_force
from mbcasadi.model.placement import Pose
from mbcasadi.model.recursion import link_motions
from mbcasadi.model.reference_motion import reference_motions
from mbcasadi.model.regroup import NumericMoments
from mbcasadi.model.unit_twists import Twist, unit_twists
from mbcasadi.spatial import (
    PAIRS,
    ZERO3,
    Mat3,
    Scalar,
    Vec3,
    add,
    cross,
    dot,
    is_zero,
    scalar,
    scale,
    scaled,
    vec3,
    vector_to_child,
)

OF_BODY = 10
"""Parameters of a body: m, m c, rotational inertia as (xx, yy, zz, xy, xz, yz)."""

NO_FIELD: Mat3 = (ZERO3, ZERO3, ZERO3)


class Field(Protocol):
    """Accelerations `a + U r` of the points of a link, in its axes."""

    @property
    def a(self) -> Vec3:
        """Of the origin, minus gravity, m/s²."""

    @property
    def U(self) -> Mat3:
        """By rows."""


@dataclass(frozen=True)
class LinearModel:
    """`Y θ + y_0`, by parts.

    Attributes:
        bodies: (nv, 10) columns of each body that can move, by its index.
        armature, damping: (nv, 1) column of each joint.
        rest: (nv, 1) y_0.
    """

    bodies: Mapping[int, ca.SX]
    armature: tuple[ca.SX, ...]
    damping: tuple[ca.SX, ...]
    rest: ca.SX


@dataclass(frozen=True)
class MotionRates:
    """The rates of a motion, (nv, 1) each.

    Attributes:
        v: velocity.
        a: acceleration, or the rate of the reference velocity.
        v_r: reference velocity; None where it is v.
    """

    v: ca.SX
    a: ca.SX
    v_r: ca.SX | None = None


def linear_model(
    tree: RigidTree, actuators: tuple[Actuator, ...], q: ca.SX, rates: MotionRates
) -> LinearModel:
    """Return the parts of `M a + h - f_passive`, or of `M a_r + C v_r + g - f_passive`.

    Args:
        tree: the mechanism.
        actuators: those whose armature and damping count, in the rest.
        q: (nq, 1) configuration.
        rates: of the motion.
    """
    chain = chain_of(tree)
    v, a = rates.v, rates.a
    motions: Mapping[int, Field]
    if rates.v_r is None:
        motions = link_motions(chain, q, v, a)
    else:
        motions = reference_motions(chain, q, v, rates.v_r, a)
    twists = unit_twists(chain, q)
    gravity = _gravity_on_links(chain, q)
    bodies = {i: _columns_of_body(chain, i, motions, twists, gravity) for i in moving_bodies(chain)}
    armature, damping = (tuple(_on_dofs(joint, x) for joint in tree.joints) for x in (a, v))
    return LinearModel(bodies, armature, damping, _rest(tree, actuators, q, v, a))


def moving_bodies(chain: Chain) -> list[int]:
    """Return the indices of the bodies that can move."""
    return [i for i, link in enumerate(chain.body_link) if link != WORLD]


def parameters_of_body(body: Body) -> tuple[Scalar, ...]:
    """Return m, `m c` and the inertia about the body frame's origin, ten entries."""
    com = np.asarray(body.com)
    spread = np.dot(com, com) * np.eye(3) - np.outer(com, com)
    inertia = np.asarray(body.inertia) + scaled(body.mass, spread)
    moments = [body.mass, *scaled(body.mass, com), *(inertia[pair] for pair in PAIRS)]
    return tuple(scalar(x) for x in moments)


def _rest(tree: RigidTree, actuators: tuple[Actuator, ...], q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return y_0: the equations without masses, and without armature and damping of joints."""
    own = replace(
        tree,
        armature=_beyond_first(tree, tree.armature),
        damping=_beyond_first(tree, tree.damping),
        bodies=tuple(replace(body, gravcomp=0.0) for body in tree.bodies),
    )
    no_inertia = np.zeros((3, 3))
    weightless = tuple(replace(body, mass=0.0, inertia=no_inertia) for body in own.bodies)
    massless = replace(own, bodies=weightless)
    forces = inverse_dynamics(massless, q, v, a, actuators) - passive_force(own, q, v, actuators)
    return ca.sparsify(forces)


def _beyond_first(tree: RigidTree, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (nv,) what the dofs of a joint have beyond its first; MJCF gives all of them one."""
    rest = [*values]
    for joint in tree.joints:
        for dof in range(joint.dof, joint.dof + DOF_SIZE[joint.kind]):
            rest[dof] = rest[dof] - values[joint.dof]
            rest[dof] = 0.0 if is_zero(rest[dof]) else rest[dof]
    numeric = not any(isinstance(x, ca.SX) for x in rest)
    return np.array(rest, dtype=float if numeric else object)


def _on_dofs(joint: Joint, rates: ca.SX) -> ca.SX:
    """Return (nv, 1) the rates of a joint's own dofs, zero elsewhere."""
    column = ca.SX(rates.numel(), 1)
    dofs = slice(joint.dof, joint.dof + DOF_SIZE[joint.kind])
    column[dofs] = rates[dofs]
    return column


def _columns_of_body(
    chain: Chain,
    i: int,
    motions: Mapping[int, Field],
    twists: list[dict[int, Twist]],
    gravity: list[Vec3],
) -> ca.SX:
    """Return (nv, 10) the columns of one body.

    Args:
        chain: the links.
        i: index of the body.
        motions: of the links.
        twists: of each link.
        gravity: in the axes of each link, m/s².
    """
    body, link = chain.tree.bodies[i], chain.body_link[i]
    to_link = ca.DM(moments_on_link(chain.body_pose[i]))
    passive = _compensated_dofs(chain.tree) if not is_zero(body.gravcomp) else set()
    columns = ca.SX(chain.tree.nv, OF_BODY)
    for dof, twist in twists[link].items():
        row = _powers(twist, motions[link].a, motions[link].U)
        if dof in passive:
            lift = _powers(twist, scale(body.gravcomp, gravity[link]), NO_FIELD)
            row = [x + y for x, y in zip(row, lift, strict=True)]
        columns[dof, :] = ca.horzcat(*row) @ to_link
    return ca.sparsify(columns)


def moments_on_link(pose: Pose) -> NDArray[np.float64]:
    """Return (10, 10): from a body's parameters to (m, s, E) in its link's frame.

    Args:
        pose: of the body in the link's frame.
    """
    columns = []
    for unit in np.eye(OF_BODY):
        inertia = np.zeros((3, 3))
        for (j, k), value in zip(PAIRS, unit[4:], strict=True):
            inertia[j, k] = inertia[k, j] = value
        moments = NumericMoments(
            float(unit[0]), unit[1:4], np.trace(inertia) / 2 * np.eye(3) - inertia
        )
        there = moments.in_frame(pose.inverse())
        columns.append([there.m, *there.s, *(there.E[pair] for pair in PAIRS)])
    return np.array(columns).T


def _powers(twist: Twist, a: Vec3, U: Mat3) -> list[Scalar]:
    """Return the power on a unit twist of the wrench that each of (m, s, E) needs, ten entries.

    `F = m a + U s`, `N = s × a + ∫ r × U r dm` (`newton_euler.py`).
    """
    linear, angular = twist
    bent = add(cross(a, angular), _transposed_times(U, linear))
    spread = (U[2][2] - U[1][1], U[0][0] - U[2][2], U[1][1] - U[0][0])
    spins = (
        dot(angular, moment_of_field(U, spread, tuple(float(k == n) for n in range(len(PAIRS)))))
        for k in range(len(PAIRS))
    )
    return [dot(linear, a), *bent, *spins]


def _transposed_times(rows: Mat3, a: Vec3) -> Vec3:
    x, y, z = (scale(factor, row) for factor, row in zip(a, rows, strict=True))
    return add(add(x, y), z)


def _gravity_on_links(chain: Chain, q: ca.SX) -> list[Vec3]:
    """Return gravity in the axes of each link, m/s²."""
    of_links: list[Vec3] = []
    for link in chain.links:
        g = vec3(chain.tree.gravity) if link.parent == WORLD else of_links[link.parent]
        for step in steps_of(link, q):
            g = vector_to_child(step, g)
        of_links.append(g)
    return of_links


def _compensated_dofs(tree: RigidTree) -> set[int]:
    """Return the dofs where gravity compensation is a passive force."""
    passive = [joint for joint in tree.joints if joint.compensation == "passive"]
    return {joint.dof + k for joint in passive for k in range(DOF_SIZE[joint.kind])}
