"""Scales of a mechanism: what its coordinates and its constraint rows are compared with.

"This row is too weak to count" needs a length that comes from the mechanism itself: with 1 m/rad,
a mechanism of one millimetre loses its loops. Here a row is compared with its own length over
closed poses, and rotations with translations by a length, or by the inertias, of the model. When
the units of a model change, its scales change with them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description import RigidTree
from mbcasadi.system.functions import evaluate

if TYPE_CHECKING:
    from mbcasadi.system.system import System

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

VANISHING = 1e-9
"""A row shorter than this share of the longest row of its constraint holds rounding errors only."""


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of a mechanism, measured at closed poses.

    Attributes:
        states: (q, v) of the samples; v is a random velocity of the size of `coordinates`.
        coordinates: (nv,) size of each coordinate: 1 rad for rotations, a length of the model for
            translations; by the inertias where the system was given by equations.
        rows: (nc,) root mean square of `|A_i diag(coordinates)|`: the length of each row.
        row_norms: (nc,) root mean square of `|A_i|`.
    """

    states: tuple[tuple[Array, Array], ...]
    coordinates: Array
    rows: Array
    row_norms: Array

    @property
    def longest_row(self) -> float:
        """Length of the longest row: what singular values of A are compared with."""
        return float(self.row_norms.max(initial=0.0)) or 1.0


def measure_scales(system: "System") -> Scales:
    """Return the scales of a system; deterministic."""
    rng = np.random.default_rng(0)
    poses = _closed_poses(system, rng)
    size = _coordinate_scales(system, poses)
    states = tuple((q, size * rng.standard_normal(system.nv)) for q in poses)
    rows, norms = (typical_row_lengths(system, states, np.diag(x)) for x in (size, size**0))
    return Scales(states, size, rows, norms)


def typical_row_lengths(
    system: "System", states: tuple[tuple[Array, Array], ...], of_rate: Array
) -> Array:
    """Return (nc,) the root mean square of `|A_i of_rate|` over states.

    Args:
        system: the mechanism.
        states: (q, v) of each.
        of_rate: (nv, nv) from the rates in whose metric the rows are measured to v.
    """
    if not system.nc:
        return np.zeros(0)
    squares = np.mean(
        [np.sum((_rows(system, q, v) @ of_rate) ** 2, axis=1) for q, v in states], axis=0
    )
    return _without_vanishing(system, np.sqrt(squares))


def _without_vanishing(system: "System", lengths: Array) -> Array:
    """Return the lengths, those of rows that always vanish replaced by the longest beside them."""
    sizes = [equality.size for equality in system.equalities]
    sizes.append(system.nc - sum(sizes))
    longest = np.concatenate(
        [np.full(part.size, part.max(initial=0.0)) for part in np.split(lengths, np.cumsum(sizes))]
    )
    longest[longest == 0] = lengths.max(initial=0.0) or 1.0
    return np.asarray(np.where(lengths > VANISHING * longest, lengths, longest))


def _rows(system: "System", q: Array, v: Array) -> Array:
    values: dict[str, ArrayLike] = {"q": q, "v": v, "t": 0.0}
    return np.asarray(evaluate(system.loop_jacobian, values).full())


def _closed_poses(system: "System", rng: np.random.Generator) -> list[Array]:
    """Return poses at random that Newton's steps have closed; those that stay open if all do.

    The coordinates of given equations have unknown sizes: those of the first poses that close.
    """
    if system.tree is not None or not system.nc:
        return _closed_from(system, rng, np.ones(system.nq))
    first = np.array(_closed_from(system, rng, np.ones(system.nq)))
    size = np.sqrt(np.mean(first**2, axis=0))
    return _closed_from(system, rng, np.where(size > 0, np.sqrt(3.0) * size, 1.0))


def _closed_from(system: "System", rng: np.random.Generator, size: Array) -> list[Array]:
    """Return closed poses; those of given equations are sought inside ±size."""
    if not system.nc:
        return [_random_pose(system, rng, size) for _ in range(SAMPLES)]
    on = np.ones(system.nc) if system.mask is None else np.asarray(system.mask)
    closed: list[Array] = []
    open_poses: list[Array] = []
    for _ in range(TRIALS * SAMPLES):
        q, is_closed = _close(system, _random_pose(system, rng, size), on)
        (closed if is_closed else open_poses).append(q)
        if len(closed) == SAMPLES:
            break
    return closed or open_poses


