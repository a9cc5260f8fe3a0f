"""Joints from their encoders: held over lost samples, with rates where these are not measured.

A rate that is not measured is that of the stationary Kalman filter of a joint with white
acceleration of density s, noise σ and period T, here the tick's own [Kalata 1984]:

    r = y - (x + T w),   x ← x + T w + α r,   w ← w + β/T r,
    λ = s √T³ / σ,   β = ¼ (λ² + 4 λ - λ √(λ² + 8 λ)),   α = 1 - r²,   r = ¼ (4 + λ - √(λ² + 8 λ))
"""

from dataclasses import dataclass
from typing import Generic, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.estimation.noise import Encoders
from mbcasadi.linalg import Sym


@dataclass(frozen=True)
class Gains(Generic[Sym]):
    """α and β."""

    alpha: Sym
    beta: Sym


class Joints(NamedTuple):
    """Joints of a tick, (m,) each.

    Attributes:
        q: rad or m, as measured; predicted where a sample is not valid.
        rate: rad/s or m/s.
        filtered: of the memory; `q` where rates are measured.
    """

    q: ca.SX
    rate: ca.SX
    filtered: ca.SX


def rate_gains(encoders: Encoders, dt: Sym) -> Gains[Sym]:
    """Return the gains of rates that are not measured; they are stable with any dt."""
    ratio = encoders.acceleration * ca.sqrt(dt) * dt / encoders.noise
    r = (4 + ratio - ca.sqrt(ratio**2 + 8 * ratio)) / 4
    return Gains(1 - r**2, (ratio**2 + 4 * ratio - ratio * ca.sqrt(ratio**2 + 8 * ratio)) / 4)


def rate_deviation(encoders: Encoders, period: float) -> float:
    """Return the stationary standard deviation of a rate that is not measured, rad/s or m/s."""
    gains = rate_gains(encoders, ca.DM(period))
    alpha, beta = float(gains.alpha), float(gains.beta)
    variance = encoders.noise**2 * beta * (2 * alpha - beta) / (2 * (1 - alpha) + 1e-12)
    return float(np.sqrt(variance) / period)


SMOOTHING, LARGEST_LAG = 0.1, 0.1
"""s, and rad or m by which smooth positions lag at most."""


def smoothed(q: Sym, before: Sym, started: Sym, dt: Sym) -> Sym:
    """Return positions (m,) without what changes within `SMOOTHING`, next to q.

    Slopes with the noise of the very sample by which a filter corrects give a product that is no
    zero in the mean, and a state that only changes of slopes observe drifts by it. Those at these
    positions hardly have it.

    Args:
        q: (m,) positions of the tick.
        before: (m,) of the last tick.
        started: whether there was one.
        dt: s.
    """
    x = before + dt / (SMOOTHING + dt) * (q - before)
    x = ca.fmin(ca.fmax(x, q - LARGEST_LAG), q + LARGEST_LAG)
    return ca.if_else(started, x, q)


def joints_of(
    encoders: Encoders,
    y: tuple[ca.SX, ca.SX],
    valid: ca.SX,
    before: tuple[ca.SX, ca.SX],
    started: ca.SX,
    dt: ca.SX,
) -> Joints:
    """Return positions and rates of the joints.

    Args:
        encoders: and whether they measure rates.
        y: (m,) measured positions and (m,) or (0,) rates.
        valid: (m,) which of them to use.
        before: (m,) filtered positions and rates of the last tick.
        started: whether there was one.
        dt: s.
    """
    x, w = before
    predicted = x + dt * w
    q = ca.if_else(valid, y[0], ca.if_else(started, predicted, x))
    if encoders.rate_noise is not None:
        return Joints(q, ca.if_else(valid, y[1], w), q)
    gains = rate_gains(encoders, dt)
    r = ca.if_else(valid, y[0] - predicted, 0)
    rate = ca.if_else(started, w + gains.beta / dt * r, 0)
    return Joints(q, rate, ca.if_else(started, predicted + gains.alpha * r, q))
