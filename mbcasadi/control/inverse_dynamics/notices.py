"""What a tick solves as asked, and what is doubtful all the same: bits of `flags`.

`OPEN_GAP`: a contact of `mb.contacts_of` is on, and its gap is larger than the geom that touches
(its least size): the law pushes on a ground that is not there. `UNCARRIED`: nothing carries a
floating base: all contacts, and all equality constraints that act on it, are off. A base that
actuators push, a drone's, or one without gravity needs neither.
"""

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from mbcasadi import model
from mbcasadi.control.inverse_dynamics.floating_base import floating_base
from mbcasadi.control.inverse_dynamics.inputs import Inputs, rows_on
from mbcasadi.control.inverse_dynamics.limits.predicted_motion import predicted_state
from mbcasadi.control.inverse_dynamics.limits.tuned_limits import tuned_joints
from mbcasadi.description.status import Flag
from mbcasadi.system.contact_frames import frame_of_geom, plane_normal, plane_spots

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup


def noticed(setup: "Setup", at: Inputs) -> ca.SX:
    """Return the bits of a tick."""
    opens, uncarried = _open_gaps(setup, at), _uncarried(setup, at)
    return int(Flag.OPEN_GAP) * opens + int(Flag.UNCARRIED) * uncarried


def too_fast(setup: "Setup", at: Inputs) -> ca.SX:
    """Return whether a joint is faster than its limit by more than a tick of its braking takes."""
    joints = tuned_joints(setup.limited_joints, at.tuning)
    if joints is None:
        return ca.SX(0)
    v, fast = predicted_state(setup, at.memory, at.q, at.v)[1], [ca.SX(0)]
    for k, dof in enumerate(joints.dofs):
        limit, braking = joints.velocity[k], joints.braking[k]
        taken = setup.period * (joints.acceleration[k] if np.isnan(braking) else braking)
        if np.isfinite(taken) and (isinstance(limit, ca.SX) or np.isfinite(limit)):
            fast.append(ca.fabs(v[dof]) - limit > taken)
    return ca.mmax(ca.vertcat(*fast))


def _uncarried(setup: "Setup", at: Inputs) -> ca.SX:
    """Return one where nothing carries the base."""
    name, rows = floating_base(setup)
    if not name:
        return ca.SX(0)
    on = ca.vertcat(at.on[: len(setup.contacts), 0], rows_on(setup, at.on)[list(rows), 0])
    return ca.logic_not(ca.sum1(on) > 0) if on.numel() else ca.SX(1)


def _open_gaps(setup: "Setup", at: Inputs) -> ca.SX:
    """Return one where a contact that is on is far from its plane."""
    tree = setup.system.tree
    if tree is None or not any(contact.kind == "contact" for contact in setup.contacts):
        return ca.SX(0)
    spots, opens = plane_spots(tree), ca.SX(0)
    for i, contact in enumerate(setup.contacts):
        if contact.kind != "contact":
            continue
        place = spots[contact.frame]
        origin = ca.evalf(model.frame_pose(tree, frame_of_geom(place.plane), at.q * 0)[0])
        normal = ca.DM(plane_normal(tree, place.plane))
        point = setup.system.frame(contact.frame, "contact").pose(at.q)[0]
        least = min(size for size in place.geom.size if size > 0)
        opens = ca.logic_or(opens, ca.logic_and(at.on[i], ca.dot(normal, point - origin) > least))
    return opens
