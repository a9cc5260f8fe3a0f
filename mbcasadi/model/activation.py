"""Activation states of actuators: their rates, and their values a time step later."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.description import Actuator, RigidTree
from mbcasadi.model.dc_motor import bristle_decay, motor_rates
from mbcasadi.model.muscle import muscle_rate
from mbcasadi.model.pid import pid_rates
from mbcasadi.model.transmission import actuator_length, moment_row

Range = tuple[float, float] | None
LEAST_DECAY = 1e-15  # 1/s; MuJoCo's mjMINVAL


def act_dot(
    tree: RigidTree,
    actuators: Sequence[Actuator],
    q: ca.SX,
    v: ca.SX,
    u: ca.SX,
    act: ca.SX,
) -> ca.SX:
    """Return the rate of the activation states, (na, 1).

    `u` for an integrator, `(u - act)/time_constant` for filters, `(u - act)/tau(u - act, act)` for
    muscles, those of `dc_motor.py` and `pid.py` for motors and PID servos; u is clipped. An
    activation's own range is held where it is integrated, as in MuJoCo, not here.

    Args:
        tree, q, v: mechanism and state; only motors and PID servos depend on them.
        actuators: in the order of the controls.
        u: (nu, 1) controls.
        act: (na, 1) activation states.
    """
    rates = ca.SX(act.numel(), 1)
    clipped = clipped_controls(actuators, u)
    for i, actuator in enumerate(actuators):
        if actuator.motor is not None:
            row = moment_row(tree, actuator, q)
            length, own = actuator_length(tree, actuator, q), _own(actuator, clipped)
            for k, rate in motor_rates(actuator.motor, own, length, row @ v, act).items():
                rates[k] = rate
            continue
        if actuator.act is not None:
            rates[actuator.act] = activation_rate(actuator, clipped[i], act[actuator.act])
        if actuator.pid is not None:
            w = clipped[i] if actuator.act is None else act[actuator.act]
            length = actuator_length(tree, actuator, q)
            for k, rate in pid_rates(actuator, w, length, act).items():
                rates[k] = rate
    return rates


def next_act(
    tree: RigidTree,
    actuators: Sequence[Actuator],
    q: ca.SX,
    v: ca.SX,
    u: ca.SX,
    act: ca.SX,
    step: float,
) -> ca.SX:
    """Return the activation states a time step later, (na, 1), as MuJoCo's `mj_nextActivation`.

    Euler's rule; exact for `filterexact`, the current and the bristles of a motor; within the
    ranges of activations.

    Args:
        tree, actuators, q, v, u, act: as in `act_dot`.
        step: s.
    """
    rates = act_dot(tree, actuators, q, v, u, act)
    later = act + step * rates
    for actuator in actuators:
        if actuator.motor is not None:
            later = _later_motor(tree, actuator, (q, v), rates, act, later, step)
            continue
        for k in _states(actuator):  # MuJoCo's rule of the activation counts for all of them
            if actuator.dynamics == "filterexact":
                tau = actuator.time_constant
                later[k] = act[k] + rates[k] * tau * (1.0 - ca.exp(-step / tau))
            later[k] = clip(later[k], actuator.act_range)
    return later


def _states(actuator: Actuator) -> list[int]:
    """Return the indices of the states of an actuator that is no motor."""
    pid = actuator.pid
    places = [actuator.act] + ([] if pid is None else [pid.integral, pid.reached])
    return [k for k in places if k is not None]


def _later_motor(
    tree: RigidTree,
    actuator: Actuator,
    state: tuple[ca.SX, ca.SX],
    rates: ca.SX,
    act: ca.SX,
    later: ca.SX,
    step: float,
) -> ca.SX:
    motor, later = actuator.motor, ca.SX(later)
    assert motor is not None  # of an actuator with one
    if motor.current is not None:
        k, tau = motor.current, motor.electrical_time
        later[k] = act[k] + rates[k] * tau * (1.0 - ca.exp(-step / tau))
    if motor.bristle is not None:
        q, v = state
        rate, k = moment_row(tree, actuator, q) @ v, motor.bristle.act
        decay = bristle_decay(motor.bristle, rate)
        factor, moves = ca.exp(decay * step), ca.fabs(decay) > LEAST_DECAY
        held = ca.if_else(moves, (factor - 1.0) / ca.if_else(moves, decay, 1.0), step)
        later[k] = factor * act[k] + held * rate
    if motor.controller is not None and motor.controller.act is not None:
        most, k = motor.controller.max_integral, motor.controller.act
        later[k] = clip(later[k], (-most, most) if most > 0.0 else None)
    return later


def clipped_controls(actuators: Sequence[Actuator], u: ca.SX) -> ca.SX:
    """Return the controls inside their ranges, (nu, 1)."""
    each = [clip(u[i], actuator.ctrl_range) for i, actuator in enumerate(actuators)]
    return ca.vertcat(ca.SX(0, 1), *each)


def _own(actuator: Actuator, u: ca.SX) -> ca.SX:
    assert actuator.motor is not None  # of an actuator with one
    return ca.vertcat(ca.SX(0, 1), *(u[k] for k in actuator.motor.controls))


def activation_rate(actuator: Actuator, u: ca.SX, act: ca.SX) -> ca.SX:
    """Return the rate of the activation of an integrator, a filter or a muscle."""
    if actuator.dynamics == "integrator":
        return u
    if actuator.muscle_times is not None:
        return muscle_rate(actuator.muscle_times, u, act)
    return (u - act) / actuator.time_constant


def clip(x: ca.SX, limits: Range) -> ca.SX:
    """Return x inside a range, or x where there is none."""
    if limits is None:
        return x
    return ca.fmin(ca.fmax(x, limits[0]), limits[1])
