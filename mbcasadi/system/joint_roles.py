"""Which joints actuators drive, which follow these through constraints, and which are passive.

With orthonormal bases of null(A) as rows of velocities, a joint depends on the driven ones where it
cannot move while they are at rest: its row of Z is a combination of theirs. A finger that follows
another one by an equality is dependent, the crank's follower of a four-bar too; the legs' springs
of Cassie and a floating base are passive.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.tree import DOF_SIZE
from mbcasadi.errors import ProblemError
from mbcasadi.system.functions import evaluate
from mbcasadi.system.mechanism import Mechanism
from mbcasadi.system.scales import Scales

Array = NDArray[np.float64]

ACTS = 1e-9
"""Share of an actuator's largest effect on a coordinate below which it does not act on another."""
FREE = 1e-6
"""Rate of a joint with the driven ones at rest, of the largest one, above which it is free."""


class JointRoles(NamedTuple):
    """The joints of a system by what moves them; names, in the order of the model.

    Attributes:
        driven: an actuator acts on them.
        dependent: the constraints move them with the driven ones.
        passive: neither; a floating base is one.
    """

    driven: tuple[str, ...]
    dependent: tuple[str, ...]
    passive: tuple[str, ...]


def joint_roles(system: Mechanism, scales: Scales) -> JointRoles:
    """Return the joints of a system by what moves them, at its sampled poses.

    Args:
        system: read from a model.
        scales: measured of it.

    Raises:
        ProblemError: a system that is given by equations.
    """
    if system.tree is None:
        raise ProblemError(f"'{system.name}' is given by equations and has no joints")
    driven = driven_coordinates(system, scales)
    free = _free_coordinates(system, scales, driven)
    roles: dict[str, list[str]] = {"driven": [], "dependent": [], "passive": []}
    for joint in system.tree.joints:
        dofs = slice(joint.dof, joint.dof + DOF_SIZE[joint.kind])
        role = "driven" if driven[dofs].any() else "passive" if free[dofs].any() else "dependent"
        roles[role].append(joint.name)
    return JointRoles(*(tuple(roles[role]) for role in ("driven", "dependent", "passive")))


def independent_motions(system: Mechanism, scales: Scales) -> tuple[list[int], list[Array]]:
    """Return coordinates that determine all velocities on null(A), driven ones first, and S.

    S (nv, k) at each sampled pose, `v = S v_i`, velocities over the sizes of coordinates; the
    coordinates are those of the first pose.

    Args:
        system: with constraints; without, S picks the coordinates.
        scales: measured of it.
    """
    driven = driven_coordinates(system, scales)
    nothing = np.zeros(system.nv, bool)
    bases = [_motions(system, scales, q, nothing) for q, _ in scales.states]
    chosen: list[int] = []
    for dof in (*np.flatnonzero(driven), *np.flatnonzero(~driven)):
        trial = [*chosen, int(dof)]
        if np.linalg.matrix_rank(bases[0][trial], tol=FREE) == len(trial):
            chosen = trial
    motions = [Z @ np.linalg.pinv(Z[chosen], rcond=FREE) for Z in bases]
    return chosen, [np.where(np.abs(S) > FREE, S, 0.0) for S in motions]


def driven_coordinates(system: Mechanism, scales: Scales) -> NDArray[np.bool_]:
    """Return (nv,) whether an actuator acts on a coordinate at a sampled pose."""
    size, driven = scales.coordinates, np.zeros(system.nv, bool)
    for q, _ in scales.states:
        effect = np.abs(size[:, None] * _at_rest(system, "actuation", q))
        driven |= (effect > ACTS * effect.max(axis=0, initial=0.0)).any(axis=1)
    return driven


def _free_coordinates(
    system: Mechanism, scales: Scales, driven: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return (nv,) whether a coordinate moves while the driven ones are at rest."""
    free = np.zeros(system.nv, bool)
    for q, _ in scales.states:
        free |= np.abs(_motions(system, scales, q, driven)).max(axis=1, initial=0.0) > FREE
    return free & ~driven


def _motions(system: Mechanism, scales: Scales, q: Array, held: NDArray[np.bool_]) -> Array:
    """Return orthonormal motions (nv, k), over sizes, with the coordinates `held` at rest."""
    rows = np.eye(system.nv)[held]
    if system.nc:
        A = _at_rest(system, "loop_jacobian", q) * scales.coordinates
        lengths = np.where(scales.rows > 0, scales.rows, 1.0)
        rows = np.vstack([rows, A / lengths[:, None]])
    if not len(rows):
        return np.eye(system.nv)
    _, length, Vt = np.linalg.svd(rows)
    rank = int(np.count_nonzero(length > FREE * length.max(initial=0.0)))
    return np.asarray(Vt[rank:].T)


def _at_rest(system: Mechanism, member: str, q: Array) -> Array:
    """Return a member that may depend on the velocity, at rest."""
    return np.asarray(evaluate(system.member(member), {"q": q, "v": np.zeros(system.nv)}).full())
