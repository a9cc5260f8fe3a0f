"""Laws of time for a motion from rest, with continuous acceleration."""

import casadi as ca

from mbcasadi.argument_kinds import checked


@checked
def smooth_step(t: ca.SX, start: float, duration: float) -> ca.SX:
    """Return `10 x³ - 15 x⁴ + 6 x⁵`, `x = (t - start) / duration` clipped to [0, 1].

    It has the least jerk of all motions from 0 to 1 that begin and end at rest, without
    acceleration. A duration of zero gives a jump.
    """
    if duration == 0.0:
        return ca.if_else(t >= start, ca.SX(1), ca.SX(0))
    x = ca.fmin(ca.fmax((t - start) / duration, 0), 1)
    return x**3 * (10 - 15 * x + 6 * x**2)


@checked
def ramped_time(t: ca.SX, start: float, ramp: float) -> ca.SX:
    """Return the integral of `smooth_step(t, start, ramp)`: s, steady from `start + ramp` on.

    It is `ramp (2.5 x⁴ - 3 x⁵ + x⁶)` until then, and lags by half of the ramp afterwards.
    """
    after = ca.fmax(t - start - ramp, 0)
    x = ca.fmin(ca.fmax((t - start) / ramp, 0), 1) if ramp > 0 else ca.SX(0)
    return ramp * x**4 * (2.5 - 3 * x + x**2) + after
