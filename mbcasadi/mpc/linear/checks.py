"""Checks of bounds and outputs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.linear.prediction_model import Array, Output
from mbcasadi.shapes import bounds, real_array, require_each


def check_outputs(outputs: Sequence[Output], nx: int, nu: int) -> tuple[Output, ...]:
    """Return the outputs with their numbers as arrays of the right shape.

    Raises:
        ShapeError, ProblemError: they are no list, have wrong shapes, or are empty.
    """
    require_each("outputs", outputs, Output)
    return tuple(_check_output(output, nx, nu) for output in outputs)


def end_of(label: str, value: ArrayLike, count: int) -> Array:
    """Return the (count,) lower or upper ends of rows from one number, or one for each.

    Raises:
        ShapeError: another number of them.
    """
    given = real_array(label, value)
    if given.shape not in {(), (count,)}:
        raise ShapeError(f"{label} has shape {given.shape}, expected a number or ({count},)")
    return np.broadcast_to(given, (count,))


def _check_output(output: Output, nx: int, nu: int) -> Output:
    C, D = real_array("C", output.C), real_array("D", output.D)
    ny = len(C) if C.ndim else 0
    if C.shape != (ny, nx) or D.shape != (ny, nu) or not np.all(np.isfinite([*C.flat, *D.flat])):
        raise ShapeError(
            f"output '{output.name}' has C {C.shape} and D {D.shape}, expected (ny, {nx}) and "
            f"(ny, {nu}), finite numbers"
        )
    limits = np.column_stack([end_of("lower", output.lower, ny), end_of("upper", output.upper, ny)])
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
