"""Which actuators can act on a force: those that joints and constraints connect with it.

Rows of loops and contacts connect the coordinates that they move, and an actuator those that it
drives. A finger's tendon is not connected with a tool beside it, legs are by the base that their
feet move. Forces that pass through the inertia alone do not count.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.contacts.force_feedback import at_bounds
from mbcasadi.control.inverse_dynamics.weighed_forces import limits_of_forces
from mbcasadi.qp.friction_cone import FORCE_AXES

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup
    from mbcasadi.control.inverse_dynamics.problem import Problem

Array = NDArray[np.bool_]


def bounded_forces(setup: "Setup", problem: "Problem", active: ca.SX) -> ca.SX:
    """Return (k,) one for each force in the cost, or of a contact, that an active limit bounds.

    Args:
        setup: the options.
        problem: its rows and contacts.
        active: (m,) active set of the rows.
    """
    G, B = problem.dynamics.G.sparsity(), problem.dynamics.B.sparsity()
    of_contact = problem.contacts.of_lam.sparsity()
    first = G.shape[0] - of_contact.shape[1]
    by_contact: list[set[int]] = [set() for _ in setup.contacts]
    for force, multiplier in zip(*of_contact.get_triplet(), strict=True):
        by_contact[force // 3].add(first + multiplier)
    rows = [own for own in by_contact for _ in FORCE_AXES]
    rows += [{row.place} for row in setup.weighed_loops]
    names = np.array(setup.system.actuator_names, dtype=object)
    acting = [set(names[each]) for each in acting_actuators(G, B, rows)]
    return at_bounds(active, problem.rows.names, limits_of_forces(setup), acting)


def acting_actuators(G: ca.Sparsity, B: ca.Sparsity, forces: Sequence[set[int]]) -> Array:
    """Return (k, nu) whether each actuator can act on each force.

    Args:
        G: (m, nv) rows of loops and contacts.
        B: (nv, nu) moment of the actuators.
        forces: the rows of G whose multipliers each of the k forces is made of.
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
    acting = [np.isin(of_actuator, of_row[sorted(own)]) for own in forces]
    return np.array(acting, dtype=bool).reshape(len(forces), nu)
