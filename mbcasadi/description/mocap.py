"""Mocap bodies: what a model leaves to be moved from outside, and what depends on it."""

from collections.abc import Sequence

from mbcasadi.description.constraints import Connect, Equality, Weld
from mbcasadi.description.tree import Body, RigidTree


def mocap_bodies(tree: RigidTree) -> tuple[Body, ...]:
    """Return the mocap bodies, in the order of a plant's `mocap_pos`."""
    found = [body for body in tree.bodies if body.mocap is not None]
    return tuple(sorted(found, key=lambda body: body.mocap or 0))


def carried_by_mocap(tree: RigidTree) -> dict[int, int]:
    """Return body → mocap body, by index, of all that a mocap body carries, itself included."""
    carrier: dict[int, int] = {}
    for i, body in enumerate(tree.bodies):  # a parent precedes its children
        if body.mocap is not None:
            carrier[i] = i
        elif body.parent in carrier and i:
            carrier[i] = carrier[body.parent]
    return carrier


def mocap_equalities(tree: RigidTree, equalities: Sequence[Equality]) -> dict[str, tuple[str, ...]]:
    """Return equality → names of the mocap bodies whose pose its rows depend on.

    Only connects and welds have ends on bodies; others are left out.
    """
    carrier = carried_by_mocap(tree)
    depending = {}
    for equality in equalities:
        if not isinstance(equality, (Connect, Weld)):
            continue
        ends = {carrier[body] for body in (equality.body1, equality.body2) if body in carrier}
        if ends:
            depending[equality.name] = tuple(tree.bodies[i].name for i in sorted(ends))
    return depending
