"""Joints and distances with limits, predicted over a delay.

With a delay of d ticks the acceleration of a tick acts from `t + d h` on, h being its length. A
bound that keeps a limit has to hold from the state that is there then. It follows from the measured
one with the accelerations of the d ticks before, which z remembers:

    v += h a,   q += h v + c h² a   for each of these ticks, the oldest first.

A gap follows in the same way from its rate and `g̈ = J a + J̇ v`, with J and J̇ of the measured state:
what is remembered are accelerations of coordinates, not of pairs. A tick without a solution counts
as one without acceleration. c is ½, or what steps of MuJoCo make of it, see `advance_share`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca

from mbcasadi.control.inverse_dynamics.limits.braking_rule import Tick
from mbcasadi.control.inverse_dynamics.servos.servo_map import UNDAMPED_EULER
from mbcasadi.control.inverse_dynamics.servos.servos import ServoPlant
from mbcasadi.system.coordinates import rates

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


def planned_tick(setup: "Setup") -> Tick:
    """Return the tick in which an acceleration of this tick acts."""
    return Tick(setup.period, advance_share(setup.plant_of_servos))


def predicted(
    y: ca.SX, rate: ca.SX, accelerations: Sequence[ca.SX], tick: Tick
) -> tuple[ca.SX, ca.SX]:
    """Return coordinates and their rates after ticks with these accelerations."""
    h = tick.length
    for a in accelerations:
        y, rate = y + h * rate + tick.share * h**2 * a, rate + h * a
    return y, rate


def planned_dofs(setup: "Setup") -> tuple[int, ...]:
    """Return the indices in v of what z remembers: all for distances, else of limited joints."""
    if setup.limited_distances is not None:
        return tuple(range(setup.system.nv))
    return () if setup.limited_joints is None else setup.limited_joints.dofs


def plan_names(setup: "Setup") -> tuple[str, ...]:
    """Return entries of z: accelerations that are planned but do not act yet, oldest first."""
    names, dofs = rates(setup.system).components, planned_dofs(setup)
    return tuple(
        f"planned.{names[dof]}.{tick}" for tick in range(setup.delay_ticks, 0, -1) for dof in dofs
    )


def plan_memory(setup: "Setup", memory: ca.SX) -> ca.SX:
    """Return these entries of the state behind the safe output."""
    return memory[setup.memory_places["plans"], 0]


def plans(setup: "Setup", memory: ca.SX) -> list[ca.SX]:
    """Return the accelerations (nv,) that act until the tick that is planned, the first one first.

    Those that are not remembered are zero.
    """
    held, dofs = plan_memory(setup, memory), list(planned_dofs(setup))
    k, found = len(dofs), []
    for tick in range(setup.delay_ticks if k else 0):
        a = ca.SX.zeros(setup.system.nv)
        a[dofs] = held[tick * k : (tick + 1) * k, 0]
        found.append(a)
    return found


def predicted_state(setup: "Setup", memory: ca.SX, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return q and v whose limited joints are those at the start of the tick that is planned.

    Args:
        setup: the options.
        memory: the state behind the safe output.
        q, v: (nq,), (nv,) as they were measured.
    """
    limited = setup.limited_joints
    if limited is None:
        return q, v
    places, dofs = list(limited.places), list(limited.dofs)
    of_joints = [a[dofs, 0] for a in plans(setup, memory)]
    at, rate = predicted(q[places, 0], v[dofs, 0], of_joints, planned_tick(setup))
    q, v = ca.SX(q), ca.SX(v)
    q[places], v[dofs] = at, rate
    return q, v


def next_plans(setup: "Setup", planned: ca.SX, a: ca.SX, solved: ca.SX) -> ca.SX:
    """Return the entries for the next tick.

    Args:
        setup: the options.
        planned: those of this tick.
        a: (nv,) acceleration of its solution.
        solved: whether there is one.
    """
    dofs = list(planned_dofs(setup))
    return ca.vertcat(planned[len(dofs) :, 0], ca.if_else(solved, a[dofs, 0], 0))
