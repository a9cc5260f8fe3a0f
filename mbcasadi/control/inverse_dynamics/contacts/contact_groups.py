"""Contact points on one rigid body form one group; its constant redundancy is factored once.

The points `r_i` of a body move with `E (v_B, ω_B)`, where E (3k, 6) is constant in body axes: at
most 6 of their 3k rows are independent, whatever the pose. With the columns C of E that are
independent, and the points that are switched on, `S E_C = Q U` (Q orthonormal) gives at most 6
rows `U C (twist)` in place of 3k, and the forces on the points are

    f = Q f_r + (S - Q Qᵀ) Z w,   Zᵀ E = 0 constant.

`f_r` are the multipliers of the rows; the second term spans exactly the internal forces of the
points that are on. They do not change the motion; they distribute the load.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import casadi as ca
import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.contacts.sliding_contacts import sliding_force
from mbcasadi.control.inverse_dynamics.contacts.surface_contacts import Sole, sole_of
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.system import FrameFunctions, System
from mbcasadi.system.relative_frames import relative_frame
from mbcasadi.system.rigid_points import points_by_body

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
    """

    members: tuple[int, ...]
    frame: FrameFunctions
    arms: Array
    sole: Sole | None = None
    slides: bool = False

    @property
    def rows(self) -> int:
        """Number of constraint rows."""
        if self.slides:
            return 1
        return 3 if len(self.members) == 1 else int(point_map(self.arms)[0].shape[1])


@dataclass(frozen=True)
class ContactRows:
    """Constraint rows of the contacts, and the forces that their multipliers stand for.

    `J a + c = 0`; contact forces (n, t1, t2 of each contact) are `of_lam lam + of_w w`.

    Attributes:
        J, c: (m, nv), (m,) rows of all contacts; zero where they are off.
        of_lam: (3 nc, m).
        of_w: (3 nc, nw) internal forces; no columns where every body has one point.
        faces: (k, m) of the wrench cones of flat feet, `faces lam <= 0`.
        faces_off: (k,) one where a foot is off.
        faces_of: members and number of faces of each flat foot.
        drag: (nv, m) friction of sliding contacts on the mechanism by each multiplier; see
            `sliding_contacts.py`.
        sliding: the rows that slide.
    """

    J: ca.SX
    c: ca.SX
    of_lam: ca.SX
    of_w: ca.SX
    faces: ca.SX
    faces_off: ca.SX
    faces_of: tuple[tuple[tuple[int, ...], int], ...] = ()
    drag: ca.SX = field(default_factory=lambda: ca.SX(0, 0))
    sliding: tuple[int, ...] = ()

    @property
    def soles(self) -> frozenset[int]:
        """The contacts that are corners of flat feet with a wrench."""
        return frozenset(i for members, _ in self.faces_of for i in members)


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
        alone = i if contact.slides else -1
        other_kind = contact.other_kind if contact.other else ""
        touched.setdefault((contact.other, other_kind, alone), []).append(i)
    groups = []
    for (other, kind, alone), places in touched.items():
        frames = [system.frame(contacts[i].frame, contacts[i].kind) for i in places]
        for body in points_by_body(system, frames):
            members = tuple(places[k] for k in body.members)
            frame = body.frame
            if other:
                frame = _seen_from(system, frame, contacts[members[0]], kind)
            groups.append(ContactGroup(members, frame, body.arms, slides=alone >= 0))
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
    """Return a group with the wrench cone of its sole, if it has one."""
    own = [contacts[i] for i in group.members]
    q0 = system.scales.states[0][0] if system.tree is None else np.array(system.tree.q0)
    R = np.array(group.frame.pose(q0)[1])
    return replace(group, sole=sole_of(group.arms, own, R.T @ np.asarray(own[0].normal)))


