"""Samples of a horizon that lie on the switches of a gait, however the horizon slides.

Nominal samples are `τ_k = h_0 + … + h_{k-1}` ahead of the first one. The earliest switch behind the
sample before, up to the middle of the interval behind τ_k, takes its place; the first sample stays.
A switch within a quarter of a nominal interval behind a sample counts as one with it. So the number
of samples never changes, and no interval is shorter than that quarter.
"""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.mpc.legged.gait import Walk

SHORTEST = 0.25
"""Least length of an interval over its nominal one."""

NEVER = 1e6
"""s, time to a switch that does not come."""

AT_ONCE = 1e-9
"""s up to which two moments are one."""


def switches_ahead(walk: Walk, t: ca.SX, horizon: float) -> list[ca.SX]:
    """Return the times from t to each touch-down and lift-off within a horizon, s, in no order.

    Those of swings that do not take place are `NEVER`.
    """
    gait, ahead = walk.gait, list[ca.SX]()
    if gait.duty >= 1:
        return ahead
    strides = range(int(np.ceil(horizon / gait.period)) + 1)
    for offset in gait.offsets:
        for phase, since_lift in ((gait.duty, 0.0), (0.0, gait.flight)):
            passed = (t - walk.begin) / gait.period + offset - phase
            first = gait.period * (ca.ceil(passed) - passed)
            for m in strides:
                lift = t + first + m * gait.period - since_lift
                takes_place = lift >= walk.begin - AT_ONCE
                if walk.end is not None:
                    takes_place = ca.logic_and(takes_place, lift < walk.end - AT_ONCE)
                ahead.append(ca.if_else(takes_place, first + m * gait.period, NEVER))
    return ahead


def gait_samples(walk: Walk, t: ca.SX, lengths: NDArray[np.float64]) -> list[ca.SX | float]:
    """Return the times of the samples from the first one on, s.

    Args:
        walk: of the feet.
        t: time of the first sample, s.
        lengths: (N,) nominal lengths of the intervals, s.
    """
    nominal = np.concatenate([[0.0], np.cumsum(lengths)])
    switches = switches_ahead(walk, t, float(nominal[-1]))
    samples: list[ca.SX | float] = [0.0]
    for k, h in enumerate(lengths):
        begin = samples[-1] + SHORTEST * h
        end = nominal[k + 1] + (lengths[k + 1] / 2 if k + 1 < len(lengths) else 0.0)
        sample = ca.SX(NEVER)
        for switch in switches:
            inside = ca.logic_and(switch >= begin - AT_ONCE, switch < end - AT_ONCE)
            sample = ca.fmin(sample, ca.if_else(inside, switch, NEVER))
        samples.append(ca.if_else(sample < NEVER, sample, nominal[k + 1]))
    return samples
