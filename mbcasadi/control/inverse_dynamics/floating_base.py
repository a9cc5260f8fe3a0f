"""Whether a floating base has something that can carry it: contacts, constraints, actuators."""

import numpy as np

from mbcasadi.control.tick.design import Design
from mbcasadi.description import RigidTree
from mbcasadi.system import System, evaluate
from mbcasadi.system.joint_roles import driven_coordinates

MOVED = 1e-9
"""Share of the largest entry from which on a constraint acts on the base."""

BASE_DOFS = 6


def doubt_of_base(design: Design) -> str:
    """Return a warning of a floating base that nothing can carry; "" otherwise."""
    name, rows = floating_base(design)
    if not name or design.contacts or rows:
        return ""
    return (
        f"'{design.system.name}' falls: neither contacts nor constraints nor actuators act on its "
        f"floating base '{name}'; expected contacts=, such as those of mb.contacts_of"
    )


def floating_base(design: Design) -> tuple[str, tuple[int, ...]]:
    """Return the free joint that has to be carried, "" for none, and the equality rows on it.

    It has joints with actuators above it, which do not push the base itself, and gravity.
    """
    tree = design.system.tree
    if tree is None or not np.any(tree.gravity):
        return "", ()
    driven = driven_coordinates(design.system, design.system.scales)
    for joint in tree.joints:
        base = list(range(joint.dof, joint.dof + BASE_DOFS))
        if joint.kind != "free" or not driven[_above(tree, joint.body)].any():
            continue
        if not driven[base].any():
            return joint.name, _rows_on(design.system, base)
    return "", ()


def _rows_on(system: System, base: list[int]) -> tuple[int, ...]:
    """Return the equality rows that act on a base at one of the closed poses."""
    if not system.nc:
        return ()
    J = system.loop_jacobian
    A = np.abs(
        [
            np.asarray(evaluate(J, {"q": q, "v": v, "t": 0.0}).full())
            for q, v in system.scales.states
        ]
    )
    acts = A[:, :, base].max(axis=(0, 2)) > MOVED * A.max(axis=(0, 2))
    return tuple(np.flatnonzero(acts).tolist())


def _above(tree: RigidTree, body: int) -> list[int]:
    """Return the dofs of joints of bodies that a body carries."""
    carried = {body}
    for i, each in enumerate(tree.bodies):
        if i and each.parent in carried:
            carried.add(i)
    return [j.dof for j in tree.joints if j.body in carried and j.body != body]
