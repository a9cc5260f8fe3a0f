"""Angular velocities of links, and momentum moments of the mass that each carries, for `C`.

Besides `s = ∫ r dm` and `E = ∫ r rᵀ dm` of a subtree these are `∫ ṙ dm` and `D = ∫ ṙ rᵀ dm`.
They are relative to the present axes; in axes that turn with ω the whole is
`ω × s + flow` and `[ω]× E + D`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import casadi as ca

from mbcasadi.model.chain import WORLD, Chain, Link
from mbcasadi.model.motion import steps_of
from mbcasadi.spatial import (
    ZERO3,
    Mat3,
    Moments,
    Move,
    Step,
    Vec3,
    add,
    cross,
    entries,
    moments_to_parent,
    scale,
    transpose,
    vector_to_child,
    vector_to_parent,
)

RatedSteps = tuple[tuple[Step, Vec3], ...]
"""Steps, each with the rate of its shift, in the axes of the shift, m/s."""


@dataclass(frozen=True)
class Travel:
    """Motion of a link on its parent, and its angular velocity in the world.

    Attributes:
        steps: each step with the rate of its shift, in the axes of the shift, m/s.
        before: angular velocity in the axes before the joint's motion, rad/s.
        w: angular velocity of the link in its axes, rad/s.
    """

    steps: RatedSteps
    before: Vec3
    w: Vec3

    @property
    def plain(self) -> tuple[Step, ...]:
        """The steps alone."""
        return tuple(step for step, _ in self.steps)


@dataclass(frozen=True)
class Subtree:
    """Moments of all that a link carries, and of its momentum in the present axes.

    Attributes:
        moments: m, s, E.
        flow: `∫ ṙ dm`, kg m/s.
        D: rows of `∫ ṙ rᵀ dm`, kg m²/s.
    """

    moments: Moments
    flow: Vec3 = ZERO3
    D: Mat3 = (ZERO3, ZERO3, ZERO3)

    def __add__(self, other: "Subtree") -> "Subtree":
        """Return both together."""
        return Subtree(
            self.moments + other.moments, add(self.flow, other.flow), _sum(self.D, other.D)
        )

    def in_rotating_axes(self, w: Vec3) -> "Subtree":
        """Return the same relative to axes in which the present ones turn with w."""
        by_rotation = transpose(as_rows(cross(w, self.moments.row(i)) for i in range(3)))
        return Subtree(
            self.moments, add(self.flow, cross(w, self.moments.first)), _sum(self.D, by_rotation)
        )

    def to_parent(self, step: Step, rate: Vec3 = ZERO3) -> "Subtree":
        """Return the same in the parent's axes, about the parent's origin.

        Args:
            step: from the parent to here.
            rate: of a shift, in the present axes.
        """
        moments = moments_to_parent(step, self.moments)
        if isinstance(step, Move):
            # (ṙ + ḋ)(r + d)ᵀ = ṙ rᵀ + ṙ dᵀ + ḋ (r + d)ᵀ
            by_shift = _sum(_outer(self.flow, step.by), _outer(rate, moments.first))
            flow = add(self.flow, scale(moments.mass, rate))
            return Subtree(moments, flow, _sum(self.D, by_shift))
        half = transpose(as_rows(vector_to_parent(step, row) for row in self.D))  # (D Rᵀ)ᵀ
        D = transpose(as_rows(vector_to_parent(step, row) for row in half))
        return Subtree(moments, vector_to_parent(step, self.flow), D)


def link_travels(chain: Chain, q: ca.SX, v: ca.SX) -> list[Travel]:
    """Return steps and angular velocities of all links."""
    travels: list[Travel] = []
    for link in chain.links:
        w = ZERO3 if link.parent == WORLD else travels[link.parent].w
        kind, dof = link.joint.kind, link.joint.dof
        steps: list[tuple[Step, Vec3]] = []
        for step in link.before:
            steps.append((step, cross(w, step.by) if isinstance(step, Move) else ZERO3))
            w = vector_to_child(step, w)
        before = w
        for step in steps_of(link, q)[len(link.before) :]:
            if isinstance(step, Move):
                slide = (0.0, 0.0, v[dof]) if kind == "slide" else ZERO3
                steps.append((step, add(cross(w, step.by), slide)))
            else:
                steps.append((step, ZERO3))
                w = add(vector_to_child(step, w), joint_spin(link, v))
        travels.append(Travel(tuple(steps), before, w))
    return travels


def joint_spin(link: Link, v: ca.SX) -> Vec3:
    """Return the angular velocity of a link relative to its parent, in the link's axes."""
    dof = link.joint.dof
    match link.joint.kind:
        case "hinge":
            return (0.0, 0.0, v[dof])
        case "ball":
            return entries(v, dof)
        case "free":
            return entries(v, dof + 3)
    return ZERO3


def carried_subtrees(
    chain: Chain, travels: list[Travel], v: ca.SX
) -> tuple[list[Subtree], list[Subtree]]:
    """Return the subtree that each link carries.

    Returns:
        Subtrees in the link's own axes, and in the axes before the joint's motion, which the
        joint's axis shares.
    """
    carried = [Subtree(link.moments) for link in chain.links]
    before_joint = list(carried)
    for i in reversed(range(len(chain.links))):
        link, subtree, steps = chain.links[i], carried[i], travels[i].plain
        if link.parent == WORLD and link.joint.kind != "hinge":
            continue
        subtree = subtree.in_rotating_axes(joint_spin(link, v))
        slide: Vec3 = (0.0, 0.0, v[link.joint.dof]) if link.joint.kind == "slide" else ZERO3
        for step in reversed(steps[len(link.before) :]):
            subtree = subtree.to_parent(step, slide)
        before_joint[i] = subtree
        if link.parent == WORLD:
            continue
        for step in reversed(link.before):
            subtree = subtree.to_parent(step)
        carried[link.parent] = carried[link.parent] + subtree
    return carried, before_joint


def as_rows(vectors: Iterable[Vec3]) -> Mat3:
    """Return three vectors as a matrix."""
    x, y, z = vectors
    return (x, y, z)


def _sum(a: Mat3, b: Mat3) -> Mat3:
    return as_rows(add(x, y) for x, y in zip(a, b, strict=True))


def _outer(a: Vec3, b: Vec3) -> Mat3:
    return as_rows(scale(x, b) for x in a)
