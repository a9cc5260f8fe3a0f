"""Closed poses of a mechanism, at random: where its scales are measured."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description import RigidTree
from mbcasadi.system.functions import evaluate
from mbcasadi.system.mechanism import Mechanism
from mbcasadi.system.natural_sizes import model_length, tree_scales
from mbcasadi.system.row_lengths import rows_of, typical_row_lengths

Array = NDArray[np.float64]

SAMPLES = 8
"""Closed poses at which a mechanism is measured."""

TRIALS = 4
"""Poses at random for each sample; some do not close."""

STEPS = 40
"""Newton's steps towards a closed pose."""

HALVINGS = 12
"""Of one step that would open the rows further."""

CLOSED = 1e-9
"""Residual of the rows, relative to that of a pose at random, below which a pose is closed."""

SAMPLE_RANK_TOL = 1e-3
"""Relative singular value that counts as zero in Newton's steps: those of redundant rows are as
small as the gap that is left."""


def closed_poses(system: Mechanism, rng: np.random.Generator, size: Array) -> list[Array]:
    """Return poses at random that Newton's steps have closed, as they were drawn if none closes.

    There may be fewer than `SAMPLES`: each gets `TRIALS` trials.

    Those of given equations are sought where the first ones have closed.

    Args:
        system: the mechanism.
        rng: of the poses.
        size: (nv,) `natural_sizes` of the system.
    """
    if system.tree is not None or not system.nc:
        return _closed_from(system, rng, size)
    spread = np.sqrt(np.mean(np.square(_closed_from(system, rng, size)), axis=0))
    return _closed_from(system, rng, np.where(spread > 0, np.sqrt(3.0) * spread, size))


def _closed_from(system: Mechanism, rng: np.random.Generator, size: Array) -> list[Array]:
    """Return closed poses; those of given equations are sought inside ±size."""
    length = 1.0 if system.tree is None else model_length(system.tree)
    starts = [_random_pose(system, rng, size, length) for _ in range(TRIALS * SAMPLES)]
    return closed_from(system, starts, size, SAMPLES) or starts[:SAMPLES]


def closed_from(system: Mechanism, starts: Sequence[Array], size: Array, count: int) -> list[Array]:
    """Return up to `count` of the poses that Newton's steps reach from some.

    Args:
        system: the mechanism.
        starts: (nq,) each.
        size: of its coordinates.
        count: of poses, at most.
    """
    if not system.nc:
        return list(starts[:count])
    still = np.zeros(system.nv)
    measured = tuple(
        (q, still) for q in starts[:SAMPLES] if np.isfinite(_residual(system, q)).all()
    )
    lengths = typical_row_lengths(system, measured, np.diag(size)) if measured else 1.0
    on = np.ones(system.nc) if system.mask is None else np.asarray(system.mask)
    closed: list[Array] = []
    for start in starts:
        q, is_closed = _close(system, start, on / lengths)
        if is_closed:
            closed.append(q)
        if len(closed) == count:
            break
    return closed


def random_poses(system: Mechanism, rng: np.random.Generator, count: int) -> Array:
    """Return (count, nq) poses of a system that is read from a model, loops open.

    Joints are within their whole ranges, those without one within a turn or a length of the model.
    """
    tree = system.tree
    assert tree is not None
    length = model_length(tree)
    steps = np.array([_random_step(system, tree, rng, length) for _ in range(count)])
    for name, ends in zip(system.limits.joint_names, system.limits.joint, strict=True):
        joint = next(joint for joint in tree.joints if joint.name == name)
        if np.all(np.isfinite(ends)):
            steps[:, joint.dof] = rng.uniform(ends[0], ends[1], count) - tree.q0[joint.qpos]
    return np.asarray(system.integrate.map(count)(tree.q0, steps.T)).T


def _random_pose(system: Mechanism, rng: np.random.Generator, size: Array, length: float) -> Array:
    tree = system.tree
    if tree is None:
        return np.asarray(size * rng.uniform(-1.0, 1.0, system.nq))
    step = _random_step(system, tree, rng, length)
    return np.asarray(system.integrate(tree.q0, step)).ravel()


def _random_step(
    system: Mechanism, tree: RigidTree, rng: np.random.Generator, length: float
) -> Array:
    """Return (nv,) from the initial pose to one at random, joints within their ranges."""
    dq = np.zeros(tree.nv)
    ranges = dict(zip(system.limits.joint_names, system.limits.joint, strict=True))
    for joint in tree.joints:
        if joint.kind in ("slide", "hinge"):
            middle, half = float(tree.q0[joint.qpos]), length if joint.kind == "slide" else np.pi
            low, high = ranges[joint.name]
            ends = (max(low, middle - half), min(high, middle + half))
            dq[joint.dof] = rng.uniform(*sorted(ends)) - middle
        else:
            turn = joint.dof + (3 if joint.kind == "free" else 0)
            dq[joint.dof : turn] = length * rng.uniform(-1.0, 1.0, turn - joint.dof)
            dq[turn : turn + 3] = rng.uniform(-1.5, 1.5, 3)
    return dq


def _close(system: Mechanism, q: Array, per_row: Array) -> tuple[Array, bool]:
    """Return the pose that Newton's steps with a line search reach, and whether it is closed.

    Args:
        system: the mechanism.
        q: (nq,) pose to start from.
        per_row: (nc,) one over the length of each row; zero for a row that is off.
    """
    gap = per_row * _residual(system, q)
    first = np.linalg.norm(gap)
    for _ in range(STEPS):
        if np.linalg.norm(gap) <= CLOSED * first:
            return q, True
        A = per_row[:, None] * rows_of(system, q, np.zeros(system.nv))
        size = _step_scales(system, A)
        A = A * size
        if not (np.all(np.isfinite(A)) and np.all(np.isfinite(gap))):
            return q, False
        step = -size * (np.linalg.pinv(A, rcond=SAMPLE_RANK_TOL) @ gap)
        for _ in range(HALVINGS):
            ahead = np.asarray(system.integrate(q, step)).ravel()
            residual = per_row * _residual(system, ahead)
            if np.linalg.norm(residual) < np.linalg.norm(gap):
                break
            step = step / 2
        else:
            return q, False
        q, gap = ahead, residual
    return q, False


def _residual(system: Mechanism, q: Array) -> Array:
    values: dict[str, ArrayLike] = {"q": q, "t": 0.0}
    return np.asarray(evaluate(system.constraint, values).full().ravel())


def _step_scales(system: Mechanism, A: Array) -> Array:
    """Return sizes of the coordinates for a step: without a tree, columns of equal length."""
    if system.tree is not None:
        return tree_scales(system.tree)
    length = np.linalg.norm(A, axis=0)
    return np.asarray(1 / np.where(length > 0, length, 1.0))
