"""Muscles: force by length and speed, and the dynamics of their activation.

`F = -F_0 (act FL(L) FV(V) + FP(L))`: a muscle pulls, it shortens its length. The curves are
piecewise quadratic and once differentiable (MuJoCo, computation chapter, "Muscle actuators", after
Millard et al. 2013); at a joint of two pieces the second derivative is one-sided.
"""

import casadi as ca

from mbcasadi.description.actuators import MuscleCurves, MuscleTimes

LEAST = 1e-15  # MuJoCo's lower bound of what it divides by (mjMINVAL)
REST, SLOPE = 0.5, 1.5  # of the time constants' dependence on the activation


def muscle_gain(curves: MuscleCurves, length: ca.SX, rate: ca.SX) -> ca.SX:
    """Return `-F_0 FL(L) FV(V)`, the force of a unit of activation.

    Args:
        curves: of the muscle.
        length, rate: of the actuator, m or rad, and per second.
    """
    L = _normalised(curves, length)
    V = rate / _least(optimal_length(curves) * curves.vmax)
    return -curves.force * _force_by_length(curves, L) * _force_by_speed(curves, V)


def muscle_bias(curves: MuscleCurves, length: ca.SX) -> ca.SX:
    """Return `-F_0 FP(L)`: zero up to L = 1, half a parabola to the middle, then linear."""
    L = _normalised(curves, length)
    middle = 0.5 * (1.0 + curves.longest)
    x, beyond = _share(L - 1.0, middle - 1.0), _share(L - middle, middle - 1.0)
    stretched = ca.if_else(middle >= L, 0.5 * x * x, 0.5 + beyond)
    return -curves.force * curves.passive * ca.if_else(L <= 1.0, 0.0, stretched)


def muscle_rate(times: MuscleTimes, u: ca.SX, act: ca.SX) -> ca.SX:
    """Return `d act/dt = (u - act) / tau(u - act, act)`, u inside 0 to 1.

    Args:
        times: time constants.
        u, act: control and activation.
    """
    excess = _unit(u) - act
    return excess / ca.fmax(muscle_time(times, excess, act), LEAST)


def muscle_time(times: MuscleTimes, excess: ca.SX, act: ca.SX) -> ca.SX:
    """Return tau, s: that of rising or of falling, or a smooth blend over the width.

    Args:
        times: time constants.
        excess: `u - act`.
        act: activation.
    """
    scale = REST + SLOPE * _unit(act)
    rising, falling = times.activation * scale, times.deactivation / scale
    if not times.width:
        return ca.if_else(excess > 0.0, rising, falling)
    return falling + (rising - falling) * _sigmoid(excess / times.width + 0.5)


def optimal_length(curves: MuscleCurves) -> float | ca.SX:
    """Return L0, m or rad, the length of greatest force."""
    (shortest, longest), (lower, upper) = curves.length_range, curves.operating_range
    return (longest - shortest) / _least(upper - lower)


def _normalised(curves: MuscleCurves, length: ca.SX) -> ca.SX:
    """Return L."""
    away = length - curves.length_range[0]
    return curves.operating_range[0] + away / _least(optimal_length(curves))


def _force_by_length(curves: MuscleCurves, L: ca.SX) -> ca.SX:
    """Return FL: a bump over (shortest, longest), 1 at L = 1, of four half parabolas."""
    low, high = curves.shortest, curves.longest
    left, right = 0.5 * (low + 1.0), 0.5 * (1.0 + high)
    rise, before = _share(L - low, left - low), _share(1.0 - L, 1.0 - left)
    after, fall = _share(L - 1.0, right - 1.0), _share(high - L, high - right)
    upper = ca.if_else(right >= L, 1.0 - 0.5 * after * after, 0.5 * fall * fall)
    lower = ca.if_else(left >= L, 0.5 * rise * rise, 1.0 - 0.5 * before * before)
    inside = ca.logic_and(low <= L, high >= L)
    return ca.if_else(inside, ca.if_else(L <= 1.0, lower, upper), 0.0)


def _force_by_speed(curves: MuscleCurves, V: ca.SX) -> ca.SX:
    """Return FV: 0 up to V = -1, 1 at rest, `stretched` from `V = stretched - 1` on."""
    most, knee = curves.stretched, curves.stretched - 1.0
    gap = knee - V
    lengthening = ca.if_else(knee >= V, most - gap * gap / _least(knee), most)
    shortening = ca.if_else(V <= -1.0, 0.0, (V + 1.0) * (V + 1.0))
    return ca.if_else(V <= 0.0, shortening, lengthening)


def _share(x: ca.SX, whole: float) -> ca.SX:
    return x / _least(whole)


def _least(x: float | ca.SX) -> ca.SX:
    return ca.fmax(x, LEAST)


def _unit(x: ca.SX) -> ca.SX:
    return ca.fmin(ca.fmax(x, 0.0), 1.0)


def _sigmoid(x: ca.SX) -> ca.SX:
    """Return MuJoCo's sigmoid, `6 x⁵ - 15 x⁴ + 10 x³` inside 0 to 1, constant outside."""
    s = _unit(x)
    return s * s * s * (3.0 * s * (2.0 * s - 5.0) + 10.0)
