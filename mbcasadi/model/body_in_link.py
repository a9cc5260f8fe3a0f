"""Twists and accelerations of a link, seen from one of the bodies that are fixed to it."""

from dataclasses import dataclass
from typing import Protocol

from mbcasadi.model.placement import Pose
from mbcasadi.model.recursion import rows_times
from mbcasadi.model.unit_twists import Twist
from mbcasadi.spatial import Mat3, Rotate, Vec3, add, cross, transpose, vec3, vector_to_child


class Field(Protocol):
    """Accelerations `a + U r` of the points of a link, in its axes."""

    @property
    def a(self) -> Vec3:
        """Of the origin, minus gravity, m/s²."""

    @property
    def U(self) -> Mat3:
        """By rows."""


@dataclass(frozen=True)
class BodyInLink:
    """Constant pose of a body in its link's frame.

    All is seen from the body: its parameters about an origin that is far away would lose digits.
    """

    turn: Rotate
    position: Vec3

    @staticmethod
    def of(pose: Pose) -> "BodyInLink":
        """Return that of a pose in numbers."""
        x, y, z = (vec3(row) for row in pose.R)
        return BodyInLink(Rotate((x, y, z)), vec3(pose.p))

    def vector(self, a: Vec3) -> Vec3:
        """Return a vector in the body's axes."""
        return vector_to_child(self.turn, a)

    def twist(self, twist: Twist) -> Twist:
        """Return a twist of the body's frame, in its axes."""
        linear, angular = twist
        moved = add(linear, cross(angular, self.position))
        return self.vector(moved), self.vector(angular)

    def field(self, field: Field) -> tuple[Vec3, Mat3]:
        """Return `Rᵀ (a + U p)` and `Rᵀ U R`, the field about the body's origin in its axes."""
        a = add(field.a, rows_times(field.U, self.position))
        rows = (self.vector(field.U[0]), self.vector(field.U[1]), self.vector(field.U[2]))
        columns = transpose(rows)
        turned = (self.vector(columns[0]), self.vector(columns[1]), self.vector(columns[2]))
        return self.vector(a), transpose(turned)
