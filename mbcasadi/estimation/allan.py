"""Noise of an inertial sensor from a log at rest: the Allan deviation [IEEE Std 952-1997, annex C].

White noise of density N and a bias that walks with density K have

    σ²(τ) = N² / τ + K² τ / 3

and a bias instability shows as a floor between both. N and K follow from least squares of ln σ².
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import real_array, require_positive
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]

LEAST_SAMPLES = 20
"""Of a log whose Allan deviation says something."""


@summarised
class AllanDeviation(NamedTuple):
    """The Allan deviation of one signal.

    Attributes:
        tau: (k,) averaging times, s.
        deviation: (k,) in the unit of the signal.
        pairs: (k,) number of means without overlap, less one: the smaller, the less certain.
    """

    tau: Array
    deviation: Array
    pairs: NDArray[np.int64]


@summarised
class InertialNoise(NamedTuple):
    """Noise of a sensor.

    Attributes:
        density: N of the white noise, unit/√Hz.
        walk: K of the bias, unit/s/√Hz; an upper bound where the log is too short to show it.
        instability: least Allan deviation over 0.664, the flicker noise's floor, unit.
    """

    density: float
    walk: float
    instability: float


FLOOR = np.sqrt(2 * np.log(2) / np.pi)
"""Allan deviation of a flicker noise, as a share of its instability."""


@checked
def allan_deviation(samples: ArrayLike, period: float, *, octave: int = 4) -> AllanDeviation:
    """Return the overlapping Allan deviation of a signal.

    With its integral θ, `σ²(mT) = Σ (θ_{k+2m} - 2 θ_{k+m} + θ_k)² / (2 m² T² (n - 2m + 1))`.

    Args:
        samples: (n,) means over a period, at rest.
        period: T, s.
        octave: averaging times in each factor of two.

    Raises:
        ShapeError: another shape, NaN, or fewer than 20 samples.
    """
    require_positive(period=period, octave=octave)
    x = real_array("samples", samples)
    if x.ndim != 1 or x.size < LEAST_SAMPLES or not np.all(np.isfinite(x)):
        raise ShapeError(
            f"samples has shape {x.shape}; expected (n,) finite numbers, n >= {LEAST_SAMPLES}"
        )
    theta = np.concatenate([[0.0], np.cumsum(x - x.mean())])
    most = np.log2(x.size / 2)
    steps = np.unique(np.round(2.0 ** np.arange(0, most + 1e-9, 1 / octave)).astype(int))
    variances = [
        np.mean((theta[2 * m :] - 2 * theta[m:-m] + theta[: -2 * m]) ** 2) / (2.0 * m**2)
        for m in steps
    ]
    return AllanDeviation(steps * period, np.sqrt(variances), x.size // steps - 1)


@checked
def inertial_noise(samples: ArrayLike, period: float) -> InertialNoise:
    """Return the noise of a gyroscope or an accelerometer from a log at rest.

    The largest of several axes is that of an `Imu`. Hours show the walk of a bias; a minute shows
    the white noise. Temperature should have settled.

    Args:
        samples: (n,) or (n, axes) means over a period, rad/s or m/s².
        period: s.

    Raises:
        ShapeError: another shape, NaN, or fewer than 20 samples.
        ProblemError: a signal that does not change.
    """
    x = real_array("samples", samples)
    if x.ndim not in (1, 2) or not x.size:
        raise ShapeError(f"samples has shape {x.shape}; expected (n,) or (n, axes)")
    axes = [_axis_noise(column, period) for column in (x.T if x.ndim == 2 else [x])]
    return InertialNoise(*np.max(axes, axis=0).tolist())


def _axis_noise(x: Array, period: float) -> InertialNoise:
    from scipy.optimize import least_squares  # heavy, and needed for a fit only

    curve = allan_deviation(x, period)
    if not np.all(curve.deviation > 0):
        raise ProblemError("the samples do not change; expected the noise of a sensor at rest")
    tau, log_variance = curve.tau, 2 * np.log(curve.deviation)
    weights = np.sqrt(np.maximum(curve.pairs, 1))

    def miss(numbers: Array) -> Array:
        model = np.logaddexp(numbers[0] - np.log(tau), numbers[1] + np.log(tau / 3))
        return np.asarray(weights * (model - log_variance))

    white, last = log_variance[0] + np.log(tau[0]), log_variance[-1] - np.log(tau[-1] / 3)
    fit = least_squares(miss, [white, last], loss="soft_l1")
    density, walk = np.exp(fit.x / 2)
    return InertialNoise(float(density), float(walk), float(curve.deviation.min() / FLOOR))
