"""Noise of an estimator from a log: the numbers under which the log is most likely.

    Λ(θ) = Σ_k ln p(y_k | y_1 … y_{k-1}; θ) = -½ Σ_k (|e_k|²_{S_k⁻¹} + ln det 2π S_k)

the innovations e and their covariances S being those of the estimator (Schweppe 1965). θ > 0 is
searched as ln θ; deviations of ln θ are those of the curvature of Λ at its maximum.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.estimates import estimate_log
from mbcasadi.estimation.estimator import LIKELIHOOD, Estimator
from mbcasadi.estimation.logged_inputs import LoggedInputs
from mbcasadi.shapes import require_positive, require_whole
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class FittedNoise:
    """Noise that fits a log.

    Attributes:
        numbers: by name.
        deviation: relative standard deviation of each: of its logarithm. Infinite for a number that
            the log says nothing about.
        likelihood: log-likelihood of the log, before and after.
        estimator: with these numbers.
    """

    numbers: Mapping[str, float]
    deviation: Mapping[str, float]
    likelihood: tuple[float, float]
    estimator: Estimator

    def _summary(self) -> dict[str, object]:
        return {
            name: f"{x:.3g} ±{self.deviation[name]:.0%}" for name, x in self.numbers.items()
        } | {"likelihood": [round(x, 1) for x in self.likelihood]}


FARTHEST = 12.0
"""Bound of |ln θ/θ₀|: six orders of magnitude up or down, less one."""

DIFFERENCE, STEP = 1e-2, 0.2
"""Steps in ln θ by which slope and curvature are differenced."""

FLAT = 0.1
"""Slope of the log-likelihood in ln θ at which the search ends."""


LEAST_CURVATURE = 1e-2
"""Of the log-likelihood in ln θ, below which a log says nothing: ten times, or a tenth."""

LEAST_SHARE = 1e-2
"""Of a direction that a log says nothing about, from which on a number is unknown."""


@checked
def fit_noise(
    make: Callable[..., Estimator],
    logged: LoggedInputs,
    start: Mapping[str, float],
    *,
    settle: float = 0.0,
    runs: int = 200,
) -> FittedNoise:
    """Return the noise of an estimator under which a log is most likely.

    Example:
        >>> def make(gyro: float, slip: float) -> Estimator:
        ...     imu, footing = Imu("trunk", gyro_noise=gyro), Footing(slip=slip)
        ...     return base_estimator(
        ...         system, feet, imu=imu, footing=footing, likelihood=True
        ...     )
        >>> fit_noise(make, logged, {"gyro": 5e-5, "slip": 5e-3})  # doctest: +SKIP

    Args:
        make: (**numbers) → estimator with `likelihood=True`, always of the same inputs.
        logged: inputs, of `logged_inputs`. Contacts that slip and samples that are wrong should be
            rare: a rejected one counts as if it were at its gate.
        start: positive numbers to begin with, by name.
        settle: s at the beginning that do not count.
        runs: estimators that are tried at most.

    Raises:
        ProblemError: no numbers, one that is not positive or that `make` does not take, or an
            estimator without a likelihood.
    """
    from scipy.optimize import minimize  # heavy, and needed for a fit only

    require_whole(1, runs=runs)
    _require_start(make, start)
    names, theta0 = list(start), np.log(list(start.values()))
    counts = logged.t >= logged.t[0] + settle

    def built(x: Array) -> Estimator:
        estimator = make(**dict(zip(names, np.exp(theta0 + x).tolist(), strict=True)))
        if LIKELIHOOD not in estimator.outputs:
            raise ProblemError(f"'{estimator.name}' has no likelihood; expected likelihood=True")
        return estimator

    def loss(x: Array) -> float:
        return -float(estimate_log(built(x), logged).likelihood[counts].sum())

    found = minimize(
        loss,
        np.zeros(len(names)),
        method="L-BFGS-B",
        bounds=[(-FARTHEST, FARTHEST)] * len(names),
        options={"eps": DIFFERENCE, "gtol": FLAT, "ftol": 1e-9, "maxfun": runs},
    )
    numbers = dict(zip(names, np.exp(theta0 + found.x).tolist(), strict=True))
    deviation = dict(zip(names, _deviations(loss, found.x).tolist(), strict=True))
    likelihood = (-loss(np.zeros(len(names))), -float(found.fun))
    return FittedNoise(numbers, deviation, likelihood, built(found.x))


def _require_start(make: Callable[..., Estimator], start: Mapping[str, float]) -> None:
    """Raise `ProblemError` unless there are positive numbers, which `make` takes."""
    if not start:
        raise ProblemError("start is empty; expected a number to fit, with its first value")
    require_positive(**start)
    try:
        inspect.signature(make).bind(**start)
    except TypeError as error:
        given = ", ".join(start)
        raise ProblemError(f"make takes no numbers {given}: {error}") from error


def _deviations(loss: Callable[[Array], float], x: Array) -> Array:
    """Return standard deviations (n,) by the curvature of a log-likelihood's negative."""
    n, H = len(x), np.zeros((len(x), len(x)))
    E = STEP * np.eye(n)
    for i in range(n):
        for j in range(i + 1):
            signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
            gaps = [s * r * loss(x + s * E[i] + r * E[j]) for s, r in signs]
            H[i, j] = H[j, i] = sum(gaps) / (4 * STEP**2)
    values, vectors = np.linalg.eigh(H)
    blind = values <= LEAST_CURVATURE
    variances = vectors**2 @ np.where(blind, 0.0, 1 / np.where(blind, 1.0, values))
    unknown = (vectors**2 @ blind) > LEAST_SHARE
    return np.asarray(np.where(unknown, np.inf, np.sqrt(variances)))
