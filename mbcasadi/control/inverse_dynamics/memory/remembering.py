"""What a tick leaves in z for the next one; the order is that of `parts.py`."""

from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.contacts.force_feedback import Integrated, next_integral
from mbcasadi.control.inverse_dynamics.contacts.load_ramp import next_unloaded
from mbcasadi.control.inverse_dynamics.limits.actuator_limits import LastForce, slowed
from mbcasadi.control.inverse_dynamics.limits.predicted_motion import next_plans
from mbcasadi.control.inverse_dynamics.memory.last_force import next_force
from mbcasadi.control.inverse_dynamics.memory.observer import Observed, learned_state
from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.inverse_dynamics.servos.servo_dynamics import next_memory
from mbcasadi.control.inverse_dynamics.servos.servos import servo_indices
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.system.actuator_model import ActuatorModel

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup
    from mbcasadi.control.inverse_dynamics.scaling import ProblemScales

Values = dict[str, ca.SX]


def remembered_values(setup: "Setup", problem: Problem) -> Values:
    """Return what the next state is made from, by name; nothing where z has no memory."""
    held = problem.remembered
    values: Values = {}
    if held.observed is not None:
        parts = held.observed._asdict() | {"speed": problem.v, "M": problem.dynamics.M}
        values |= {f"observed.{name}": value for name, value in parts.items()}
    if held.planned.numel():
        values |= {"planned.memory": held.planned}
    if held.integrated is not None:
        values |= {f"integral.{name}": x for name, x in held.integrated._asdict().items()}
    if setup.load_ramp is not None:
        values |= {"ramp.share": held.unloaded, "ramp.on": held.contacts_on}
    if setup.memory_parts["misses"]:
        values |= {"missed.ticks": held.missed_ticks}
    if setup.remembers_force:
        values |= {"force.last": held.last.force, "force.known": held.last.known}
    if setup.memory_parts["servos"] and problem.servo is not None:
        names = ("moment", "drift", "length", "rate", "memory")
        values |= {f"servo.{name}": getattr(problem.servo, name) for name in names}
    return values


def servo_acceleration(known: Values, a: ca.SX) -> Values:
    """Return the accelerations of the servos' lengths by name, where z remembers them."""
    if "servo.moment" not in known:
        return {}
    along = linalg.product(known["servo.moment"].T, a) + known["servo.drift"]
    return {"servo.acceleration": along}


def next_state(
    setup: "Setup",
    scales: "ProblemScales",
    known: Values,
    solved: ca.SX,
    actuators: ActuatorModel,
    u: ca.SX,
) -> ca.SX:
    """Return the part of z behind the safe output, in the order of `parts.py`.

    Args:
        setup: the options.
        scales: the units of the problem.
        known: numbers of this tick.
        solved: whether it has a solution.
        actuators: at the measured state.
        u: (nu,) control that the tick gives.
    """
    parts = [known.get("missed.next", ca.SX(0, 1))]
    if setup.servos is not None and setup.memory_parts["servos"]:
        parts.append(next_memory(setup.servos, known, solved))
    if setup.remembers_force:
        is_known = known["measured"] if servo_indices(setup.system) else ca.SX(1)
        parts.append(next_force(solved, known["p"], _unlimited(actuators), u, is_known))
    if "planned.memory" in known:
        parts.append(next_plans(setup, known["planned.memory"], known["a"], solved))
    if setup.load_ramp is not None:
        ramp = setup.load_ramp, known["ramp.share"], known["ramp.on"], setup.period
        parts.append(ca.if_else(known["valid"], next_unloaded(*ramp), known["ramp.share"]))
    if setup.force_feedback is not None:
        before = Integrated(*(known[f"integral.{key}"] for key in Integrated._fields))
        judged = ca.logic_and(known["valid"], solved), known["bounded"]
        parts.append(next_integral(setup.force_feedback, before, judged, setup.period))
    if setup.observer is not None:
        parts.append(
            learned_state(
                setup.observer,
                Observed(*(known[f"observed.{key}"] for key in Observed._fields)),
                (known["observed.M"], known["observed.speed"], known["a"]),
                (known["measured"], solved),
                (ca.DM(scales.coordinates), scales.strength, setup.period),
            )
        )
    return ca.vertcat(*parts)


def slowed_output(setup: "Setup", known: Values, actuators: ActuatorModel, u: ca.SX) -> ca.SX:
    """Return a safe output (nu,) that changes no faster than the limits of the rate allow.

    The force of a servo's control is known where its length was measured, that of a motor always.
    """
    limits, nu = setup.limited_actuators, setup.system.nu
    if limits is None or not setup.remembers_force:
        return u
    servos = servo_indices(setup.system)
    trusted = [known["measured"] if i in servos else ca.SX(1) for i in range(nu)]
    last = LastForce(known["force.last"], known["force.known"])
    force = _unlimited(actuators).forces(u)
    return actuators.controls(slowed(limits, force, last, setup.period, ca.vertcat(*trusted)))


def _unlimited(actuators: ActuatorModel) -> ActuatorModel:
    """Return actuators whose force follows from the control alone."""
    wide = UNBOUNDED * ca.SX.ones(actuators.gain.numel())
    return replace(actuators, lower=-wide, upper=wide)