def _random_pose(system: "System", rng: np.random.Generator, size: Array) -> Array:
    tree = system.tree
    if tree is None:
        return np.asarray(size * rng.uniform(-1.0, 1.0, system.nq))
    length, dq = model_length(tree), np.zeros(tree.nv)
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
    return np.asarray(system.integrate(tree.q0, dq)).ravel()


def _close(system: "System", q: Array, on: Array) -> tuple[Array, bool]:
    """Return the pose that Newton's steps with a line search reach, and whether it is closed."""
    gap = _residual(system, q, on)
    first = np.linalg.norm(gap)
    for _ in range(STEPS):
        if np.linalg.norm(gap) <= CLOSED * first:
            return q, True
        A = on[:, None] * _rows(system, q, np.zeros(system.nv))
        size = _rough_scales(system, A)
        A = A * size
        if not (np.all(np.isfinite(A)) and np.all(np.isfinite(gap))):
            return q, False
        step = -size * (np.linalg.pinv(A, rcond=SAMPLE_RANK_TOL) @ gap)
        for _ in range(HALVINGS):
            ahead = np.asarray(system.integrate(q, step)).ravel()
            residual = _residual(system, ahead, on)
            if np.linalg.norm(residual) < np.linalg.norm(gap):
                break
            step = step / 2
        else:
            return q, False
        q, gap = ahead, residual
    return q, False


def _residual(system: "System", q: Array, on: Array) -> Array:
    values: dict[str, ArrayLike] = {"q": q, "t": 0.0}
    return np.asarray(on * evaluate(system.constraint, values).full().ravel())


def _rough_scales(system: "System", A: Array) -> Array:
    """Return sizes of the coordinates for a step: without a tree, columns of equal length."""
    if system.tree is not None:
        return _tree_scales(system.tree)
    length = np.linalg.norm(A, axis=0)
    return np.asarray(1 / np.where(length > 0, length, 1.0))


def _coordinate_scales(system: "System", poses: list[Array]) -> Array:
    if system.tree is not None:
        return _tree_scales(system.tree)
    return _scales_by_inertia(system, poses)


def _tree_scales(tree: RigidTree) -> Array:
    """Return 1 for rotations and `model_length` for translations."""
    size, length = np.ones(tree.nv), model_length(tree)
    for joint in tree.joints:
        count = {"slide": 1, "free": 3}.get(joint.kind, 0)
        size[joint.dof : joint.dof + count] = length
    return size


def model_length(tree: RigidTree) -> float:
    """Return a length of a model, m: the root mean square of offsets and radii of gyration."""
    squares = []
    for body in tree.bodies[1:]:
        offsets = [body.com] if body.parent == 0 else [body.com, body.pos]
        squares += [float(offset @ offset) for offset in offsets]
        if body.mass > 0:
            squares.append(float(np.trace(body.inertia)) / body.mass)
    squares = [square for square in squares if square > 0]
    return float(np.sqrt(np.mean(squares))) if squares else 1.0


def _scales_by_inertia(system: "System", poses: list[Array]) -> Array:
    """Return coordinates of equal kinetic energy, of the size of the poses' spread.

    A coordinate without inertia gets the scale with which its share in its rows equals that of
    the others.
    """
    inertia = np.mean([np.diag(np.asarray(system.mass_matrix(q))) for q in poses], axis=0)
    spread = np.std(poses, axis=0)
    massive = inertia > 0
    moving = massive & (spread > 0)
    size = np.zeros(system.nv)
    energy = float(np.median((np.sqrt(np.abs(inertia)) * spread)[moving])) if moving.any() else 1.0
    size[massive] = energy / np.sqrt(inertia[massive])
    if massive.all():
        return size
    A2 = np.mean([_rows(system, q, np.zeros(system.nv)) ** 2 for q in poses], axis=0)
    others = A2 @ size**2
    for j in np.flatnonzero(~massive):
        rows = (A2[:, j] > 0) & (others > 0)
        size[j] = np.sqrt(np.median(others[rows] / A2[rows, j])) if rows.any() else 0.0
    size[size == 0] = np.median(size[size > 0]) if np.any(size > 0) else 1.0
    return size
