"""What the gains of the actuators multiply: controls, or the activations that they drive."""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import model
from mbcasadi.system.system import System

Array = NDArray[np.float64]


def pulling_inputs(system: System, q: ca.SX, v: ca.SX, u: ca.SX, act: ca.SX | None) -> ca.SX:
    """Return w (nu, 1) of `B w + f_0`: the activation where there is one, else u, unclipped.

    With `actearly` it is the activation of the model's next time step.

    Args:
        system: the mechanism.
        q, v: (nq, 1), (nv, 1) state.
        u: (nu, 1) controls.
        act: (na, 1) activations; None where the system has none.
    """
    if system.tree is None or act is None or not system.na:
        return u
    w = model.acting_inputs(system.tree, system.actuators, q, v, u, act)
    stateful = [actuator.act is not None for actuator in system.actuators]
    return ca.vertcat(*(w[i] if has_state else u[i] for i, has_state in enumerate(stateful)))


def resting_state(system: System, w: Sequence[float] | Array) -> tuple[Array, Array]:
    """Return controls (nu,) and activations (na,) at rest that pull with w.

    A filter and a muscle settle at their control; an integrator keeps what it holds with zero; the
    current of a motor at rest is its voltage over the winding's resistance.

    Args:
        system: the mechanism.
        w: (nu,) inputs of the gains.
    """
    u, act = np.array(w, dtype=float) * pulling_shares(system), np.zeros(system.na)
    for i, actuator in enumerate(system.actuators):
        if actuator.act is not None:
            act[actuator.act] = w[i]
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
    return ranges


def activation_names(system: System) -> tuple[str, ...]:
    """Return the name of each activation state: its actuator's, and what it is in a motor."""
    names = [f"act{k}" for k in range(system.na)]
    for actuator in system.actuators:
        if actuator.act is not None:
            names[actuator.act] = actuator.name
        motor = actuator.motor
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
