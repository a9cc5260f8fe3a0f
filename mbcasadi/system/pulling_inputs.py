"""What the gains of the actuators multiply: controls, or the activations that they drive."""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import model
from mbcasadi.model.actuation import memory_force
from mbcasadi.model.pid import reached_setpoint
from mbcasadi.model.transmission import actuator_length
from mbcasadi.system.system import System

Array = NDArray[np.float64]


def pulling_inputs(system: System, q: ca.SX, v: ca.SX, u: ca.SX, act: ca.SX | None) -> ca.SX:
    """Return w (nu, 1) of `B w + f_0`: the activation where there is one, else u, unclipped.

    With `actearly` it is the activation of the model's next time step. What a PID servo remembers
    counts as a part of its set-point, `c + ki z / gain`.

    Args:
        system: the mechanism.
        q, v: (nq, 1), (nv, 1) state.
        u: (nu, 1) controls.
        act: (na, 1) activations; None where the system has none.
    """
    if system.tree is None or act is None or not system.na:
        return u
    w = model.acting_inputs(system.tree, system.actuators, q, v, u, act)
    pulling = []
    for i, actuator in enumerate(system.actuators):
        if actuator.pid is None:
            pulling.append(u[i] if actuator.act is None else w[i])
            continue
        length = actuator_length(system.tree, actuator, q)
        c = w[i] if actuator.act is not None else reached_setpoint(actuator, u[i], act)
        added = memory_force(actuator, length, c, u[i], act)
        pulling.append(c + added / actuator.gain[0] if actuator.gain[0] else c)
    return ca.vertcat(*pulling)


def resting_state(system: System, w: Sequence[float] | Array, q: Array) -> tuple[Array, Array]:
    """Return controls (nu,) and activations (na,) at rest that pull with w.

    A filter and a muscle settle at their control; an integrator keeps what it holds with zero; the
    current of a motor at rest is its voltage over the winding's resistance. The set-point of a PID
    servo with an integral is its length, and the integral carries the load up to its bound.

    Args:
        system: the mechanism.
        w: (nu,) inputs of the gains.
        q: (nq,) the pose.
    """
    u, act = np.array(w, dtype=float) * pulling_shares(system), np.zeros(system.na)
    for i, actuator in enumerate(system.actuators):
        c, pid = w[i], actuator.pid
        if pid is not None and pid.integral is not None and system.tree is not None:
            length = float(actuator_length(system.tree, actuator, ca.SX(ca.DM(q))))
            force = actuator.gain[0] * (w[i] - length)
            act[pid.integral] = np.clip(force / pid.ki, -pid.max_integral, pid.max_integral)
            rest = force - pid.ki * act[pid.integral]  # a bound that is reached takes no more error
            c = length + (rest / (actuator.gain[0] - pid.error_gain) if rest else 0.0)
            u[i] = c * (actuator.dynamics != "integrator")
        if pid is not None and pid.reached is not None:
            act[pid.reached] = c
        if actuator.act is not None:
            act[actuator.act] = c
    return u, act


def pulling_shares(system: System) -> Array:
    """Return (nu,) `u / w` at rest: 1, zero for integrators, R for the current of a motor."""
    shares = np.ones(system.nu)
    for i, actuator in enumerate(system.actuators):
        if actuator.act is not None and actuator.dynamics == "integrator":
            shares[i] = 0.0
        elif actuator.act is not None and actuator.motor is not None:
            shares[i] = actuator.motor.resistance
    return shares


def pulling_ranges(system: System) -> Array:
    """Return (nu, 2) of what pulls at rest: the controls' ranges, and those of activations."""
    shares, ranges = pulling_shares(system), np.array(system.limits.ctrl, dtype=float)
    held = shares == 0.0
    ranges[held] = (-np.inf, np.inf)
    ranges[~held] /= shares[~held, None]
    for i, actuator in enumerate(system.actuators):
        if actuator.act is not None and actuator.act_range is not None:
            low, high = actuator.act_range
            ranges[i] = max(ranges[i, 0], low), min(ranges[i, 1], high)
        pid = actuator.pid
        if pid is not None and pid.integral is not None:
            most = abs(pid.ki / actuator.gain[0]) * pid.max_integral
            ranges[i] = ranges[i, 0] - most, ranges[i, 1] + most
    return ranges


def activation_names(system: System) -> tuple[str, ...]:
    """Return the name of each activation state: its actuator's, and what it is in a motor."""
    names = [f"act{k}" for k in range(system.na)]
    for actuator in system.actuators:
        if actuator.act is not None:
            names[actuator.act] = actuator.name
        motor, pid = actuator.motor, actuator.pid
        if pid is not None:
            places = {"integral": pid.integral, "setpoint": pid.reached}
            for what, place in places.items():
                if place is not None:
                    names[place] = f"{actuator.name}.{what}"
        if motor is None:
            continue
        parts = {
            "integral": motor.controller,
            "temperature": motor.thermal,
            "bristle": motor.bristle,
        }
        for what, part in parts.items():
            if part is not None and part.act is not None:
                names[part.act] = f"{actuator.name}.{what}"
    return tuple(names)
