"""Joints with limits, predicted over a delay.

With a delay of d ticks the acceleration of a tick acts from `t + d h` on, h being its length. A
bound that keeps a joint before its stop has to hold from the state that it has then. It follows
from the measured one with the accelerations of the d ticks before, which z remembers:

    v += h a,   q += h v + c h² a   for each of these ticks, the oldest first.

A tick without a solution counts as one without acceleration. c is ½, or what steps of MuJoCo make
of it, see `advance_share`.
"""

from typing import TYPE_CHECKING

import casadi as ca

from mbcasadi.control.inverse_dynamics.servos.servo_map import UNDAMPED_EULER
from mbcasadi.control.inverse_dynamics.servos.servos import ServoPlant

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup

STEPPED = ("euler", UNDAMPED_EULER, "implicit", "implicitfast", "discrete")
"""Rules that advance the position by the velocity at the end of their step."""


def advance_share(plant: ServoPlant) -> float:
    """Return c of the position `q + h v + c h² a` at the end of a tick: ½, or more in MuJoCo.

    Args:
        plant: what steps the joints.
    """
    if plant.rule not in STEPPED:
        return 0.5
    return 0.5 * (1.0 + plant.timestep / plant.period)


def joint_memory_names(setup: "Setup") -> tuple[str, ...]:
    """Return entries of z: accelerations that are planned but do not act yet, oldest first."""
    limited = setup.limited_joints
    names = () if limited is None else limited.names
    return tuple(
        f"planned.{name}.{tick}" for tick in range(setup.delay_ticks, 0, -1) for name in names
    )


def joint_memory(setup: "Setup", memory: ca.SX) -> ca.SX:
    """Return these entries of the state behind the safe output."""
    return memory[setup.memory_places["plans"], 0]


def predicted_state(setup: "Setup", memory: ca.SX, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return q and v whose limited joints are those at the start of the tick that is planned.

    Args:
        setup: the options.
        memory: the state behind the safe output.
        q, v: (nq,), (nv,) as they were measured.
    """
    limited, planned = setup.limited_joints, joint_memory(setup, memory)
    if limited is None or not planned.numel():
        return q, v
    h, c = setup.period, advance_share(setup.plant_of_servos)
    places, dofs, k = list(limited.places), list(limited.dofs), len(limited.names)
    place, speed = q[places, 0], v[dofs, 0]
    for tick in range(setup.delay_ticks):
        a = planned[tick * k : (tick + 1) * k, 0]
        place, speed = place + h * speed + c * h**2 * a, speed + h * a
    q, v = ca.SX(q), ca.SX(v)
    q[places], v[dofs] = place, speed
    return q, v


def next_joint_memory(setup: "Setup", planned: ca.SX, a: ca.SX, solved: ca.SX) -> ca.SX:
    """Return the entries for the next tick.

    Args:
        setup: the options.
        planned: those of this tick.
        a: (nv,) acceleration of its solution.
        solved: whether there is one.
    """
    limited = setup.limited_joints
    assert limited is not None
    latest = ca.if_else(solved, a[list(limited.dofs), 0], 0)
    return ca.vertcat(planned[len(limited.names) :, 0], latest)
