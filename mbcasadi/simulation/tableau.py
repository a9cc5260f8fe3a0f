"""Runge-Kutta steps of Dormand and Prince, order 8 with error estimates of order 5 and 3.

The coefficients are SciPy's, from its public class `scipy.integrate.DOP853`. Nothing here
knows a mechanism: `y' = f(t, y)` in a vector space.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853

Array = NDArray[np.float64]
Rate = Callable[[float, Array], Array]

STAGES = int(DOP853.n_stages)
ERROR_EXPONENT = -1.0 / (DOP853.error_estimator_order + 1)
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
"""Usual limits of a step-size controller: what is predicted is not fully used."""

ERROR_3_WEIGHT = 0.01
"""Share of the estimate of order 3 in the denominator of the estimate [Hairer, II.10]."""


@dataclass(frozen=True)
class Step:
    """One trial step from `(t, y)` to `(t + h, y_next)`.

    Attributes:
        t, h: start and size, s.
        y, y_next: states.
        K: (STAGES + 1, n) rates at the stages; the last one is the rate at the end.
    """

    t: float
    h: float
    y: Array
    y_next: Array
    K: Array


def trial(rate: Rate, t: float, y: Array, first: Array, h: float) -> Step:
    """Return the step of size h whose first rate `f(t, y)` is known."""
    K = np.empty((STAGES + 1, y.size))
    K[0] = first
    for i in range(1, STAGES):
        K[i] = rate(t + DOP853.C[i] * h, y + h * (DOP853.A[i, :i] @ K[:i]))
    y_next = y + h * (DOP853.B @ K[:STAGES])
    K[STAGES] = rate(t + h, y_next)
    return Step(t, h, y, y_next, K)


def error_norm(step: Step, scale: Array) -> float:
    """Return the estimated error over `scale`, root mean square: at most 1 is accepted."""
    five = (DOP853.E5 @ step.K) / scale
    three = (DOP853.E3 @ step.K) / scale
    five2, three2 = five @ five, three @ three
    if five2 == 0 and three2 == 0:
        return 0.0
    return float(abs(step.h) * five2 / np.sqrt((five2 + ERROR_3_WEIGHT * three2) * scale.size))


def next_size(h: float, error: float, *, rejected: bool) -> float:
    """Return the size of the next trial; after a rejection it does not grow."""
    grow = 1.0 if rejected else GROW
    factor = grow if error == 0 else SAFETY * error**ERROR_EXPONENT
    return h * min(grow, max(SHRINK, factor))


def first_size(y: Array, first: Array, scale: Array, longest: float) -> float:
    """Return a careful first step: a hundredth of the time in which y changes by itself."""
    size, speed = np.abs(y / scale).max(initial=0.0), np.abs(first / scale).max(initial=0.0)
    careful = 1e-6 if size < 1e-5 or speed < 1e-5 else 0.01 * size / speed  # as in SciPy
    return float(min(careful, longest))


def dense(rate: Rate, step: Step) -> Callable[[float], Array]:
    """Return the interpolant of order 7 over the step, as a function of time.

    It costs three more rates.
    """
    h, y = step.h, step.y
    K = np.empty((STAGES + 1 + len(DOP853.C_EXTRA), y.size))
    K[: STAGES + 1] = step.K
    for j, (row, c) in enumerate(zip(DOP853.A_EXTRA, DOP853.C_EXTRA, strict=True)):
        s = STAGES + 1 + j
        K[s] = rate(step.t + c * h, y + h * (row[:s] @ K[:s]))
    change = step.y_next - y
    F = np.vstack(
        [
            change,
            h * K[0] - change,
            2 * change - h * (K[STAGES] + K[0]),
            h * (DOP853.D @ K),
        ]
    )

    def at(t: float) -> Array:
        x = (t - step.t) / h
        value = np.zeros_like(y)
        for i, term in enumerate(F[::-1]):
            value = (value + term) * (x if i % 2 == 0 else 1 - x)
        return y + value

    return at
