"""Joints with the motion of what carries them and the mass that they carry, in joint axes."""

from dataclasses import dataclass

import casadi as ca

from mbcasadi.model.chain import Chain, Link
from mbcasadi.model.mass_flow import (
    RatedSteps,
    Subtree,
    carried_subtrees,
    joint_spin,
    link_travels,
)
from mbcasadi.model.motion import Wrench
from mbcasadi.model.newton_euler import carried_wrenches
from mbcasadi.model.recursion import LinkMotion, link_motions
from mbcasadi.spatial import ZERO3, Vec3, add, scale


@dataclass(frozen=True)
class JointState:
    """A joint with its motion and its subtree, in joint axes.

    Joint axes are those before the turn of a hinge, and those of the link for other joints.
    Velocities that enter derivatives once on each side of a product are doubled: the rates of
    steps and what `subtree` flows.

    Attributes:
        link: the link.
        inner: steps from the joint axes to the link's.
        outer: steps from the parent's frame to the joint axes, with doubled rates.
        carrier: motion of what carries the joint.
        spin: angular velocity of a ball or free joint, rad/s; zero for others.
        subtree: what the joint carries, with doubled flow relative to axes that turn with the
            carrier.
        wrench: on all that the joint carries, about the joint's origin.
    """

    link: Link
    inner: RatedSteps
    outer: RatedSteps
    carrier: LinkMotion
    spin: Vec3
    subtree: Subtree
    wrench: Wrench

    @property
    def turning(self) -> Vec3:
        """Sum of the angular velocities before and after the joint, without the axis's part."""
        return add(scale(2.0, self.carrier.w), self.spin)


def joint_states(chain: Chain, q: ca.SX, v: ca.SX, a: ca.SX) -> list[JointState]:
    """Return the state of each joint.

    Args:
        chain: the links.
        q, v, a: (nq, 1), (nv, 1), (nv, 1) configuration, velocity, acceleration.
    """
    motions = link_motions(chain, q, v, a)
    travels = link_travels(chain, q, v)
    wrenches = carried_wrenches(chain, [travel.plain for travel in travels], motions)
    carried, before_turn = carried_subtrees(chain, travels, 2 * v)
    states = []
    for i, link in enumerate(chain.links):
        hinged, spin = link.joint.kind == "hinge", ZERO3
        if link.joint.kind in {"ball", "free"}:
            spin = joint_spin(link, v)
        rated = tuple((step, scale(2.0, rate)) for step, rate in travels[i].steps)
        split = len(link.before) if hinged else len(rated)
        carrier = motions[i].carrier
        assert carrier is not None  # only the world has none
        subtree = carried[i].in_rotating_axes(scale(2.0, spin))
        states.append(
            JointState(
                link=link,
                inner=rated[split:],
                outer=rated[:split],
                carrier=carrier,
                spin=spin,
                subtree=before_turn[i] if hinged else subtree,
                wrench=wrenches[i][1] if hinged else wrenches[i][0],
            )
        )
    return states
