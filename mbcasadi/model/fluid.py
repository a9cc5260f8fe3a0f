"""Fluid forces: lift, drag and added mass of a medium, as MuJoCo's `qfrc_fluid`.

Velocities relative to the medium run from the roots to the leaves: seen from the medium the world
moves with `-wind`. Wrenches on the bodies run back. MuJoCo's two models of a body's shape are the
box with its inertia (`fluid_box`) and the ellipsoids of its geoms (`fluid_ellipsoid`).

Both are quadratic in the velocity next to linear terms of viscosity. `|x| x` has a continuous first
derivative, zero at x = 0; its second derivative jumps there, and is taken for zero.
"""

from collections.abc import Callable
from functools import partial

import casadi as ca

from mbcasadi.description import Fluid, RigidTree
from mbcasadi.model.chain import WORLD, Chain, Link, chain_of
from mbcasadi.model.fluid_box import box_wrench
from mbcasadi.model.fluid_ellipsoid import ellipsoid_wrench
from mbcasadi.model.motion import Wrench, steps_of, wrench_before, wrench_on_dofs
from mbcasadi.model.placement import Pose, pose_of_quat
from mbcasadi.spatial import (
    ZERO3,
    Mat3,
    Move,
    Step,
    Vec3,
    add,
    cross,
    entries,
    rotate,
    rotate_back,
    scale,
    vec3,
    vector_to_child,
)

Twist = tuple[Vec3, Vec3]
"""Angular velocity, rad/s, and velocity of a point relative to the medium, m/s, in local axes."""

OnShape = Callable[[Vec3, Vec3], Wrench]
"""From the twist of a shape to the wrench on it, both about its origin and in its axes."""


def fluid_force(tree: RigidTree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return `Σ Jᵀ F` over all shapes that meet the medium, (nv, 1).

    Args:
        tree: the mechanism.
        q, v: (nq, 1), (nv, 1) state.
    """
    medium = tree.fluid
    force = ca.SX(tree.nv, 1)
    if medium is None:
        return force
    chain = chain_of(tree)
    steps = [steps_of(link, q) for link in chain.links]
    twists = _twists(chain, steps, v, medium)
    wrenches: list[Wrench] = [(ZERO3, ZERO3) for _ in chain.links]
    for body, pose, on_shape in _shapes(tree, medium):
        carrier = chain.body_link[body]
        if carrier != WORLD:
            mounted = (chain.body_pose[body] @ pose).without_rounding()
            acting = _on_link(mounted, twists[carrier], on_shape)
            wrenches[carrier] = _sum(wrenches[carrier], acting)
    for i in reversed(range(len(chain.links))):
        link = chain.links[i]
        for row, value in wrench_on_dofs(link, wrenches[i], steps[i]):
            force[row] += value
        if link.parent != WORLD:
            below = wrench_before(steps[i], wrenches[i])
            wrenches[link.parent] = _sum(wrenches[link.parent], below)
    return ca.sparsify(force)


def _shapes(tree: RigidTree, medium: Fluid) -> list[tuple[int, Pose, OnShape]]:
    """Return body, pose in the body frame, and law of each shape that meets the medium."""
    boxes = [
        (
            box.body,
            pose_of_quat(tree.bodies[box.body].com, box.quat),
            partial(box_wrench, medium, box, tree.bodies[box.body].mass),
        )
        for box in medium.boxes
    ]
    ellipsoids = [
        (e.body, pose_of_quat(e.pos, e.quat), partial(ellipsoid_wrench, medium, e))
        for e in medium.ellipsoids
    ]
    return [*boxes, *ellipsoids]


def _twists(
    chain: Chain, steps: list[tuple[Step, ...]], v: ca.SX, medium: Fluid
) -> dict[int, Twist]:
    """Return the twist of each link at its origin, in its axes.

    Args:
        chain: the links.
        steps: of each link at the configuration.
        v: (nv, 1) velocity.
        medium: what they move in.
    """
    twists = {WORLD: (ZERO3, scale(-1.0, vec3(medium.wind)))}
    for i, link in enumerate(chain.links):
        twists[i] = _child_twist(link, twists[link.parent], steps[i], v)
    return twists


def _child_twist(link: Link, parent: Twist, steps: tuple[Step, ...], v: ca.SX) -> Twist:
    """Return the twist of a link from that of its parent."""
    (w, u), kind, dof = parent, link.joint.kind, link.joint.dof
    if kind == "free":  # its parent is the world, its linear velocity is in the world's axes
        return entries(v, dof + 3), vector_to_child(steps[-1], add(u, entries(v, dof)))
    for k, step in enumerate(steps):
        if isinstance(step, Move):
            u = add(u, cross(w, step.by))
        else:
            w, u = vector_to_child(step, w), vector_to_child(step, u)
        if k == len(link.before):  # the joint's own step
            if kind == "slide":
                u = add(u, (0.0, 0.0, v[dof]))
            else:
                w = add(w, entries(v, dof) if kind == "ball" else (0.0, 0.0, v[dof]))
    return w, u


def _on_link(mounted: Pose, twist: Twist, on_shape: OnShape) -> Wrench:
    """Return the wrench on a shape about the origin of its link, in the link's axes.

    Args:
        mounted: pose of the shape on the link.
        twist: of the link.
        on_shape: the law of the shape.
    """
    (w, u), p = twist, vec3(mounted.p)
    R: Mat3 = (vec3(mounted.R[0]), vec3(mounted.R[1]), vec3(mounted.R[2]))
    force, moment = on_shape(rotate_back(R, w), rotate_back(R, add(u, cross(w, p))))
    force = rotate(R, force)
    return force, add(rotate(R, moment), cross(p, force))


def _sum(a: Wrench, b: Wrench) -> Wrench:
    return add(a[0], b[0]), add(a[1], b[1])
