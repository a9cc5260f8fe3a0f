"""The active rows and tangent planes of a cone program, with their factor.

The method is described in `cone_program.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.description.qp_stages import (
    CONE_ROWS,
    INDEPENDENT,
    LEAST_COSINE,
    UNBOUNDED,
    ZERO_ROW,
)

Array = NDArray[np.float64]


class Plane(NamedTuple):
    """One plane `normal · x >= bound`, of unit length: a row, or a tangent plane of a cone.

    Attributes:
        row: of A; the first one of a cone.
        side: 1 at the lower bound, -1 at the upper; 1 for a tangent plane.
        normal, bound: in the unit of x.
        length: of the row that it is made from.
        direction: (2,) cosine and sine of the tangent plane's angle, None for a row.
    """

    row: int
    side: int
    normal: Array
    bound: float
    length: float
    direction: Array | None


@dataclass
class Progress:
    """The active planes with their factor: normals are `Q R`, `Rᵀ y = bounds`, `x = Q y`."""

    A: Array
    lower: Array
    upper: Array
    length: Array
    cones: int
    unit: float = 2.0
    planes: list[Plane] = field(default_factory=list)
    Q: Array = field(default_factory=lambda: np.zeros((0, 0)))
    R: Array = field(default_factory=lambda: np.zeros((0, 0)))
    y: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def linear(self) -> int:
        """Number of rows that belong to no cone."""
        return int(self.A.shape[0]) - CONE_ROWS * self.cones

    @property
    def firsts(self) -> range:
        """The first row of each cone that exists."""
        return range(self.linear, self.A.shape[0], CONE_ROWS)

    @property
    def x(self) -> Array:
        """(n,) the nearest point of the active planes."""
        return np.asarray(self.unit * (self.Q @ self.y))

    @property
    def multipliers(self) -> Array:
        """Multipliers of the active planes, in the solver's unit."""
        return back_substitution(self.R, self.y)

    def hold(self, planes: list[Plane]) -> None:
        """Make these planes the active ones."""
        self.planes = planes
        normals = np.array([plane.normal for plane in planes]).reshape(-1, self.A.shape[1])
        self.Q, self.R = np.linalg.qr(normals.T)
        self.y = forward_substitution(self.R, np.array([plane.bound for plane in planes]))

    def row(self, row: int, side: int) -> Plane:
        """Return a side of a row."""
        size = side / self.length[row]
        bound = self.lower[row] if side > 0 else self.upper[row]
        return Plane(
            row, side, size * self.A[row], size * bound / self.unit, self.length[row], None
        )

    def tangent(self, first: int, direction: Array) -> Plane | None:
        """Return the tangent plane of a cone in a direction; None where it has no normal."""
        weights = np.array([1.0, -direction[0], -direction[1]])
        rows = slice(first, first + CONE_ROWS)
        normal = weights @ self.A[rows]
        length = float(np.linalg.norm(normal))
        size = float(np.linalg.norm(self.length[rows]))
        if size == 0 or length <= ZERO_ROW * size:
            return None
        bound = float(weights @ self.lower[rows]) / (length * self.unit)
        return Plane(first, 1, normal / length, bound, length, direction)

    def inside(self, first: int, x: Array) -> Array:
        """Return (3,) s of a cone."""
        rows = slice(first, first + CONE_ROWS)
        return np.asarray(self.A[rows] @ x - self.lower[rows])

    def tangents(self, first: int) -> list[int]:
        """Return the places of the active tangent planes of a cone."""
        return [i for i, p in enumerate(self.planes) if p.direction is not None and p.row == first]


def unit_vector(angle: float) -> Array:
    """Return (2,) cosine and sine."""
    return np.array([np.cos(angle), np.sin(angle)])


def has_bound(p: Progress, row: int, side: int) -> bool:
    """Return whether a row is bounded below (side 1) or above (-1)."""
    return bool(p.lower[row] > -UNBOUNDED if side > 0 else p.upper[row] < UNBOUNDED)


def enter_where_independent(p: Progress, plane: Plane) -> None:
    """Make a plane active unless it depends on the active ones."""
    if len(p.planes) < p.A.shape[1] and split(p, plane)[1] > INDEPENDENT:
        p.hold([*p.planes, plane])


def let_go(p: Progress) -> None:
    """Drop planes that pull the wrong way, until none does; an equality turns instead."""
    while p.planes:
        multipliers = p.multipliers
        place = int(np.argmin(multipliers))
        if multipliers[place] >= 0:
            return
        plane = p.planes[place]
        rest = [each for i, each in enumerate(p.planes) if i != place]
        if plane.direction is None and p.lower[plane.row] == p.upper[plane.row]:
            turned = p.row(plane.row, -plane.side)
            p.hold([*p.planes[:place], turned, *p.planes[place + 1 :]])
        else:
            p.hold(rest)


def split(p: Progress, plane: Plane) -> tuple[Array, float]:
    """Return h and the length of what is left of a plane's normal, `normal = Q h + rest`."""
    h = p.Q.T @ plane.normal
    rest = plane.normal - p.Q @ h
    more = p.Q.T @ rest
    return h + more, float(np.linalg.norm(rest - p.Q @ more))


def are_wide(directions: Sequence[Array | None]) -> bool:
    """Return whether tangent planes are far from each other: then they meet at the apex only."""
    first, last = directions[0], directions[-1]
    return first is not None and last is not None and float(first @ last) <= LEAST_COSINE


def back_substitution(R: Array, v: Array) -> Array:
    """Return `R⁻¹ v`, R upper triangular."""
    return np.asarray(scipy.linalg.solve_triangular(R, v) if v.size else v)


def forward_substitution(R: Array, v: Array) -> Array:
    """Return `R⁻ᵀ v`."""
    return np.asarray(scipy.linalg.solve_triangular(R, v, trans="T") if v.size else v)
