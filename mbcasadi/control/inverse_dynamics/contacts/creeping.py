"""Contacts that creep along the ground in MuJoCo, and the weight that keeps their forces small.

The law chooses among forces that cause no motion, feet that push against each other, by the torques
of the motors. On rigid ground nothing moves by that. MuJoCo's soft friction gives way to the
smallest force, `v = c f_t` (`system/creep.py`): the feet slide apart, in ticks that are all solved,
until the robot falls. So forces along the ground have a weight on such contacts, if none is given,

    r_t = SHARE W / m²,

W the largest weight of a task and m the whole mass: a share of the tasks' cost of the acceleration
that such a force gives the robot.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.tick.design import Design
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import real_array
from mbcasadi.system import System
from mbcasadi.system.creep import creep_of_bodies

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
        body = (
            None
            if carrier is None or contact.other or contact.geoms or contact.slides
            else carrier.body
        )
        root = None if body is None else tree.bodies[body].weld_root
        speeds.append(0.0 if root is None else creep.get(root, 0.0) * contact.friction * load)
    return tuple(speeds)


PerForce = float | Sequence[float]


def force_weights(weight: PerForce, count: int) -> Array:
    """Return the weights (3 count,) of the components n, t1, t2 of each contact.

    Args:
        weight: one for all, one for n, t1, t2 of every contact, or all of them.
        count: number of contacts.

    Raises:
        ProblemError: another number of weights, or a negative one.
    """
    array = real_array("force_weight", weight)
    fits = array.shape in {(), (3,), (3 * count,)} and bool(np.all(np.isfinite(array)))
    if not fits or np.any(array < 0):
        raise ProblemError(
            f"force_weight = {weight}; expected a finite number that is not negative, three for n, "
            f"t1, t2 of every contact, or {3 * count} for {count} contacts"
        )
    if array.shape == (3 * count,):
        return np.asarray(array, dtype=float)
    return np.asarray(np.tile(np.broadcast_to(array, (3,)), count), dtype=float)


def creeping_weights(design: Design) -> tuple[Array, str]:
    """Return the weights (3 nc,) of n, t1, t2 of each contact where none are given, and a note."""
    none = np.zeros(3 * len(design.contacts))
    speeds = np.array(creeping_speeds(design.system, tuple(design.contacts)))
    creeps, system = speeds > FASTEST, design.system
    if not np.any(creeps) or design.force_reference:
        return none, ""
    mass = sum(body.mass for body in system.tree.bodies) if system.tree else 0.0
    weight = SHARE * max(float(np.max(gains.weight)) for gains in design.gains) / mass**2
    each = np.outer(creeps, [0.0, 1.0, 1.0]).ravel()
    named = zip(design.contact_names, speeds.tolist(), strict=True)
    creeping = ", ".join(f"{name}: {1e3 * v:.0f} mm/s" for name, v in named if v > FASTEST)
    return weight * each, f"{creeping} at the edge of the cone; force_weight {weight:.3g}"