def contact_rows(
    system: System,
    groups: Sequence[ContactGroup],
    axes: Sequence[ca.DM | ca.SX],
    on: ca.SX,
    state: tuple[ca.SX, ca.SX],
    *,
    damping: float,
    internal: bool,
    sliding: Mapping[int, tuple[float | ca.SX, float]],
) -> ContactRows:
    """Return the rows of all contacts at a state.

    Args:
        system: the mechanism.
        groups: from `contact_groups_of`.
        axes: of each contact (3, 3), rows n, t1, t2 in world axes.
        on: (nc,) one where a contact is on, zero where it is off.
        state: q, v.
        damping: rate, 1/s, at which a velocity of an active contact decays.
        internal: give each body with redundant points its internal forces.
        sliding: friction and least speed, m/s, of each contact that slides.
    """
    nv, nc = system.nv, on.numel()
    parts = [
        _sliding_rows(group, axes[group.members[0]], on, state, damping, sliding)
        if group.slides
        else _group_rows(group, [axes[i] for i in group.members], on, state, damping, internal)
        for group in groups
    ]
    J = ca.vertcat(ca.SX(0, nv), *(part.J for part in parts))
    faces = ca.diagcat(*(part.faces for part in parts)) if parts else ca.SX(0, 0)
    c = ca.vertcat(ca.SX(0, 1), *(part.c for part in parts))
    of_lam = ca.SX(3 * nc, J.shape[0])
    of_w = ca.SX(3 * nc, sum(part.of_w.shape[1] for part in parts))
    drag, slides = ca.SX(nv, J.shape[0]), []
    row = column = 0
    for group, part in zip(groups, parts, strict=True):
        places = [3 * i + k for i in group.members for k in range(3)]
        m, w = part.J.shape[0], part.of_w.shape[1]
        of_lam[places, row : row + m] = part.of_lam
        of_w[places, column : column + w] = part.of_w
        if group.slides:
            drag[:, row] = part.drag
            slides.append(row)
        row, column = row + m, column + w
    return ContactRows(
        J,
        c,
        ca.sparsify(of_lam),
        ca.sparsify(of_w),
        faces,
        ca.vertcat(ca.SX(0, 1), *(part.faces_off for part in parts)),
        tuple(each for part in parts for each in part.faces_of),
        drag,
        tuple(slides),
    )


def _group_rows(
    group: ContactGroup,
    axes: Sequence[ca.DM | ca.SX],
    on: ca.SX,
    state: tuple[ca.SX, ca.SX],
    damping: float,
    internal: bool,
) -> ContactRows:
    """Return the rows of one body."""
    q, v = state
    J, c = ca.SX(group.frame.jacobian(q)), ca.SX(group.frame.bias(q, v))
    if len(group.members) == 1:
        turn, s = axes[0], on[group.members[0]]
        rows = ca.sparsify(turn) @ J[:3, :]
        bias = turn @ c[:3] + damping * (rows @ v) if damping else turn @ c[:3]
        return ContactRows(s * rows, s * bias, ca.SX.eye(3), ca.SX(3, 0), ca.SX(0, 3), ca.SX(0, 1))
    R = ca.SX(group.frame.pose(q)[1])
    if group.sole is not None:
        return _wrench_rows(group, group.sole, axes, on, (J, c, R, v), damping)
    return _shared_rows(group, axes, on, (J, c, R, v), damping, internal)


def _sliding_rows(
    group: ContactGroup,
    axes: ca.DM | ca.SX,
    on: ca.SX,
    state: tuple[ca.SX, ca.SX],
    damping: float,
    sliding: Mapping[int, tuple[float | ca.SX, float]],
) -> ContactRows:
    """Return the row of a contact that slides; see `sliding_contacts.py`."""
    q, v = state
    member = group.members[0]
    turned = ca.sparsify(axes) @ ca.SX(group.frame.jacobian(q))[:3, :]
    row, bias = turned[0, :], ca.SX(axes[0, :]) @ ca.SX(group.frame.bias(q, v))[:3]
    if damping:
        bias += damping * (row @ v)
    force = sliding_force(turned[1:, :], v, *sliding[member])
    drag = turned[1:, :].T @ force[1:]
    s, nothing = on[member], ca.SX(0, 1)
    return ContactRows(s * row, s * bias, force, ca.SX(3, 0), nothing, nothing, (), drag)


