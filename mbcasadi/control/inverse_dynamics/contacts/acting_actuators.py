"""Which actuators can act on a force: those that joints and constraints connect with it.

Rows of loops and contacts connect the coordinates that they move, and an actuator those that it
drives. A finger's tendon is not connected with a tool beside it, legs are by the base that their
feet move. Forces that pass through the inertia alone do not count.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.tick.design import Design

Array = NDArray[np.bool_]


def owners_of_bounds(design: Design, problem: Problem) -> tuple[frozenset[tuple[str, str]], ...]:
    """Return what may bound each weighed force: itself, and the actuators that can act on it.

    Args:
        design: of the controller.
        problem: its rows and contacts.
    """
    G, B = problem.dynamics.G.sparsity(), problem.dynamics.B.sparsity()
    of_contact = problem.contacts.of_lam.sparsity()
    first = G.shape[0] - of_contact.shape[1]
    by_contact: list[set[int]] = [set() for _ in design.contacts]
    for force, multiplier in zip(*of_contact.get_triplet(), strict=True):
        by_contact[force // 3].add(first + multiplier)
    forces = design.weighed_forces
    rows = [by_contact[x.place] if x.owner[0] == "contact" else {x.place} for x in forces]
    actuators = [("actuator", name) for name in design.system.actuator_names]
    return tuple(
        frozenset({force.owner, *(actuators[i] for i in np.flatnonzero(each))})
        for force, each in zip(forces, acting_actuators(G, B, rows), strict=True)
    )


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
    here = [*columns, *driven]
    there = [*(nv + r for r in rows), *(nv + m + a for a in actuators)]
    size = nv + m + nu
    edges = ca.Sparsity.triplet(size, size, [*here, *there], [*there, *here])
    count, nodes, ends = edges.scc()  # of a symmetric graph: the connected components
    label = np.empty(size, dtype=int)
    label[nodes] = np.repeat(np.arange(count), np.diff(ends))
    of_row, of_actuator = label[nv : nv + m], label[nv + m :]
    acting = [np.isin(of_actuator, of_row[sorted(own)]) for own in forces]
    return np.array(acting, dtype=bool).reshape(len(forces), nu)
