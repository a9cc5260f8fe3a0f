"""Elementary motions between two frames, and what they do to vectors and inertias.

A transform from a parent frame to a child frame is a list of steps, each a shift of the origin
or a turn about one coordinate axis. Planar turns cost four products for a vector, and quarter
turns cost nothing, where a full rotation matrix costs nine.
"""

from dataclasses import dataclass

from mbcasadi.linalg.arithmetic import Scalar
from mbcasadi.spatial.moments import Moments
from mbcasadi.spatial.quaternions import Mat3, rotate, rotate_back
from mbcasadi.spatial.vectors import Vec3, add, cross, planar_turn


@dataclass(frozen=True)
class Move:
    """Shift of the origin by a vector, in the axes at hand."""

    by: Vec3


@dataclass(frozen=True)
class Turn:
    """Rotation about one coordinate axis (0, 1, 2) by an angle with this cosine and sine."""

    axis: int
    cos: Scalar
    sin: Scalar


@dataclass(frozen=True)
class Rotate:
    """Rotation by a full matrix, given by its rows."""

    R: Mat3


Step = Move | Turn | Rotate


def vector_to_parent(step: Step, a: Vec3) -> Vec3:
    """Return `R a`: a free vector of the child, in the parent's axes."""
    if isinstance(step, Turn):
        return _planar(step, a, step.sin)
    return a if isinstance(step, Move) else rotate(step.R, a)


def vector_to_child(step: Step, a: Vec3) -> Vec3:
    """Return `Rᵀ a`: a free vector of the parent, in the child's axes."""
    if isinstance(step, Turn):
        return _planar(step, a, -step.sin)
    return a if isinstance(step, Move) else rotate_back(step.R, a)


def wrench_to_parent(step: Step, force: Vec3, moment: Vec3) -> tuple[Vec3, Vec3]:
    """Return force and moment about the parent's origin, from those about the child's."""
    if isinstance(step, Move):
        return force, add(moment, cross(step.by, force))
    return vector_to_parent(step, force), vector_to_parent(step, moment)


def moments_to_parent(step: Step, moments: Moments) -> Moments:
    """Return mass moments about the parent's origin, from those about the child's."""
    if isinstance(step, Move):
        return moments.translate(step.by)
    if isinstance(step, Turn):
        return moments.turn(step.axis, step.cos, step.sin)
    return moments.rotate(step.R)


def _planar(step: Turn, a: Vec3, sine: Scalar) -> Vec3:
    i, j = (step.axis + 1) % 3, (step.axis + 2) % 3
    out: list[Scalar] = list(a)
    out[i], out[j] = planar_turn(step.cos, sine, a[i], a[j])
    return (out[0], out[1], out[2])
