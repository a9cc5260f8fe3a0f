"""Accelerations of links at zero joint acceleration, and the bias force they demand."""

from dataclasses import dataclass

import casadi as ca

from mbcasadi.description import RigidTree
from mbcasadi.model.chain import WORLD, Chain, Link, chain_of
from mbcasadi.model.motion import Wrench, on_axes, steps_of
from mbcasadi.spatial import (
    ZERO3,
    Move,
    Step,
    Vec3,
    add,
    cross,
    dot,
    entries,
    inward,
    scale,
    vec3,
    wrench_outward,
)


@dataclass(frozen=True)
class LinkMotion:
    """Motion of a link at zero joint acceleration, in its own axes.

    Attributes:
        w: angular velocity, rad/s.
        dw: angular acceleration, rad/s².
        a: acceleration of the origin minus gravity, m/s².
        pull: rows of `U = [dw]× + [w]×[w]×`; a point at r accelerates with `a + U r`.
    """

    w: Vec3
    dw: Vec3
    a: Vec3
    pull: tuple[Vec3, Vec3, Vec3]

    def at(self, point: Vec3) -> Vec3:
        """Return the acceleration minus gravity of a point of the link, in link axes."""
        return add(self.a, _times(self.pull, point))


def link_motions(
    chain: Chain, q: ca.SX, v: ca.SX, links: set[int] | None = None
) -> dict[int, LinkMotion]:
    """Return the motions of the given links (all if None) and of their ancestors."""
    wanted = set(range(len(chain.links))) if links is None else links
    gravity = scale(-1.0, vec3(chain.tree.gravity))
    motions = {WORLD: _motion(ZERO3, ZERO3, gravity)}
    for i in sorted({k for link in wanted for k in chain.path(link)}):
        link = chain.links[i]
        motions[i] = _carry(link, motions[link.parent], steps_of(link, q), v)
    return motions


def bias_force(tree: RigidTree, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return h, the Coriolis, centrifugal and gravity force: `qfrc_bias` of MuJoCo.

    Newton and Euler for each link at zero joint acceleration, in link axes, summed from the
    leaves: `F = m a + U s`, `N = s × a + ∫ r × U r dm`.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.

    Returns:
        (nv, 1) bias force.
    """
    chain = chain_of(tree)
    motions = link_motions(chain, q, v)
    wrenches = [_newton_euler(link, motions[i]) for i, link in enumerate(chain.links)]
    h = ca.SX(tree.nv, 1)
    for i in reversed(range(len(chain.links))):
        link = chain.links[i]
        steps = steps_of(link, q)
        for row, value in on_axes(link, wrenches[i], steps):
            h[row] = value
        if link.parent == WORLD:
            continue
        force, moment = wrenches[i]
        for step in reversed(steps):
            force, moment = wrench_outward(step, force, moment)
        below = wrenches[link.parent]
        wrenches[link.parent] = (add(below[0], force), add(below[1], moment))
    return ca.sparsify(h)


def _carry(link: Link, parent: LinkMotion, steps: tuple[Step, ...], v: ca.SX) -> LinkMotion:
    """Return the motion of a link from that of its parent."""
    kind, dof = link.joint.kind, link.joint.dof
    if kind == "free":
        return _motion(entries(v, dof + 3), ZERO3, inward(steps[-1], parent.a))
    a, w, dw = parent.a, parent.w, parent.dw
    before = steps[: len(link.before)]
    for step in before:
        if isinstance(step, Move):
            a = add(a, _times(parent.pull, step.by))
        a, w, dw = inward(step, a), inward(step, w), inward(step, dw)
    joint_step = steps[len(before)]
    if kind == "slide":
        return _slide(joint_step, a, w, dw, v[dof])
    a, w, dw = inward(joint_step, a), inward(joint_step, w), inward(joint_step, dw)
    rate = entries(v, dof) if kind == "ball" else (0.0, 0.0, v[dof])
    motion = _motion(add(w, rate), add(dw, cross(w, rate)), a)
    # The origin slides along the axis, which parent and child share: the child's U serves too.
    shifted = motion.at((0.0, 0.0, link.after))
    return LinkMotion(motion.w, motion.dw, shifted, motion.pull)


def _slide(step: Step, a: Vec3, w: Vec3, dw: Vec3, rate: ca.SX) -> LinkMotion:
    """Return the motion of a link that slides along its z axis at a rate, m/s."""
    assert isinstance(step, Move)
    still = _motion(w, dw, a)
    coriolis = cross(scale(2.0 * rate, w), (0.0, 0.0, 1.0))
    return LinkMotion(w, dw, add(still.at(step.by), coriolis), still.pull)


def _motion(w: Vec3, dw: Vec3, a: Vec3) -> LinkMotion:
    """Return a motion with its matrix `U = [dw]× + w wᵀ - |w|² 1`."""
    xx, yy, zz = (c * c for c in w)
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    pull = (
        (-(yy + zz), xy - dw[2], xz + dw[1]),
        (xy + dw[2], -(xx + zz), yz - dw[0]),
        (xz - dw[1], yz + dw[0], -(xx + yy)),
    )
    return LinkMotion(w, dw, a, pull)


def _newton_euler(link: Link, motion: LinkMotion) -> Wrench:
    """Return the wrench on the link's own mass, about its origin, in its axes."""
    m, s, (xx, yy, zz, xy, xz, yz) = (
        link.moments.mass,
        link.moments.first,
        link.moments.second,
    )
    U, w = motion.pull, motion.w
    force = add(scale(m, motion.a), _times(U, s))
    x2, y2, z2 = (c * c for c in w)
    spin = (
        U[2][0] * xy + U[2][1] * yy - U[1][0] * xz - U[1][2] * zz + (z2 - y2) * yz,
        U[0][1] * yz + U[0][2] * zz - U[2][0] * xx - U[2][1] * xy + (x2 - z2) * xz,
        U[1][0] * xx - U[0][1] * yy + U[1][2] * xz - U[0][2] * yz + (y2 - x2) * xy,
    )
    return force, add(cross(s, motion.a), spin)


def _times(rows: tuple[Vec3, Vec3, Vec3], a: Vec3) -> Vec3:
    return (dot(rows[0], a), dot(rows[1], a), dot(rows[2], a))
