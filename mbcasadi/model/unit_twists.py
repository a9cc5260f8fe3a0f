"""What each joint does to the links that it carries: unit twists, seen from the links."""

import casadi as ca

from mbcasadi.model.chain import WORLD, Chain, Link
from mbcasadi.model.motion import steps_of
from mbcasadi.spatial import ZERO3, Move, Step, Vec3, add, cross, vector_to_child

AXES: tuple[Vec3, Vec3, Vec3] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

Twist = tuple[Vec3, Vec3]
"""Velocity of a link's origin and angular velocity, in its axes, for a unit rate of one dof."""


def unit_twists(chain: Chain, q: ca.SX) -> list[dict[int, Twist]]:
    """Return for each link the unit twist of each dof that moves it, in the link's frame."""
    of_links: list[dict[int, Twist]] = []
    for link in chain.links:
        steps = steps_of(link, q)
        carried = {} if link.parent == WORLD else of_links[link.parent]
        moved = {dof: _seen_after(steps, twist) for dof, twist in carried.items()}
        of_links.append(moved | _own_twists(link, steps))
    return of_links


def _seen_after(steps: tuple[Step, ...], twist: Twist) -> Twist:
    linear, angular = twist
    for step in steps:
        if isinstance(step, Move):
            linear = add(linear, cross(angular, step.by))
        else:
            linear, angular = vector_to_child(step, linear), vector_to_child(step, angular)
    return linear, angular


def _own_twists(link: Link, steps: tuple[Step, ...]) -> dict[int, Twist]:
    """Return the unit twists of the link's own joint; a free one moves along world axes."""
    dof = link.joint.dof
    match link.joint.kind:
        case "hinge":
            return {dof: (ZERO3, AXES[2])}
        case "slide":
            return {dof: (AXES[2], ZERO3)}
        case "ball":
            return {dof + k: (ZERO3, AXES[k]) for k in range(3)}
    along = {dof + k: (vector_to_child(steps[-1], AXES[k]), ZERO3) for k in range(3)}
    return along | {dof + 3 + k: (ZERO3, AXES[k]) for k in range(3)}
