"""The deceleration of gaps that actuators can be relied on for.

Joints that brake with `d_j` at the same time (`usual_braking.py`) decelerate a gap with the
Jacobian J by `Σ_j |J_j| d_j`; where loops tie joints together, by the largest `J a` with `A a = 0`
and `|a_j| <= d_j`, a linear program. It differs from pose to pose and from pair to pair, and
vanishes where joints hardly change a gap: there a gap closes slowly, too. So the value that most
pairs have when they are near is relied on.
"""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.limits.usual_braking import (
    LEAST_TICKS,
    Inertia,
    JointIndices,
    usual_braking,
)
from mbcasadi.errors import ProblemError
from mbcasadi.model import geometry
from mbcasadi.system import System
from mbcasadi.system.geometry_contacts import GeometryContact
from mbcasadi.system.natural_sizes import model_length
from mbcasadi.system.ranges import Ranges
from mbcasadi.system.row_lengths import rows_of

Array = NDArray[np.float64]

RELIED_ON = 0.1
"""Quantile of the pairs' values."""
STEP = 1e-6
"""Step of central differences, of a radian or a metre."""


def gap_braking(
    system: System,
    contacts: Sequence[GeometryContact],
    poses: Array,
    ranges: Ranges,
    period: float,
    inertia: Inertia | None,
) -> float:
    """Return the deceleration, m/s².

    Args:
        system: read from a model.
        contacts: a contact of each pair.
        poses: (k, nq) one for each pair, at which it is near.
        ranges: of controls and actuator forces.
        period: length of a tick, s.
        inertia: as of `usual_braking`.

    Raises:
        ProblemError: no actuator with finite limits brakes a gap.
    """
    braking = _of_joints(system, ranges, period, inertia)
    bounds = geometry.bounds_fun(contacts[0].tree, [contact.geoms for contact in contacts])
    found = []
    for k, q in enumerate(poses):
        dofs = np.flatnonzero(braking).tolist()
        J = np.array([_slope(system, bounds, q, dof, k) for dof in dofs])
        found.append(_most(system, q, J, braking))
    value = float(np.quantile(found, RELIED_ON)) if found else 0.0
    if not value > 0:
        raise ProblemError(
            f"no actuator of '{system.name}' with finite limits brakes its distances against "
            "gravity; expected braking=, the deceleration that is relied on"
        )
    return value


def _of_joints(system: System, ranges: Ranges, period: float, inertia: Inertia | None) -> Array:
    """Return the deceleration (nv,) of each coordinate, zero of those that nothing brakes."""
    assert system.tree is not None
    stops = dict(zip(system.limits.joint_names, system.limits.joint, strict=True))
    joints = [
        joint
        for joint in system.tree.joints
        if joint.kind in ("slide", "hinge") and joint.name not in system.joint_roles.passive
    ]
    found = np.zeros(system.nv)
    if not joints:
        return found
    ends = np.array([stops[joint.name] for joint in joints])
    usual = usual_braking(
        system,
        JointIndices(tuple(joint.dof for joint in joints), tuple(joint.qpos for joint in joints)),
        (ends[:, 0], ends[:, 1]),
        ranges,
        inertia,
    )
    length = model_length(system.tree)
    widest = np.array([2 * np.pi if joint.kind == "hinge" else length for joint in joints])
    most = 4 * np.minimum(ends[:, 1] - ends[:, 0], widest) / (LEAST_TICKS * period) ** 2
    usable = np.minimum(np.nan_to_num(usual, nan=0.0, posinf=np.inf), most)
    found[[joint.dof for joint in joints]] = np.maximum(usable, 0.0)
    return found


def _slope(system: System, bounds: ca.Function, q: Array, dof: int, pair: int) -> float:
    """Return the rate of a pair's bound by one coordinate."""
    step = STEP * np.eye(system.nv)[dof]
    ends = [bounds.call([system.integrate(q, sign * step)])[0] for sign in (1, -1)]
    return float((ends[0] - ends[1])[pair]) / (2 * STEP)


def _most(system: System, q: Array, J: Array, braking: Array) -> float:
    """Return the largest deceleration of a gap with the Jacobian J of the joints that brake."""
    dofs = np.flatnonzero(braking)
    if not system.nc:
        return float(np.abs(J) @ braking[dofs])
    A = ca.sparsify(ca.DM(rows_of(system, q, np.zeros(system.nv))))
    J_all, ends = np.zeros(system.nv), np.where(braking != 0, braking, np.inf)
    J_all[dofs] = J
    shapes = {"h": ca.Sparsity(system.nv, system.nv), "a": A.sparsity()}
    options: dict[str, Any] = {"highs": {"output_flag": False}, "error_on_fail": False}
    solver = ca.conic("most", "highs", shapes, options)
    found = solver(g=-J_all, a=A, lba=0, uba=0, lbx=-ends, ubx=ends)
    return float(-found["cost"]) if solver.stats()["success"] else 0.0
