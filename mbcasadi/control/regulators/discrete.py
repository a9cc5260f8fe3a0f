"""Exact hold: a linear system from one sample to the next, the control constant between them."""

from dataclasses import replace

import numpy as np
import scipy

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_positive


@checked
def discretize(linear: Linearization, period: float) -> Linearization:
    """Return `x_next = dfdx x + dfdu δu + drift` with the exact hold over one period.

        exp([dfdx dfdu drift; 0 0 0] · period) = [· · ·; 0 I]

    It needs no inverse of dfdx, so it holds for integrators and for mechanisms that drift.

    Args:
        linear: a continuous system.
        period: sample time, s.

    Raises:
        ProblemError: the system is discrete already, or a period that is not positive.
    """
    require_positive(period=period)
    if linear.period is not None:
        raise ProblemError(
            f"the linear system is discrete already, with period {linear.period} s; expected the "
            "continuous one of linearize()"
        )
    dfdx, dfdu, drift = hold_matrices(linear.dfdx, linear.dfdu, linear.drift, period)
    return replace(linear, dfdx=dfdx, dfdu=dfdu, drift=drift, period=period)


def hold_matrices(
    dfdx: Array, dfdu: Array, drift: Array, period: float
) -> tuple[Array, Array, Array]:
    """Return the three blocks of one sample, `x_next = A x + B u + d`.

    Args:
        dfdx, dfdu, drift: (nx, nx), (nx, nu), (nx,) of the continuous system.
        period: sample time, s.
    """
    nx, nu = dfdu.shape
    block = np.zeros((nx + nu + 1, nx + nu + 1))
    block[:nx] = np.column_stack([dfdx, dfdu, drift])
    out = scipy.linalg.expm(block * period)
    return out[:nx, :nx], out[:nx, nx : nx + nu], out[:nx, -1]
