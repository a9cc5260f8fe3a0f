"""What a tick solves as asked, and what is doubtful all the same: bits of `flags`.

`OPEN_GAP`: a contact of `mb.contacts_of` is on, and its gap is larger than the geom that touches
(its least size): the law pushes on a ground that is not there. `UNCARRIED`: nothing carries a
floating base: all contacts, and all equality constraints that act on it, are off. A base that
actuators push, a drone's, or one without gravity needs neither.
"""

import casadi as ca
import numpy as np

from mbcasadi import model
from mbcasadi.control.inverse_dynamics.floating_base import floating_base
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.description.status import Flag
from mbcasadi.system.contact_frames import frame_of_geom, plane_normal, plane_spot
from mbcasadi.system.pair_frames import convex_pairs


def noticed(design: Design, now: Instant) -> ca.SX:
    """Return the bits of a tick."""
    opens, uncarried = _open_gaps(design, now), _uncarried(design, now)
    return int(Flag.OPEN_GAP) * opens + int(Flag.UNCARRIED) * uncarried


def _uncarried(design: Design, now: Instant) -> ca.SX:
    """Return one where nothing carries the base."""
    name, rows = floating_base(design)
    if not name:
        return ca.SX(0)
    on = ca.vertcat(now.contacts_on, now.on_rows[list(rows), 0])
    return ca.logic_not(ca.sum1(on) > 0) if on.numel() else ca.SX(1)


def _open_gaps(design: Design, now: Instant) -> ca.SX:
    """Return one where a contact that is on is far from its plane, or its geoms from each other."""
    tree = design.system.tree
    if tree is None or not any(contact.kind == "contact" for contact in design.contacts):
        return ca.SX(0)
    turn = any(contact.geoms is not None for contact in design.contacts)
    pairs, opens = convex_pairs(tree) if turn else {}, ca.SX(0)
    for i, contact in enumerate(design.contacts):
        if contact.geoms is not None:
            pair = pairs[contact.frame]
            far = min([size for geom in pair.geoms for size in geom.size if size > 0], default=0.0)
            gap = pair.gap(now.q)[0]
            opens = ca.logic_or(opens, ca.logic_and(now.on[i], gap > (far or np.inf)))
            continue
        place = plane_spot(tree, contact.frame) if contact.kind == "contact" else None
        if place is None:
            continue
        origin = ca.evalf(model.frame_pose(tree, frame_of_geom(place.plane), now.q * 0)[0])
        normal = ca.DM(plane_normal(tree, place.plane))
        point = design.system.frame(contact.frame, "contact").pose(now.q)[0]
        least = min(size for size in place.geom.size if size > 0)
        opens = ca.logic_or(opens, ca.logic_and(now.on[i], ca.dot(normal, point - origin) > least))
    return opens
