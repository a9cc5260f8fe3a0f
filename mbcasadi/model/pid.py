"""PID servos: the set-point that a limited rate has reached, the integral of the error.

`force = gain c + bias + ki z` while no bound is reached, with `gain = kp + ki h` where the error of
the step h that begins acts already. The rates are those of MuJoCo's steps: `(x_next - x) / h`.
"""

import casadi as ca
import numpy as np

from mbcasadi.description import Actuator
from mbcasadi.description.actuators import Pid


def reached_setpoint(actuator: Actuator, w: ca.SX, act: ca.SX) -> ca.SX:
    """Return c: w, no further from the last one than a step allows.

    A rotation in space takes the turn of w nearest to the last one.

    Args:
        actuator: a PID servo.
        w: what pulls, inside its range.
        act: (na, 1) activation states of the model.
    """
    pid = actuator.pid
    assert pid is not None  # of a servo with a memory
    if pid.reached is None:
        return w
    last, most = act[pid.reached], pid.slew * pid.step
    return ca.fmin(ca.fmax(nearest_turn(actuator.period, w, last), last - most), last + most)


def nearest_turn(period: float, x: ca.SX, to: ca.SX) -> ca.SX:
    """Return that of all `x + k period` which is nearest to a length; x where the period is 0."""
    return x - period * ca.floor((x - to) / period + 0.5) if period else x


def remembered_force(pid: Pid, error: ca.SX, rate: ca.SX, act: ca.SX) -> ca.SX:
    """Return what is added to `gain c + bias`: `ki z`, and the gain of a rate.

    Args:
        pid: the memory.
        error: c - l.
        rate: of the activation that is the set-point; 0 without one.
        act: (na, 1) activation states of the model.
    """
    force = pid.rate_gain * rate
    if pid.integral is not None:
        z = act[pid.integral]
        force += pid.ki * z + bound_excess(pid, z, error)
    return force


def bound_excess(pid: Pid, z: ca.SX, error: ca.SX) -> ca.SX:
    """Return what the bound of the integral adds to `gain c + bias + ki z`; zero inside."""
    return pid.error_gain * (integral_rate(pid, z, error) - error)


def integral_rate(pid: Pid, z: ca.SX, error: ca.SX) -> ca.SX:
    """Return dz/dt: the error, less where z would pass its bound within the step."""
    most = pid.max_integral
    if not most < np.inf:
        return error
    if pid.is_plugin:
        later = z + pid.step * error
        return (ca.fmin(ca.fmax(later, -most), most) - z) / pid.step
    outward = ca.logic_or(ca.logic_and(z >= most, error > 0), ca.logic_and(z <= -most, error < 0))
    return ca.if_else(outward, 0.0, error)


def pid_rates(actuator: Actuator, w: ca.SX, length: ca.SX, act: ca.SX) -> dict[int, ca.SX]:
    """Return the rates of integral and set-point, by the index of their state.

    Args:
        actuator: a PID servo.
        w: what pulls, inside its range.
        length: of the actuator.
        act: (na, 1) activation states of the model.
    """
    pid = actuator.pid
    assert pid is not None  # of a servo with a memory
    c, rates = reached_setpoint(actuator, w, act), {}
    if pid.integral is not None:
        z, error = act[pid.integral], nearest_turn(actuator.period, c, length) - length
        rates[pid.integral] = integral_rate(pid, z, error)
    if pid.reached is not None:
        rates[pid.reached] = (c - act[pid.reached]) / pid.step
    return rates
