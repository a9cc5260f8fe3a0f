"""Joint-space inertia by the composite-rigid-body method."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.description import Actuator, Joint, RigidTree
from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.linalg.arithmetic import matrix_of
from mbcasadi.model.chain import WORLD, Chain, Link, chain_of
from mbcasadi.model.motion import Wrench, steps_of, wrench_before, wrench_on_dofs
from mbcasadi.model.transmission import moment_row, tendon_row
from mbcasadi.spatial import (
    Moments,
    Scalar,
    Step,
    is_zero,
    moments_to_parent,
    scalar,
)

Steps = list[tuple[Step, ...]]


def mass_matrix(tree: RigidTree, q: ca.SX, actuators: Sequence[Actuator] = ()) -> ca.SX:
    """Return the joint-space inertia M, armature of joints, tendons and actuators included.

    Column j is the generalised force that gives joint j alone a unit acceleration, at rest and
    without gravity: the wrench of everything that joint j carries, projected on the axes of j
    and of its ancestors. Joints on different branches do not share an entry.

    Args:
        tree: the mechanism.
        q: (nq, 1) configuration.
        actuators: those whose armature counts.

    Returns:
        (nv, nv) symmetric, sparse like the tree.
    """
    chain = chain_of(tree)
    steps = [steps_of(link, q) for link in chain.links]
    composite, before_joint = _composites(chain, steps)
    entries: dict[tuple[int, int], Scalar] = {}
    for j, link in enumerate(chain.links):
        if link.joint.kind == "free":
            first = link.joint.dof
            entries.update({(k, k): composite[j].mass for k in range(first, first + 3)})
        for dof, wrench in _unit_wrenches(link, composite[j]):
            entries.update(_column(dof, wrench_on_dofs(link, wrench, steps[j])))
            if link.joint.kind == "hinge":
                # Its own turn is done already: the inertia was turned on the way to the parent.
                wrench, between = before_joint[j].rotation_wrench(2), link.before
            else:
                between = steps[j]
            at_parent = wrench_before(between, wrench)
            _project_on_ancestors(chain, steps, link.parent, dof, at_parent, entries)
    mirrored = entries | {(j, i): value for (i, j), value in entries.items()}
    M = matrix_of((tree.nv, tree.nv), mirrored)
    return ca.sparsify(M + armature_matrix(tree, q, actuators))


def armature_matrix(tree: RigidTree, q: ca.SX, actuators: Sequence[Actuator] = ()) -> ca.SX:
    """Return the part of M (nv, nv) that comes from the armature of joints, tendons, actuators."""
    diagonal = {(dof, dof): scalar(armature) for dof, armature in enumerate(tree.armature)}
    total = matrix_of((tree.nv, tree.nv), diagonal)
    lengths = _lengths_with_armature(tree, q, actuators)
    if lengths:
        of_lengths = sum((armature * (J.T @ J) for J, armature in lengths), ca.SX(0))
        total += _same_branch(chain_of(tree)) * of_lengths
    return ca.sparsify(total)


def _same_branch(chain: Chain) -> ca.DM:
    """Return (nv, nv) ones where one joint carries the other.

    MuJoCo's M has no entry elsewhere: it omits the coupling of branches by a tendon's armature,
    and so does this one.
    """
    same_branch = ca.DM(chain.tree.nv, chain.tree.nv)
    for i, link in enumerate(chain.links):
        for j in chain.path(i):
            rows, columns = _dofs(link.joint), _dofs(chain.links[j].joint)
            same_branch[rows, columns] = 1.0
            same_branch[columns, rows] = 1.0
    return same_branch


def _dofs(joint: Joint) -> slice:
    return slice(joint.dof, joint.dof + DOF_SIZE[joint.kind])


def _lengths_with_armature(
    tree: RigidTree, q: ca.SX, actuators: Sequence[Actuator]
) -> list[tuple[ca.SX, Scalar]]:
    """Return the Jacobian (1, nv) and the armature of each length that has one."""
    tendons: list[tuple[ca.SX, Scalar]] = [
        (tendon_row(tree, t, q), t.armature) for t in tree.tendons if not is_zero(t.armature)
    ]
    driven = [(moment_row(tree, a, q), a.armature) for a in actuators if not is_zero(a.armature)]
    return tendons + driven


def _composites(chain: Chain, steps: Steps) -> tuple[list[Moments], list[Moments]]:
    """Return the moments of all that each link carries.

    Returns:
        Moments in the link's own frame, and in its frame before the joint's motion.
    """
    composite = [link.moments for link in chain.links]
    before_joint = list(composite)
    for i in reversed(range(len(chain.links))):
        link, moments = chain.links[i], composite[i]
        for step in reversed(steps[i][len(link.before) :]):
            moments = moments_to_parent(step, moments)
        before_joint[i] = moments
        if link.parent == WORLD:
            continue
        for step in reversed(link.before):
            moments = moments_to_parent(step, moments)
        composite[link.parent] = composite[link.parent] + moments
    return composite, before_joint


def _column(dof: int, rows: list[tuple[int, Scalar]]) -> dict[tuple[int, int], Scalar]:
    """Return the entries of one column above the diagonal."""
    return {(min(row, dof), max(row, dof)): value for row, value in rows}


def _unit_wrenches(link: Link, composite: Moments) -> list[tuple[int, Wrench]]:
    """Return each dof of a link with the wrench of its unit acceleration, in link axes."""
    dof = link.joint.dof
    match link.joint.kind:
        case "hinge":
            return [(dof, composite.rotation_wrench(2))]
        case "slide":
            return [(dof, composite.translation_wrench(2))]
        case "ball":
            return [(dof + k, composite.rotation_wrench(k)) for k in range(3)]
    # The columns of the linear velocity are those rows of the others, and the mass.
    return [(dof + 3 + k, composite.rotation_wrench(k)) for k in range(3)]


def _project_on_ancestors(
    chain: Chain,
    steps: Steps,
    i: int,
    dof: int,
    wrench: Wrench,
    entries: dict[tuple[int, int], Scalar],
) -> None:
    """Write the components of the wrench of one dof on the axes of link i and its ancestors."""
    while i != WORLD:
        link = chain.links[i]
        entries.update(_column(dof, wrench_on_dofs(link, wrench, steps[i])))
        wrench = wrench_before(steps[i], wrench)
        i = link.parent
