"""Whether a floating base has something that can carry it: contacts, constraints, actuators."""

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import RigidTree
from mbcasadi.system import evaluate
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import require_ranges

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup

Array = NDArray[np.float64]

MOVED = 1e-9
"""Share of the largest entry from which on a constraint or an actuator acts on the base."""

BASE_DOFS = 6


def doubt_of_base(setup: "Setup") -> str:
    """Return a warning of a floating base that nothing can carry; "" otherwise."""
    name, rows = floating_base(setup)
    if not name or setup.contacts or rows:
        return ""
    return (
        f"'{setup.system.name}' falls: neither contacts nor constraints nor actuators act on its "
        f"floating base '{name}'; expected contacts=, such as those of mb.contacts_of"
    )


def floating_base(setup: "Setup") -> tuple[str, tuple[int, ...]]:
    """Return the free joint that has to be carried, "" for none, and the equality rows on it.

    It has joints with actuators above it, which do not push the base itself, and gravity.
    """
    tree = setup.system.tree
    if tree is None or not np.any(tree.gravity):
        return "", ()
    B = _at_poses(setup, "actuation")
    for joint in tree.joints:
        base = list(range(joint.dof, joint.dof + BASE_DOFS))
        if joint.kind != "free" or not np.any(B[:, _above(tree, joint.body)]):
            continue
        if not np.any(np.abs(B[:, base]) > MOVED * np.abs(B).max()):
            A = np.abs(_at_poses(setup, "rows")) if setup.system.nc else np.zeros((1, 0, 0))
            acts = [k for k in range(A.shape[1]) if np.any(A[:, k, base] > MOVED * A[:, k].max())]
            return joint.name, tuple(acts)
    return "", ()


def _above(tree: RigidTree, body: int) -> list[int]:
    """Return the dofs of joints of bodies that a body carries."""
    carried = {body}
    for i, each in enumerate(tree.bodies):
        if i and each.parent in carried:
            carried.add(i)
    return [j.dof for j in tree.joints if j.body in carried and j.body != body]


def _at_poses(setup: "Setup", what: str) -> Array:
    """Return moments (poses, nv, nu) or rows of the loops (poses, nc, nv) at the closed poses."""
    system, found = setup.system, []
    q = ca.SX.sym("q", system.nq)
    ranges = require_ranges(system, None, None)
    moment = actuator_model(system, ranges, 1.0, q, ca.SX(system.nv, 1), None).moment
    actuation = ca.Function("moment", [q], [ca.densify(moment)])
    for pose, rates in system.scales.states:
        if what == "actuation":
            found.append(np.asarray(actuation(pose)))
        else:
            rows = evaluate(system.loop_jacobian, {"q": pose, "v": rates, "t": 0.0})
            found.append(np.asarray(rows.full()))
    return np.array(found)
