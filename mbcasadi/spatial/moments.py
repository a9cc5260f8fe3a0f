"""Mass moments of a rigid body: mass, first and second moment about a frame's origin.

The ten parameters are `m = ∫ dm`, `s = ∫ r dm`, `E = ∫ r rᵀ dm`. The rotational inertia about
the origin is `trace(E) 1 - E`. Second moments are used instead of inertias because they
transform like `r rᵀ` and vanish for mass that lies on a coordinate plane.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.linalg.arithmetic import Scalar, plus, times
from mbcasadi.spatial.quaternions import Mat3, rotate
from mbcasadi.spatial.vectors import (
    ZERO3,
    Vec3,
    add,
    cross,
    planar_turn,
    scale,
    scaled,
)

PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
INDEX: Mapping[tuple[int, int], int] = {
    pair: k for k, (i, j) in enumerate(PAIRS) for pair in ((i, j), (j, i))
}
ZERO6: tuple[Scalar, ...] = (0.0,) * 6


@dataclass(frozen=True)
class Moments:
    """Mass moments about the origin of a frame, in its axes.

    Attributes:
        mass: kg.
        first: (3,) first moment s, kg m.
        second: E as (xx, yy, zz, xy, xz, yz), kg m².
    """

    mass: Scalar = 0.0
    first: Vec3 = ZERO3
    second: tuple[Scalar, ...] = ZERO6

    def __add__(self, other: "Moments") -> "Moments":
        """Return the moments of both bodies together."""
        second = tuple(plus(a, b) for a, b in zip(self.second, other.second, strict=True))
        return Moments(plus(self.mass, other.mass), add(self.first, other.first), second)

    def translate(self, by: Vec3) -> "Moments":
        """Return the moments about an origin that lies at `-by`: every point gains `by`."""
        first = add(self.first, scale(self.mass, by))
        # r rᵀ gains by sᵀ + s byᵀ + m by byᵀ; with s_new = s + m by that is by sᵀ + s_new byᵀ.
        second = tuple(
            plus(e, plus(times(by[i], self.first[j]), times(first[i], by[j])))
            for e, (i, j) in zip(self.second, PAIRS, strict=True)
        )
        return Moments(self.mass, first, second)

    def turn(self, axis: int, c: Scalar, s: Scalar) -> "Moments":
        """Return `R s`, `R E Rᵀ` for a turn about a coordinate axis."""
        i, j = (axis + 1) % 3, (axis + 2) % 3
        E = self.second
        ii, jj, ij, ik, jk = (INDEX[p] for p in ((i, i), (j, j), (i, j), (i, axis), (j, axis)))
        second, first = list(E), list(self.first)
        if isinstance(c, float) and isinstance(s, float) and c * s == 0.0:
            even = s == 0.0
            second[ii], second[jj] = (E[ii], E[jj]) if even else (E[jj], E[ii])
            second[ij] = E[ij] if even else -E[ij]
        else:
            swing = s * (E[ii] - E[jj]) + c * (E[ij] + E[ij])
            second[ii], second[jj] = E[ii] - s * swing, E[jj] + s * swing
            second[ij] = c * swing - E[ij]
        second[ik], second[jk] = planar_turn(c, s, E[ik], E[jk])
        first[i], first[j] = planar_turn(c, s, self.first[i], self.first[j])
        return Moments(self.mass, (first[0], first[1], first[2]), tuple(second))

    def rotate(self, R: Mat3) -> "Moments":
        """Return `R s`, `R E Rᵀ` for a full rotation matrix, given by rows."""
        half = [rotate(R, self.row(k)) for k in range(3)]  # half[k][i] = (R E)_ik
        full = [rotate(R, (half[0][i], half[1][i], half[2][i])) for i in range(3)]
        return Moments(self.mass, rotate(R, self.first), tuple(full[i][j] for i, j in PAIRS))

    def row(self, i: int) -> Vec3:
        """Return row i of E."""
        E = self.second
        return (E[INDEX[i, 0]], E[INDEX[i, 1]], E[INDEX[i, 2]])

    def inertia_column(self, k: int) -> Vec3:
        """Return column k of the rotational inertia `trace(E) 1 - E`."""
        others = [self.second[i] for i in range(3) if i != k]
        column = [-x for x in self.row(k)]
        column[k] = others[0] + others[1]
        return (column[0], column[1], column[2])

    def translation_wrench(self, k: int) -> tuple[Vec3, Vec3]:
        """Return force and moment of a unit linear acceleration along axis k."""
        axis = _unit(k)
        return scale(self.mass, axis), cross(self.first, axis)

    def rotation_wrench(self, k: int) -> tuple[Vec3, Vec3]:
        """Return force and moment of a unit angular acceleration about axis k."""
        return cross(_unit(k), self.first), self.inertia_column(k)


def _unit(k: int) -> Vec3:
    return (float(k == 0), float(k == 1), float(k == 2))


def body_moments(
    mass: Scalar, com: NDArray[np.float64], inertia: NDArray[np.float64]
) -> tuple[Scalar, NDArray[np.float64], NDArray[np.float64]]:
    """Return (m, s, E) about the body frame from the inertia about the centre of mass.

    Args:
        mass: kg.
        com: (3,) centre of mass, m.
        inertia: (3, 3) rotational inertia about `com`, kg m². Any of these may hold expressions.
    """
    E_com = scaled(0.5 * np.trace(inertia), np.eye(3)) - inertia
    return mass, scaled(mass, com), E_com + scaled(mass, np.outer(com, com))
