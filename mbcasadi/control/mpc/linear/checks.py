"""Checks of bounds and outputs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.mpc.linear.model import Array, Output
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import require_each


def bounds(name: str, value: ArrayLike | None, size: int) -> Array:
    """Return (size, 2) bounds, infinite by default.

    Raises:
        ShapeError: another shape, or NaN.
        ProblemError: a lower bound above its upper one.
    """
    given = np.tile([-np.inf, np.inf], (size, 1)) if value is None else np.asarray(value, float)
    if given.shape != (size, 2) or np.any(np.isnan(given)):
        raise ShapeError(f"{name} has shape {given.shape}, expected ({size}, 2), without NaN")
    low, high = given.T
    empty = np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))
    if empty.size:
        i = empty[0]
        raise ProblemError(f"{name}[{i}] is {low[i]} to {high[i]}: empty; expected low <= high")
    return given


def checked(outputs: Sequence[Output], nx: int, nu: int) -> tuple[Output, ...]:
    """Return the outputs with their numbers as arrays of the right shape.

    Raises:
        ShapeError, ProblemError: they are no list, have wrong shapes, or are empty.
    """
    require_each("outputs", outputs, Output)
    return tuple(_checked(output, nx, nu) for output in outputs)


def _checked(output: Output, nx: int, nu: int) -> Output:
    C, D = np.asarray(output.C, dtype=float), np.asarray(output.D, dtype=float)
    ny = len(C) if C.ndim else 0
    if C.shape != (ny, nx) or D.shape != (ny, nu) or not np.all(np.isfinite([*C.flat, *D.flat])):
        raise ShapeError(
            f"output '{output.name}' has C {C.shape} and D {D.shape}, expected (ny, {nx}) and "
            f"(ny, {nu}), finite numbers"
        )
    limits = np.column_stack([np.broadcast_to(x, ny) for x in (output.lower, output.upper)])
    limits = bounds(f"output '{output.name}'", limits, ny)
    prices = np.array([output.linear_penalty, output.quadratic_penalty], dtype=float)
    if not np.all((prices >= 0) & (prices < np.inf)):
        raise ProblemError(
            f"output '{output.name}' has a negative penalty, or none that is a number; expected "
            "none below 0"
        )
    return Output(
        output.name,
        C,
        D,
        limits[:, 0],
        limits[:, 1],
        float(output.linear_penalty),
        float(output.quadratic_penalty),
    )