def _wrench_rows(
    group: ContactGroup,
    sole: Sole,
    axes: Sequence[ca.DM | ca.SX],
    on: ca.SX,
    motion: tuple[ca.SX, ca.SX, ca.SX, ca.SX],
    damping: float,
) -> ContactRows:
    """Return the rows of a flat foot, which is on where all its points are.

    The multipliers are force and moment on the middle of the sole in the body's axes; the points
    have the least forces that give them.
    """
    J, c, R, v = motion
    is_on = ca.mmin(ca.vertcat(*(on[i] for i in group.members)))
    to_body = is_on * ca.diagcat(R.T, R.T)
    rows, bias = to_body @ J, to_body @ c
    if damping:
        bias += damping * (rows @ v)
    E = np.vstack([np.hstack([np.eye(3), -_skew(arm)]) for arm in group.arms])
    least = ca.DM(np.linalg.pinv(E.T))
    to_axes = ca.diagcat(*(ca.SX(turn) @ R for turn in axes))
    faces = ca.SX(ca.sparsify(ca.DM(sole.faces)))
    count = faces.shape[0]
    off = ca.repmat(1 - is_on, count, 1)
    of_points, no_forces = to_axes @ least, ca.SX(3 * len(group.members), 0)
    return ContactRows(rows, bias, of_points, no_forces, faces, off, ((group.members, count),))


def _shared_rows(
    group: ContactGroup,
    axes: Sequence[ca.DM | ca.SX],
    on: ca.SX,
    motion: tuple[ca.SX, ca.SX, ca.SX, ca.SX],
    damping: float,
    internal: bool,
) -> ContactRows:
    """Return the rows of a body with several points; see the head of this file."""
    J, c, R, v = motion
    E, C, Z = point_map(group.arms)
    S = ca.vertcat(*(on[i] for i in group.members for _ in range(3)))
    scale = ca.DM(np.linalg.norm(E, axis=0))
    basis = linalg.row_basis(
        (ca.SX(ca.sparsify(ca.DM(E))) * ca.repmat(S, 1, E.shape[1])).T,
        row_scale=scale,
        rank_tol=CONSTANT_RANK_TOL,
        pivot=False,
    )
    Q, U = basis.V, basis.R @ ca.sparsify(ca.DM(C))
    to_body = ca.diagcat(R.T, R.T)
    twist_rows = U @ to_body
    rows = twist_rows @ J
    spin = R.T @ (J[3:, :] @ v)
    bias = twist_rows @ c + Q.T @ _centripetal(spin, group.arms)
    if damping:
        bias += damping * (rows @ v)
    to_axes = ca.diagcat(*(ca.SX(turn) @ R for turn in axes))
    Z_on = ca.SX(ca.DM(Z)) * ca.repmat(S, 1, Z.shape[1])
    of_w = to_axes @ (Z_on - Q @ (Q.T @ Z_on)) if internal else ca.SX(3 * len(group.members), 0)
    nothing = ca.SX(0, rows.shape[0]), ca.SX(0, 1)
    return ContactRows(rows, bias, to_axes @ Q, of_w, *nothing)


def point_map(arms: Array) -> tuple[Array, Array, Array]:
    """Return `E_C`, `C` and `Z` of the constant map from a body's twist to its points.

    `E = E_C C` with the independent columns `E_C` (3k, r) of E and C (r, 6); Z (3k, 3k - r) are
    orthonormal with `Zᵀ E = 0`.

    Args:
        arms: (k, 3) points in body axes, m.
    """
    E = np.vstack([np.hstack([np.eye(3), -_skew(arm)]) for arm in arms])
    size = float(np.abs(arms).max()) or 1.0
    scaled = E / np.array([1, 1, 1, size, size, size])
    full, upper, order = scipy.linalg.qr(scaled, pivoting=True)
    diagonal = np.abs(np.diag(upper))
    r = int(np.sum(diagonal > CONSTANT_RANK_TOL * diagonal[0]))
    chosen = np.sort(order[:r])
    C = np.linalg.lstsq(E[:, chosen], E, rcond=None)[0]
    C[np.abs(C) < CONSTANT_RANK_TOL] = 0.0
    return E[:, chosen], C, full[:, r:]


def _skew(arm: Array) -> Array:
    x, y, z = arm
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def _centripetal(spin: ca.SX, arms: Array) -> ca.SX:
    """Return `ω × (ω × r_i)` of each point, stacked, body axes."""
    square = ca.sumsqr(spin)
    points = [ca.DM(arm) for arm in arms]
    return ca.vertcat(*(spin * ca.dot(spin, r) - square * r for r in points))
