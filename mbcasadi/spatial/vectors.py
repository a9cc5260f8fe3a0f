"""3-vectors of scalars that may be numbers or SX.

CasADi simplifies `0 * x`, `1 * x` and `x + 0` while an expression is built, so vectors with
constant zeros and ones cost nothing: whatever vanishes here is absent from the generated C.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.linalg.arithmetic import Scalar, minus, plus, times

Vec3 = tuple[Scalar, Scalar, Scalar]

ZERO3: Vec3 = (0.0, 0.0, 0.0)


def add(a: Vec3, b: Vec3) -> Vec3:
    """Return `a + b`."""
    return (plus(a[0], b[0]), plus(a[1], b[1]), plus(a[2], b[2]))


def subtract(a: Vec3, b: Vec3) -> Vec3:
    """Return `a - b`."""
    return (minus(a[0], b[0]), minus(a[1], b[1]), minus(a[2], b[2]))


def scale(factor: Scalar, a: Vec3) -> Vec3:
    """Return `factor a`."""
    return (times(factor, a[0]), times(factor, a[1]), times(factor, a[2]))


def dot(a: Vec3, b: Vec3) -> Scalar:
    """Return `aᵀ b`."""
    return plus(plus(times(a[0], b[0]), times(a[1], b[1])), times(a[2], b[2]))


def cross(a: Vec3, b: Vec3) -> Vec3:
    """Return `a × b`."""
    return (
        minus(times(a[1], b[2]), times(a[2], b[1])),
        minus(times(a[2], b[0]), times(a[0], b[2])),
        minus(times(a[0], b[1]), times(a[1], b[0])),
    )


def planar_turn(c: Scalar, s: Scalar, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Return `(c x - s y, s x + c y)`, a vector of a plane turned by cosine c and sine s."""
    return minus(times(c, x), times(s, y)), plus(times(s, x), times(c, y))


def scalar(value: Scalar) -> Scalar:
    """Return a number as a Python float, and a symbol or an expression as it is."""
    return value if isinstance(value, ca.SX) else float(value)


def is_zero(value: Scalar) -> bool:
    """Return whether a number is zero; a symbol is not."""
    return value.is_zero() if isinstance(value, ca.SX) else value == 0.0


def vec3(values: Sequence[Scalar] | NDArray[np.float64]) -> Vec3:
    """Return three numbers or expressions as a vector."""
    return (scalar(values[0]), scalar(values[1]), scalar(values[2]))


def scaled(factor: Scalar, array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `factor array`, an array of expressions where the factor is one."""
    if not isinstance(factor, ca.SX):
        return factor * array
    products = np.empty(array.shape, dtype=object)
    for place, value in np.ndenumerate(array):
        products[place] = times(factor, scalar(value))
    return products


def entries(column: ca.SX, first: int = 0) -> Vec3:
    """Return rows `first .. first + 2` of an SX column as a vector."""
    return (column[first], column[first + 1], column[first + 2])


def stack(*vectors: Vec3) -> ca.SX:
    """Return the vectors on top of each other as one sparse column."""
    return ca.sparsify(ca.vertcat(*[x for vector in vectors for x in vector]))
