"""States of a tree at which kernels are timed, and what its peers can be compared in."""

import casadi as ca
import numpy as np

from mbcasadi import model
from mbcasadi.description import RigidTree


def random_states(tree: RigidTree, count: int) -> np.ndarray:
    """Return (count, nq + nv) random states.

    Free bodies do not translate: there the conventions of MuJoCo and Pinocchio for zero
    acceleration are the same, so that h can be compared.
    """
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(count):
        q, v = model.random_state(tree, rng)
        for joint in tree.joints:
            if joint.kind == "free":
                v[joint.dof : joint.dof + 3] = 0.0
        rows.append(np.concatenate([q, v]))
    return np.array(rows)


def numbers_of(tree: RigidTree, function: ca.Function, state: np.ndarray) -> dict[str, np.ndarray]:
    """Return M, h and J of slides and hinges, and J_dot_v, each by rows in one array.

    The peers' dofs of free and ball joints are in other axes.
    """
    M, h, *motions = (np.array(x) for x in function(state[: tree.nq], state[tree.nq :]))
    dofs = [joint.dof for joint in tree.joints if joint.kind in ("slide", "hinge")]
    frames = len(motions) // 2
    return {
        "M": M[np.ix_(dofs, dofs)].ravel(),
        "h": h[dofs].ravel(),
        "J": np.concatenate([J[:, dofs].ravel() for J in motions[:frames]]),
        "J_dot_v": np.concatenate(motions[frames:]).ravel(),
    }
