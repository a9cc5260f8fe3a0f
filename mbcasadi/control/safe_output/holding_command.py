"""The command that holds each actuator where it is, from the state of this tick.

An actuator gives the force `p = g u + b(l, l')`. At rest at the length l the load p_s of
`static_load.py` is carried by

    u = (p_s - b(l, 0)) / g,

for a position servo (g = kp, b = -kp l) the length itself and `p_s / kp`, without which it would
sag by so much; for a velocity servo zero and `p_s / kv`; for a motor `p_s / g`. A motor has nothing
that holds or damps it: it gets `-p_k / g` as well, p_k the force that all inertia M needs for the
acceleration k v, so that the motion fades as exp(-k t). This takes energy away, `k vᵀ M v` where
motors drive all coordinates. The set-point of a PID servo is the length alone: its integral carries
the load. With an activation state u is the activation that a filter settles at,
and zero for an integrator.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.control.safe_output.static_load import Array, static_forces
from mbcasadi.description import Actuator
from mbcasadi.system import System
from mbcasadi.system.actuator_model import ActuatorModel, actuator_model, reciprocal
from mbcasadi.system.ranges import Ranges, clip

DAMPING_RATE = 20.0
"""1/s at which the damping of a motor stops what it moves."""

LARGEST_STEP = 0.5
"""Share of a velocity that the damping may remove in one period."""


class HoldingCommand(NamedTuple):
    """`u = load + own` (nu,): the load, and the length of a servo or the damping of a motor."""

    load: ca.SX
    own: ca.SX


def is_motor(actuator: Actuator) -> bool:
    """Return whether neither the length nor the speed has an effect on the force."""
    return not any(actuator.bias[1:]) and not any(actuator.gain[1:])


def motors_of(system: System) -> Array:
    """Return (nu,) one for each motor, zero for a servo; given by equations all are motors."""
    if not system.actuators:
        return np.ones(system.nu)
    return np.array([float(is_motor(actuator)) for actuator in system.actuators])


def damping_rate(period: float) -> float:
    """Return the rate of the damping, 1/s, for a sample time, s."""
    return min(DAMPING_RATE, LARGEST_STEP / period)


def holding_command(
    system: System,
    ranges: Ranges,
    period: float,
    state: tuple[ca.SX, ca.SX],
    rows: tuple[ca.SX, Array],
    actuator_mass: Array,
) -> HoldingCommand:
    """Return the command at a state.

    Args:
        system: the mechanism.
        ranges: of controls and actuator forces.
        period: sample time, s.
        state: q (nq,), v (nv,).
        rows: active rows (m, nv) of constraints and contacts, and the inertia (m,) that each sees.
        actuator_mass: (nu,) inertia that each actuator sees.
    """
    (q, v), still = state, ca.SX(system.nv, 1)
    at_rest = actuator_model(system, ranges, period, q, still, None)
    load = system.bias_force(q, still) - system.passive_force(q, still) - at_rest.rest
    M = system.mass_matrix(q)
    loads = ca.horzcat(load, damping_rate(period) * (M @ v))
    p = static_forces(loads, M, at_rest.moment, *rows, actuator_mass)
    forces, braking = clip(p[:, 0], ranges.force), ca.DM(motors_of(system)) * p[:, 1]
    per_force = reciprocal(at_rest.gain)
    own = -(at_rest.bias + braking) * per_force
    keep = _accepts_level(system.actuators, at_rest)
    load = keep * forces * per_force * _carries_load(system, at_rest)
    return HoldingCommand(ca.densify(load), ca.densify(keep * own))


def _carries_load(system: System, model: ActuatorModel) -> ca.DM:
    """Return (nu,) zero for PID servos: their integral finds the load, at the pose as set-point."""
    load = ca.DM.ones(model.gain.numel())
    for i, actuator in enumerate(system.actuators):
        if actuator.pid is not None and actuator.pid.integral is not None:
            load[i] = 0
    return load


def _accepts_level(actuators: Sequence[Actuator], model: ActuatorModel) -> ca.DM:
    """Return (nu,) zero for integrators, whose control is a rate."""
    if not actuators:
        return ca.DM.ones(model.gain.numel())
    return ca.DM([float(actuator.dynamics != "integrator") for actuator in actuators])
