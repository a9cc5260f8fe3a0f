"""The rest of springs that yield, as a Function for those who have no MuJoCo to ask."""

import casadi as ca

from mbcasadi import model
from mbcasadi.argument_kinds import checked
from mbcasadi.system import System
from mbcasadi.system.sensor_functions import require_tree


@checked
def spring_rests(system: System) -> ca.Function:
    """Return (q, rests) → (rests_next): where springs with `springyield` are at rest after q.

    Called with each q that is reached, it follows MuJoCo's plastic state, exactly for joints;
    MuJoCo takes the length of a tendon from its rate, which differs by the square of a time step.
    The entries are those of `Plant.spring_rests`, in its order: joints, then tendons. As parameters
    (`joint:NAME:springref`, `joint:NAME:springquat`, `tendon:NAME:springlength`) they tell
    `passive_force` and all that follows from it where the springs are at rest.

    Args:
        system: read from a model.

    Raises:
        ProblemError: a system that was given by equations.
    """
    tree = require_tree(system.tree, system.name)
    count = sum(len(names) for _, names in model.yielding(tree))
    q, rests = ca.SX.sym("q", tree.nq_of_joints), ca.SX.sym("rests", count)
    later = ca.densify(model.next_rests(tree, q, rests))
    return ca.Function("spring_rests", [q, rests], [later], ["q", "rests"], ["rests_next"])
