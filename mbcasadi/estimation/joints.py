"""Joints from their encoders: held over lost samples, with rates where these are not measured.

A rate that is not measured is that of the stationary Kalman filter of a joint with white
acceleration of density s, noise σ and period T [Kalata 1984]:

    r = y - (x + T w),   x ← x + T w + α r,   w ← w + β/T r,
    λ = s √T³ / σ,   β = ¼ (λ² + 4 λ - λ √(λ² + 8 λ)),   α = 1 - r²,   r = ¼ (4 + λ - √(λ² + 8 λ))
"""

from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.estimation.noise import Encoders


class Gains(NamedTuple):
    """α and β, and the stationary standard deviation of the rate, rad/s."""

    alpha: float
    beta: float
    rate: float


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


def rate_gains(encoders: Encoders, period: float) -> Gains:
    """Return the gains of rates that are not measured."""
    ratio = encoders.acceleration * period**1.5 / encoders.noise
    root = np.sqrt(ratio**2 + 8 * ratio)
    alpha = 1 - ((4 + ratio - root) / 4) ** 2
    beta = 2 * (2 - alpha) - 4 * np.sqrt(1 - alpha)
    variance = encoders.noise**2 * beta * (2 * alpha - beta) / (2 * (1 - alpha) + 1e-12)
    return Gains(float(alpha), float(beta), float(np.sqrt(variance) / period))


def joints_of(
    encoders: Encoders,
    period: float,
    y: tuple[ca.SX, ca.SX],
    valid: ca.SX,
    before: tuple[ca.SX, ca.SX],
    started: ca.SX,
    dt: ca.SX,
) -> Joints:
    """Return positions and rates of the joints.

    Args:
        encoders: and whether they measure rates.
        period: s, the usual dt.
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
    gains = rate_gains(encoders, period)
    r = ca.if_else(valid, y[0] - predicted, 0)
    rate = ca.if_else(started, w + gains.beta / period * r, 0)
    return Joints(q, rate, ca.if_else(started, predicted + gains.alpha * r, q))
