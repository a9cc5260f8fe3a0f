"""Which actuators can press on a contact: those that joints and constraints connect with it.

Rows of loops and contacts connect the coordinates that they move, and an actuator those that it
drives. A finger's tendon is not connected with a tool beside it, legs are by the base that their
feet move. Forces that pass through the inertia alone do not count.
"""

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.contacts.force_feedback import at_bounds

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup
    from mbcasadi.control.inverse_dynamics.problem import Problem

Array = NDArray[np.bool_]


def bounded_forces(setup: "Setup", problem: "Problem", active: ca.SX) -> ca.SX:
    """Return (3 nc,) one for each contact force that an active limit bounds.

    Args:
        setup: the options.
        problem: its rows and contacts.
        active: (m,) active set of the rows.
    """
    G, B = problem.dynamics.G.sparsity(), problem.dynamics.B.sparsity()
    acting = acting_actuators(G, B, problem.contacts.of_lam.sparsity())
    names = np.array(setup.system.actuator_names, dtype=object)
    by_contact = [set(names[each]) for each in acting]
    return at_bounds(active, problem.rows.names, setup.contact_names, by_contact)


def acting_actuators(G: ca.Sparsity, B: ca.Sparsity, of_contact: ca.Sparsity) -> Array:
    """Return (nc, nu) whether each actuator can act on each contact.

    Args:
        G: (m, nv) rows of loops and contacts.
        B: (nv, nu) moment of the actuators.
        of_contact: (3 nc, k) forces of the contacts by the multipliers of the last k rows.
    """
    (m, nv), nu = G.shape, B.shape[1]
    rows, columns = G.get_triplet()
    driven, actuators = B.get_triplet()
    here = np.array([*columns, *driven], dtype=int)
    there = np.array([*(nv + r for r in rows), *(nv + m + a for a in actuators)], dtype=int)
    size = nv + m + nu
    edges = scipy.sparse.coo_array((np.ones(here.size), (here, there)), shape=(size, size))
    label = scipy.sparse.csgraph.connected_components(edges, directed=False)[1]
    of_row, of_actuator = label[nv : nv + m], label[nv + m :]
    forces, multipliers = of_contact.get_triplet()
    acting = np.zeros((of_contact.shape[0] // 3, nu), dtype=bool)
    first = m - of_contact.shape[1]
    for force, multiplier in zip(forces, multipliers, strict=True):
        acting[force // 3] |= of_actuator == of_row[first + multiplier]
    return acting
