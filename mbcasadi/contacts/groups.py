"""Which contacts are one group: points on one rigid body that touch the same other one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.contacts.rigid_points import points_by_body
from mbcasadi.contacts.soles import Sole, sole_of
from mbcasadi.description import Contact, Wheel
from mbcasadi.errors import ProblemError
from mbcasadi.system import FrameFunctions, System
from mbcasadi.system.relative_frames import relative_frame

Array = NDArray[np.float64]

CONSTANT_RANK_TOL = 1e-9
"""Relative size of what counts as a zero singular value of the constant point map."""


@dataclass(frozen=True)
class ContactGroup:
    """The contacts of one rigid body.

    Attributes:
        members: indices into the list of contacts.
        frame: the axes of the body, origin at the mean of the points.
        arms: (k, 3) points in that frame, m.
        sole: the cone of its wrenches, where they take the place of the points' forces.
        slides: whether it is one contact that slides, with a row along its normal only.
        wheel: of one contact that is the lowest point of a disc.
    """

    members: tuple[int, ...]
    frame: FrameFunctions
    arms: Array
    sole: Sole | None = None
    slides: bool = False
    wheel: Wheel | None = None

    @property
    def rows(self) -> int:
        """Number of constraint rows."""
        if self.slides:
            return 1
        if self.wheel is not None:
            return 3 if self.wheel.roller is None else 2
        return 3 if len(self.members) == 1 else int(point_map(self.arms)[0].shape[1])


def contact_groups_of(
    system: System, contacts: Sequence[Contact], *, wrenches: bool = False
) -> tuple[ContactGroup, ...]:
    """Group contacts by the rigid body that carries them, and by the one that they touch.

    Args:
        system: the mechanism.
        contacts: its contacts.
        wrenches: give flat feet one wrench in place of the forces on their points.

    Raises:
        UnknownNameError: a contact's frame is not in the model.
        ProblemError, ShapeError: as in `points_by_body`; no flat foot for a wrench.
    """
    touched: dict[tuple[str, str, int], list[int]] = {}
    for i, contact in enumerate(contacts):
        alone = i if contact.slides or contact.wheel else -1
        other_kind = contact.other_kind if contact.other else ""
        touched.setdefault((contact.other, other_kind, alone), []).append(i)
    groups = []
    for (other, kind, _), places in touched.items():
        frames = [system.frame(contacts[i].frame, contacts[i].kind) for i in places]
        for body in points_by_body(system, frames):
            members = tuple(places[k] for k in body.members)
            frame = body.frame
            if other:
                frame = _seen_from(system, frame, contacts[members[0]], kind)
            first = contacts[members[0]]
            group = ContactGroup(members, frame, body.arms, slides=first.slides, wheel=first.wheel)
            groups.append(group)
    if wrenches:
        groups = [_with_sole(system, group, contacts) for group in groups]
        if not any(group.sole for group in groups):
            raise ProblemError(
                'internal_forces="wrench" without a flat foot; expected a body with at least three '
                "contact points on a plane, not on one line"
            )
    return tuple(groups)


def _seen_from(
    system: System, frame: FrameFunctions, contact: Contact, kind: str
) -> FrameFunctions:
    """Return a frame as the body that it touches sees it.

    Raises:
        ProblemError: a body that touches itself.
    """
    base = system.frame(contact.other, kind)
    bodies = [None if each.carrier is None else each.carrier.body for each in (frame, base)]
    if bodies[0] is not None and bodies[0] == bodies[1]:
        raise ProblemError(
            f"contact '{contact.frame}' and '{contact.other}' are on one body; expected two"
        )
    return relative_frame(frame, base, (system.nq, system.nv))


def _with_sole(system: System, group: ContactGroup, contacts: Sequence[Contact]) -> ContactGroup:
    """Return a group with the wrench cone of its sole, if it has one.

    The side that the ground is on is that of the initial pose, or of a key frame.
    """
    own = [contacts[i] for i in group.members]
    tree = system.tree
    poses = [q for q, _ in system.scales.states[:1]]
    if tree is not None:
        poses = [np.array(q, dtype=float) for q in (tree.q0, *tree.keyframes.values())]
    normal = np.asarray(own[0].normal, dtype=float)
    ups = [np.array(group.frame.pose(q)[1]).T @ normal / np.linalg.norm(normal) for q in poses]
    return replace(group, sole=sole_of(group.arms, own, ups))


def point_map(arms: Array) -> tuple[Array, Array, Array]:
    """Return `E_C`, `C` and `Z` of the constant map from a body's twist to its points.

    `E = E_C C` with the independent columns `E_C` (3k, r) of E and C (r, 6); Z (3k, 3k - r) are
    orthonormal with `Zᵀ E = 0`.

    Args:
        arms: (k, 3) points in body axes, m.
    """
    E = twist_map(arms)
    size = float(np.abs(arms).max()) or 1.0
    scaled = E / np.array([1, 1, 1, size, size, size])
    full, upper, order = scipy.linalg.qr(scaled, pivoting=True)
    diagonal = np.abs(np.diag(upper))
    r = int(np.sum(diagonal > CONSTANT_RANK_TOL * diagonal[0]))
    chosen = np.sort(order[:r])
    C = np.asarray(np.linalg.lstsq(E[:, chosen], E, rcond=None)[0], dtype=float)
    C[np.abs(C) < CONSTANT_RANK_TOL] = 0.0
    return E[:, chosen], C, full[:, r:]


def twist_map(arms: Array) -> Array:
    """Return E (3k, 6), the velocities of points by the twist (v_B, ω_B) of their body.

    Args:
        arms: (k, 3) points in body axes, m.
    """
    skews = [np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) for x, y, z in arms]
    return np.asarray(np.vstack([np.hstack([np.eye(3), -skew]) for skew in skews]), dtype=float)
