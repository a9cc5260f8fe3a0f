"""Velocities and accelerations of links, from the roots to the leaves."""

from dataclasses import dataclass, replace

import casadi as ca

from mbcasadi.linalg.arithmetic import minus, plus, times
from mbcasadi.model.chain import WORLD, Chain, Link
from mbcasadi.model.motion import steps_of
from mbcasadi.spatial import (
    ZERO3,
    Move,
    Step,
    Vec3,
    add,
    cross,
    dot,
    entries,
    scale,
    vec3,
    vector_to_child,
)


@dataclass(frozen=True)
class LinkMotion:
    """Motion of a link, in its own axes.

    Attributes:
        w: angular velocity, rad/s.
        dw: angular acceleration, rad/s².
        a: acceleration of the origin minus gravity, m/s².
        U: rows of `[dw]× + [w]×[w]×`; a point at r accelerates with `a + U r`.
        carrier: motion of what carries the joint, about the joint's origin: in the axes before the
            turn of a hinge, in the axes of the link for other joints; None for the world.
    """

    w: Vec3
    dw: Vec3
    a: Vec3
    U: tuple[Vec3, Vec3, Vec3]
    carrier: "LinkMotion | None" = None

    def acceleration_at(self, point: Vec3) -> Vec3:
        """Return the acceleration minus gravity of a point of the link, in link axes."""
        return add(self.a, rows_times(self.U, point))


def link_motions(
    chain: Chain, q: ca.SX, v: ca.SX, a: ca.SX | None = None, links: set[int] | None = None
) -> dict[int, LinkMotion]:
    """Return the motions of the given links (all if None) and of their ancestors.

    Args:
        chain: the links.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.
        a: (nv, 1) acceleration, zero if None.
        links: indices of links.
    """
    if a is None:
        a = ca.SX.zeros(chain.tree.nv, 1)
    selected = set(range(len(chain.links))) if links is None else links
    gravity = scale(-1.0, vec3(chain.tree.gravity))
    motions = {WORLD: _motion(ZERO3, ZERO3, gravity)}
    for i in sorted({k for link in selected for k in chain.path(link)}):
        link = chain.links[i]
        motions[i] = _child_motion(link, motions[link.parent], steps_of(link, q), v, a)
    return motions


def _child_motion(
    link: Link, parent: LinkMotion, steps: tuple[Step, ...], v: ca.SX, dv: ca.SX
) -> LinkMotion:
    """Return the motion of a link from that of its parent; dv is the rate of v."""
    kind, dof = link.joint.kind, link.joint.dof
    if kind == "free":
        a = vector_to_child(steps[-1], add(parent.a, entries(dv, dof)))
        carrier = _motion(ZERO3, ZERO3, a)
        return _motion(entries(v, dof + 3), entries(dv, dof + 3), a, carrier)
    a, w, dw = parent.a, parent.w, parent.dw
    before = steps[: len(link.before)]
    for step in before:
        if isinstance(step, Move):
            a = add(a, rows_times(parent.U, step.by))
        a, w, dw = vector_to_child(step, a), vector_to_child(step, w), vector_to_child(step, dw)
    joint_step = steps[len(before)]
    if kind == "slide":
        return _slide(joint_step, _motion(w, dw, a), v[dof], dv[dof])
    carrier = _motion(w, dw, a)
    a, w, dw = (vector_to_child(joint_step, x) for x in (a, w, dw))
    if kind == "ball":
        carrier = _motion(w, dw, a)
    rate: Vec3 = entries(v, dof) if kind == "ball" else (0.0, 0.0, v[dof])
    rise: Vec3 = entries(dv, dof) if kind == "ball" else (0.0, 0.0, dv[dof])
    motion = _motion(add(w, rate), add(add(dw, cross(w, rate)), rise), a, carrier)
    # The origin slides along the axis, which parent and child share: the child's U serves too.
    a = motion.acceleration_at((0.0, 0.0, link.after))
    return replace(motion, a=a)


def _slide(step: Step, still: LinkMotion, rate: ca.SX, rise: ca.SX) -> LinkMotion:
    """Return the motion of a link that slides along its z axis.

    Args:
        step: the shift along z.
        still: motion of the link's frame as if the joint were locked.
        rate, rise: speed and acceleration along z, m/s and m/s².
    """
    assert isinstance(step, Move)
    along = add(cross(scale(2.0 * rate, still.w), (0.0, 0.0, 1.0)), (0.0, 0.0, rise))
    a = add(still.acceleration_at(step.by), along)
    return LinkMotion(still.w, still.dw, a, still.U, carrier=still)


def _motion(w: Vec3, dw: Vec3, a: Vec3, carrier: LinkMotion | None = None) -> LinkMotion:
    """Return a motion with its matrix `U = [dw]× + w wᵀ - |w|² 1`."""
    xx, yy, zz = (times(c, c) for c in w)
    xy, xz, yz = times(w[0], w[1]), times(w[0], w[2]), times(w[1], w[2])
    U = (
        (-plus(yy, zz), minus(xy, dw[2]), plus(xz, dw[1])),
        (plus(xy, dw[2]), -plus(xx, zz), minus(yz, dw[0])),
        (minus(xz, dw[1]), plus(yz, dw[0]), -plus(xx, yy)),
    )
    return LinkMotion(w, dw, a, U, carrier)


def rows_times(rows: tuple[Vec3, Vec3, Vec3], a: Vec3) -> Vec3:
    """Return the product of a matrix, given by rows, and a vector."""
    return (dot(rows[0], a), dot(rows[1], a), dot(rows[2], a))
