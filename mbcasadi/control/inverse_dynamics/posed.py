"""The controller's problem at its inputs, as scalar expressions or as matrices of them."""

from typing import NamedTuple

import casadi as ca

from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.system.actuator_model import ActuatorModel

LOOPS_FROM = 8000
"""Products and factors of matrices with more operations than this become loops in C: they are
shorter than the same in straight-line text, and as fast from here on."""


class Posed(NamedTuple):
    """What a tick knows before its QP is condensed.

    Attributes:
        problem: the parts of the QP.
        valid: whether all inputs are finite and the loops are closed.
        measured: the same of the measurement alone.
        hold: parts of the command that holds the pose, by name; none where it is not remembered.
        noticed: bits of `flags`, see `notices.py`.
        lost: whether a part has a limit that cannot be kept.
    """

    problem: Problem
    valid: ca.SX
    measured: ca.SX
    hold: dict[str, ca.SX]
    noticed: ca.SX
    lost: ca.SX


def has_loops(problem: Problem) -> bool:
    """Whether products and factors of a problem's matrices become loops in C."""
    return dense_operations(problem) > LOOPS_FROM


def dense_operations(problem: Problem) -> int:
    """Return about how many operations condensing and whitening take on dense matrices."""
    (m, nv), nu = problem.dynamics.G.shape, problem.dynamics.B.shape[1]
    motion = nv * (nv + 2 * m) * (nu + m)
    return int(motion + nu**2 * (nv + nu) + nu * len(problem.rows.about) * m)


def no_force(actuators: ActuatorModel) -> ca.SX:
    """Return the control (nu,) of zero actuator force within its limits."""
    return actuators.controls(ca.fmin(ca.fmax(ca.SX(0), actuators.lower), actuators.upper))
