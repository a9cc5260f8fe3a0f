"""The limits of a mechanism's actuators in an optimal control problem."""

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.ocp.stage import Bounded, Stage
from mbcasadi.shapes import bounds
from mbcasadi.system import System, evaluate
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import Ranges


def change_rows(stage: Stage, rates: Array | None) -> list[Bounded]:
    """Return the bounds of changes, one for each control that has any."""
    if rates is None:
        return []
    bounded = np.flatnonzero(np.isfinite(rates).any(axis=1))
    change = stage.variables.u - stage.u_last
    names = stage.system.actuator_names
    return [
        Bounded(change[i], rates[i, 0], rates[i, 1], name=f"du.{names[i]}")
        for i in bounded.tolist()
    ]


def control_bounds(system: System, u_bounds: ArrayLike | None) -> Array:
    """Return bounds (nu, 2) of the controls inside the model's ranges.

    Raises:
        ProblemError: empty bounds.
        ShapeError: a wrong shape, or NaN.
    """
    requested, ranges = bounds("u_bounds", u_bounds, system.nu), system.limits.ctrl
    inside = np.column_stack(
        [np.maximum(requested[:, 0], ranges[:, 0]), np.minimum(requested[:, 1], ranges[:, 1])]
    )
    return bounds("u_bounds inside the model's ctrlrange", inside, inside.shape[0])


def force_rows(stage: Stage) -> list[Bounded]:
    """Return the ranges of actuator forces and of their sums on joints, where they are finite."""
    system, variables = stage.members, stage.variables
    q = variables.carried_q
    limits = system.limits
    rows = []
    has_range = np.flatnonzero(np.isfinite(limits.force).any(axis=1))
    if has_range.size:
        model = actuator_model(system, Ranges(limits.ctrl, limits.force), 1.0, q, variables.v, None)
        force = (model.gain * variables.u + model.bias)[has_range.tolist()]
        rows.append(
            Bounded(
                force, limits.force[has_range][:, 0], limits.force[has_range][:, 1], name="force"
            )
        )
    if system.tree is not None and np.isfinite(limits.joint_force).any():
        dofs = {joint.name: joint.dof for joint in system.tree.joints}
        finite = np.flatnonzero(np.isfinite(limits.joint_force).any(axis=1))
        B = evaluate(system.actuation, {"q": q, "v": variables.v})
        force = B @ variables.u + system.actuator_bias(q, variables.v)
        limited_dofs = [dofs[limits.joint_names[i]] for i in finite]
        rows.append(
            Bounded(
                force[limited_dofs],
                limits.joint_force[finite][:, 0],
                limits.joint_force[finite][:, 1],
                name="joint_force",
            )
        )
    return rows
