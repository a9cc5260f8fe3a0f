"""Limbs: what is moved by common joints."""

from collections.abc import Sequence

import casadi as ca


def limbs_of(jacobians: Sequence[ca.SX]) -> list[tuple[set[int], list[int]]]:
    """Return joints and members of each limb: what a common joint moves is of one limb.

    Args:
        jacobians: (k, n) of each member by the joints, with their structural zeros left out.
    """
    limbs: list[tuple[set[int], list[int]]] = []
    for i, J in enumerate(jacobians):
        joints = set(J.sparsity().get_triplet()[1])
        joined = [limb for limb in limbs if limb[0] & joints]
        limbs = [limb for limb in limbs if not limb[0] & joints]
        members = sorted([i, *(k for limb in joined for k in limb[1])])
        limbs.append((joints.union(*(limb[0] for limb in joined)), members))
    return limbs
