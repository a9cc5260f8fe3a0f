"""Checks of bounds and outputs."""

from collections.abc import Sequence

import numpy as np

from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.linear.prediction_model import Output
from mbcasadi.shapes import bounds, real_array, require_each


def check_outputs(outputs: Sequence[Output], nx: int, nu: int) -> tuple[Output, ...]:
    """Return the outputs with their numbers as arrays of the right shape.

    Raises:
        ShapeError, ProblemError: they are no list, have wrong shapes, or are empty.
    """
    require_each("outputs", outputs, Output)
    return tuple(_check_output(output, nx, nu) for output in outputs)


def _check_output(output: Output, nx: int, nu: int) -> Output:
    C, D = real_array("C", output.C), real_array("D", output.D)
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
