"""Contacts that creep along the ground in MuJoCo, and the weight that keeps their forces small.

The law chooses among forces that cause no motion, feet that push against each other, by the torques
of the motors. On rigid ground nothing moves by that. MuJoCo's soft friction gives way to the
smallest force, `v = c f_t` (`system/creep.py`): the feet slide apart, in ticks that are all solved,
until the robot falls. So forces along the ground have a weight on such contacts, if none is given,

    r_t = SHARE W / m²,

W the largest weight of a task and m the whole mass: a share of the tasks' cost of the acceleration
that such a force gives the robot.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Contact
from mbcasadi.system import System
from mbcasadi.system.creep import creep_of_bodies

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup

Array = NDArray[np.float64]

FASTEST = 0.04
"""m/s at the edge of the friction cone, from which on a contact creeps: a stance of 0.4 m is lost
within 10 s."""

SHARE = 0.01
"""Of the tasks' cost. Four feet that share a push give up a quarter of it, 0.25 %."""


def creeping_speeds(system: System, contacts: tuple[Contact, ...]) -> tuple[float, ...]:
    """Return the speed, m/s, of each contact at the edge of its friction cone, mean load.

    Zero where the model does not say what is touched, or the contact slides anyway.
    """
    tree = system.tree
    if tree is None or not contacts:
        return (0.0,) * len(contacts)
    load = sum(body.mass for body in tree.bodies) * float(np.linalg.norm(tree.gravity))
    load /= len(contacts)
    creep = creep_of_bodies(tree, load)
    speeds = []
    for contact in contacts:
        carrier = system.frame(contact.frame, contact.kind).carrier
        body = None if carrier is None or contact.other or contact.slides else carrier.body
        root = None if body is None else tree.bodies[body].weld_root
        speeds.append(0.0 if root is None else creep.get(root, 0.0) * contact.friction * load)
    return tuple(speeds)


def creeping_weights(setup: "Setup") -> Array:
    """Return the weights (3 nc,) of n, t1, t2 of each contact where none are given.

    With levels all have one, or none.
    """
    creeps = np.array(setup.creeping_speeds) > FASTEST
    none = np.zeros(3 * len(setup.contacts))
    if not np.any(creeps) or setup.force_reference:
        return none
    mass = sum(body.mass for body in setup.system.tree.bodies) if setup.system.tree else 0.0
    weight = SHARE * max(float(np.max(gains.weight)) for gains in setup.gains) / mass**2
    if setup.levels:
        return none + weight
    return weight * np.outer(creeps, [0.0, 1.0, 1.0]).ravel()


def creep_note(setup: "Setup") -> str:
    """Return the contacts that creep, with their weight, in words; "" for none."""
    if setup.force_weight is not None or not np.any(setup.contact_weights):
        return ""
    speeds = zip(setup.contact_names, setup.creeping_speeds, strict=True)
    creeping = ", ".join(f"{name}: {1e3 * v:.0f} mm/s" for name, v in speeds if v > FASTEST)
    return f"{creeping} at the edge of the cone; force_weight {np.max(setup.contact_weights):.3g}"
