"""The inputs of MPC of one rigid body, finite whatever they hold, for each interval."""

from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.mpc.legged.rigid_body import NX, WRENCH, SingleRigidBody
from mbcasadi.qp.input_guard import LARGEST_INPUT
from mbcasadi.qp.solver import CLAIMED

CHECKED_INPUTS = ("x0", "feet", "ref", "mask")

LONGEST_ARM = 1e3
"""m; feet farther than this from the centre of mass count as bad input: beside their moments the
weight of forces would be lost in rounding."""


class CheckedInputs(NamedTuple):
    """The inputs, finite: `on` (feet,) and `G` (6, 3 feet) for each interval."""

    x0: ca.MX
    refs: list[ca.MX]
    turn: ca.MX
    G: list[ca.MX]
    on: list[ca.MX]
    valid: ca.MX


def checked_inputs(
    body: SingleRigidBody, geometry: ca.Function, inputs: dict[str, ca.MX]
) -> CheckedInputs:
    """Return the inputs, zero where any of them is bad.

    Args:
        body: the robot.
        geometry: (x0, feet) → (turn, G), of `IntervalFunctions`.
        inputs: of the controller, by name.
    """
    column = ca.vertcat(*(inputs[key] for key in CHECKED_INPUTS))
    arms = inputs["feet"] - ca.repmat(inputs["x0"][3:6], body.feet, 1)
    near = ca.sum1(ca.fabs(arms)) <= LONGEST_ARM
    valid = ca.logic_and(ca.sum1(ca.fabs(column)) <= LARGEST_INPUT, near)
    finite_column = ca.if_else(valid, column, ca.DM.zeros(column.shape[0]))
    ends = np.cumsum([0, *(inputs[key].numel() for key in CHECKED_INPUTS)]).tolist()
    split = ca.vertsplit(finite_column, ends)
    x0, feet, ref, mask = split
    turn, G = geometry.call([x0, feet])
    on_ground = ca.vertsplit(mask > CLAIMED, body.feet)
    on_columns = [ca.repmat(ca.vec(ca.repmat(flags.T, 3, 1)).T, WRENCH, 1) for flags in on_ground]
    return CheckedInputs(
        x0, ca.vertsplit(ref, NX), turn, [G * flags for flags in on_columns], on_ground, valid
    )
