"""Motions of links for `M a_r + C v_r`: a reference velocity carried by the actual motion.

A particle of a link moves with `ẋ = J v`, and `J v_r` is the velocity that a reference gives it.
Along the actual motion that one changes with

    d/dt (J v_r) = J a_r + J̇ v_r,    a_r = dv_r/dt

which on a link is the field `a + U r` with `U = [dω_r]× + [ω_r]×[ω]×`. Its forces,
`∫ Jᵀ (a + U r) dm`, are `M a_r + C v_r` with the Coriolis matrix `C = ∫ Jᵀ J̇ dm` of
`coriolis.py`; with `v_r = v` they are those of Newton and Euler.
"""

from dataclasses import dataclass, replace

import casadi as ca

from mbcasadi.model.chain import WORLD, Chain, Link
from mbcasadi.model.motion import steps_of
from mbcasadi.model.recursion import rows_times
from mbcasadi.spatial import (
    ZERO3,
    Mat3,
    Move,
    Step,
    Vec3,
    add,
    cross,
    entries,
    scale,
    vec3,
    vector_to_child,
)

Z: Vec3 = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class ReferenceMotion:
    """Motion of a link, in its own axes.

    Attributes:
        w: angular velocity of the actual motion, rad/s.
        w_r: of the reference.
        dw_r: rate of w_r in the world, rad/s².
        a: rate of the reference velocity of the origin minus gravity, m/s².
        U: rows of `[dω_r]× + [ω_r]×[ω]×`; at a point r the rate is `a + U r`.
    """

    w: Vec3
    w_r: Vec3
    dw_r: Vec3
    a: Vec3
    U: Mat3


@dataclass(frozen=True)
class _Rates:
    """Velocity of the actual motion, reference velocity and its rate, (nv, 1) each."""

    v: ca.SX
    v_r: ca.SX
    a_r: ca.SX


def reference_motions(
    chain: Chain, q: ca.SX, v: ca.SX, v_r: ca.SX, a_r: ca.SX
) -> dict[int, ReferenceMotion]:
    """Return the motion of each link, gravity included.

    Args:
        chain: the links.
        q: (nq, 1) configuration.
        v: (nv, 1) velocity.
        v_r: (nv, 1) reference velocity.
        a_r: (nv, 1) its rate.
    """
    rates = _Rates(v, v_r, a_r)
    gravity = scale(-1.0, vec3(chain.tree.gravity))
    motions = {WORLD: _motion(ZERO3, ZERO3, ZERO3, gravity)}
    for i, link in enumerate(chain.links):
        motions[i] = _child_motion(link, motions[link.parent], steps_of(link, q), rates)
    return motions


def _child_motion(
    link: Link, parent: ReferenceMotion, steps: tuple[Step, ...], rates: _Rates
) -> ReferenceMotion:
    kind, dof = link.joint.kind, link.joint.dof
    if kind == "free":
        a = vector_to_child(steps[-1], add(parent.a, entries(rates.a_r, dof)))
        w, w_r = entries(rates.v, dof + 3), entries(rates.v_r, dof + 3)
        return _motion(w, w_r, add(entries(rates.a_r, dof + 3), cross(w, w_r)), a)
    still = parent
    for step in steps[: len(link.before)]:
        still = _after(step, still)
    joint_step = steps[len(link.before)]
    if kind == "slide":
        return _slide(joint_step, still, rates, dof)
    a, w, w_r, dw_r = (vector_to_child(joint_step, x) for x in _vectors(still))
    turning = [_about_axes(kind, x, dof) for x in (rates.v, rates.v_r, rates.a_r)]
    w = add(w, turning[0])
    dw_r = add(add(dw_r, cross(w, turning[1])), turning[2])
    motion = _motion(w, add(w_r, turning[1]), dw_r, a)
    # The origin slides along the axis, which parent and child share: the child's U serves too.
    return _after(Move((0.0, 0.0, link.after)), motion) if link.after else motion


def _about_axes(kind: str, rates: ca.SX, dof: int) -> Vec3:
    """Return the part of a rate (nv, 1) that turns the link about the axes of its joint."""
    return entries(rates, dof) if kind == "ball" else (0.0, 0.0, rates[dof])


def _slide(step: Step, still: ReferenceMotion, rates: _Rates, dof: int) -> ReferenceMotion:
    """Return the motion of a link that slides along its z axis; `still` as if it were locked."""
    carried = _after(step, still)
    turned = add(scale(rates.v[dof], still.w_r), scale(rates.v_r[dof], still.w))
    along = add(cross(turned, Z), (0.0, 0.0, rates.a_r[dof]))
    return replace(carried, a=add(carried.a, along))


def _after(step: Step, motion: ReferenceMotion) -> ReferenceMotion:
    """Return the motion of a link in a frame that is fixed to it."""
    if isinstance(step, Move):
        return replace(motion, a=add(motion.a, rows_times(motion.U, step.by)))
    a, w, w_r, dw_r = (vector_to_child(step, x) for x in _vectors(motion))
    return _motion(w, w_r, dw_r, a)


def _vectors(motion: ReferenceMotion) -> tuple[Vec3, Vec3, Vec3, Vec3]:
    return motion.a, motion.w, motion.w_r, motion.dw_r


def _motion(w: Vec3, w_r: Vec3, dw_r: Vec3, a: Vec3) -> ReferenceMotion:
    """Return a motion with its matrix `U = [dω_r]× + ω ω_rᵀ - (ωᵀ ω_r) 1`."""
    xx, yy, zz = (a * b for a, b in zip(w, w_r, strict=True))
    U = (
        (-(yy + zz), w[0] * w_r[1] - dw_r[2], w[0] * w_r[2] + dw_r[1]),
        (w[1] * w_r[0] + dw_r[2], -(xx + zz), w[1] * w_r[2] - dw_r[0]),
        (w[2] * w_r[0] - dw_r[1], w[2] * w_r[1] + dw_r[0], -(xx + yy)),
    )
    return ReferenceMotion(w, w_r, dw_r, a, U)
