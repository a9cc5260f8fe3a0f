"""Runge-Kutta steps of Dormand and Prince, order 8 with error estimates of order 5 and 3.

The coefficients are SciPy's, from its public class `scipy.integrate.DOP853`. Nothing here
depends on a mechanism: `y' = f(t, y)` in a vector space.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rate = Callable[[float, Array], Array]

STAGES = 12
ERROR_EXPONENT = -1.0 / 8
"""The step size goes with the error to this power: the error estimate is of order 7."""

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
"""Usual limits of a step-size controller: what is predicted is not fully used."""

ERROR_3_WEIGHT = 0.01
"""Share of the estimate of order 3 in the denominator of the estimate [Hairer, II.10]."""

NEGLIGIBLE = 1e-5
"""Size that is too small to derive a first step from, in allowed errors; speed, in those per unit
time. As in SciPy."""

SHORT_FIRST_STEP = 1e-6
"""First step where size or speed is negligible, in units of time; as in SciPy."""


@dataclass(frozen=True)
class Coefficients:
    """Butcher tableau, error estimates and interpolant.

    Attributes:
        A, B, C: of the step, (STAGES, STAGES), (STAGES,), (STAGES,).
        E3, E5: (STAGES + 1,) error estimates of order 3 and 5.
        D: (4, STAGES + 4) highest terms of the interpolant.
        A_extra, C_extra: (3, STAGES + 4), (3,) further stages of the interpolant.
    """

    A: Array
    B: Array
    C: Array
    E3: Array
    E5: Array
    D: Array
    A_extra: Array
    C_extra: Array


@functools.cache
def coefficients() -> Coefficients:
    """Return the coefficients; SciPy is imported when they are first used."""
    from scipy.integrate import DOP853

    return Coefficients(
        A=DOP853.A,
        B=DOP853.B,
        C=DOP853.C,
        E3=DOP853.E3,
        E5=DOP853.E5,
        D=DOP853.D,
        A_extra=DOP853.A_EXTRA,
        C_extra=DOP853.C_EXTRA,
    )


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


def trial_step(rate: Rate, t: float, y: Array, first_rate: Array, h: float) -> Step:
    """Return one step from the state y.

    Args:
        rate: (t, y) → `y'`.
        t: s, start of the step.
        y: (n,) state at the start.
        first_rate: (n,) `rate(t, y)`, known already.
        h: s, size of the step.
    """
    tableau = coefficients()
    K = np.empty((STAGES + 1, y.size))
    K[0] = first_rate
    for i in range(1, STAGES):
        K[i] = rate(t + tableau.C[i] * h, y + h * (tableau.A[i, :i] @ K[:i]))
    y_next = y + h * (tableau.B @ K[:STAGES])
    K[STAGES] = rate(t + h, y_next)
    return Step(t, h, y, y_next, K)


def error_norm(step: Step, scale: Array) -> float:
    """Return the estimated error over `scale`, root mean square: at most 1 is accepted."""
    tableau = coefficients()
    five = (tableau.E5 @ step.K) / scale
    three = (tableau.E3 @ step.K) / scale
    five2, three2 = five @ five, three @ three
    if five2 == 0 and three2 == 0:
        return 0.0
    return float(abs(step.h) * five2 / np.sqrt((five2 + ERROR_3_WEIGHT * three2) * scale.size))


def next_size(h: float, error: float, *, rejected: bool) -> float:
    """Return the size of the next trial; after a rejection it does not grow."""
    grow = 1.0 if rejected else GROW
    factor = grow if error == 0 else SAFETY * error**ERROR_EXPONENT
    return h * min(grow, max(SHRINK, factor))


def first_size(y: Array, first_rate: Array, scale: Array, longest: float, time: float) -> float:
    """Return a careful first step: a hundredth of the time in which y changes by itself.

    Args:
        y: (n,) state, or the size of each entry.
        first_rate: (n,) its rate.
        scale: (n,) error that is allowed in each entry.
        longest: s, upper limit.
        time: s, unit of time of the motion.
    """
    size, change = (np.abs(x / scale).max(initial=0.0) for x in (y, time * first_rate))
    careful = SHORT_FIRST_STEP if min(size, change) < NEGLIGIBLE else 0.01 * size / change
    return float(min(careful * time, longest))


def interpolant(rate: Rate, step: Step) -> Callable[[float], Array]:
    """Return the interpolant of order 7 over the step, as a function of time.

    It costs three more rates.
    """
    tableau = coefficients()
    h, y = step.h, step.y
    K = np.empty((STAGES + 1 + len(tableau.C_extra), y.size))
    K[: STAGES + 1] = step.K
    for j, (row, c) in enumerate(zip(tableau.A_extra, tableau.C_extra, strict=True)):
        s = STAGES + 1 + j
        K[s] = rate(step.t + c * h, y + h * (row[:s] @ K[:s]))
    change = step.y_next - y
    F = np.vstack(
        [
            change,
            h * K[0] - change,
            2 * change - h * (K[STAGES] + K[0]),
            h * (tableau.D @ K),
        ]
    )

    def at(t: float) -> Array:
        x = (t - step.t) / h
        value = np.zeros_like(y)
        for i, term in enumerate(F[::-1]):
            value = (value + term) * (x if i % 2 == 0 else 1 - x)
        return y + value

    return at
