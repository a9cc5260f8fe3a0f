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
from dataclasses import dataclass, field

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import linalg
from mbcasadi.contacts.groups import (
    CONSTANT_RANK_TOL,
    ContactGroup,
    point_map,
    twist_map,
)
from mbcasadi.contacts.sliding import Sliding, sliding_force
from mbcasadi.contacts.soles import Sole
from mbcasadi.contacts.wheels import wheel_rows
from mbcasadi.description import Contact, Wheel
from mbcasadi.system import System

Array = NDArray[np.float64]


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


def contact_rows(
    system: System,
    groups: Sequence[ContactGroup],
    axes: Sequence[ca.DM | ca.SX],
    on: ca.SX,
    state: tuple[ca.SX, ca.SX],
    *,
    damping: float,
    internal: bool,
    sliding: Mapping[int, Sliding],
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
        sliding: what the friction follows from, of each contact that slides.
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


def axes_of_pair(system: System, contact: Contact, q: ca.SX) -> ca.SX:
    """Return the axes (3, 3) of a contact whose normal turns with its geoms, rows n, t1, t2."""
    return ca.SX(system.frame(contact.frame, contact.kind).pose(q)[1]).T


def _group_rows(
    group: ContactGroup,
    axes: Sequence[ca.DM | ca.SX],
    on: ca.SX,
    state: tuple[ca.SX, ca.SX],
    damping: float,
    internal: bool,
) -> ContactRows:
    """Return the rows of one body."""
    if group.wheel is not None:
        return _rows_of_wheel(group, group.wheel, axes[0], on, state, damping)
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


def _rows_of_wheel(
    group: ContactGroup,
    wheel: Wheel,
    axes: ca.DM | ca.SX,
    on: ca.SX,
    state: tuple[ca.SX, ca.SX],
    damping: float,
) -> ContactRows:
    """Return the rows of a wheel; see `wheels.py`."""
    rows, bias, of_lam = wheel_rows(group.frame, wheel, axes, state)
    if damping:
        bias += damping * (rows @ state[1])
    s = on[group.members[0]]
    return ContactRows(
        s * rows, s * bias, of_lam, ca.SX(3, 0), ca.SX(0, rows.shape[0]), ca.SX(0, 1)
    )


def _sliding_rows(
    group: ContactGroup,
    axes: ca.DM | ca.SX,
    on: ca.SX,
    state: tuple[ca.SX, ca.SX],
    damping: float,
    sliding: Mapping[int, Sliding],
) -> ContactRows:
    """Return the row of a contact that slides; see `sliding_contacts.py`."""
    q, v = state
    member = group.members[0]
    turned = ca.sparsify(axes) @ ca.SX(group.frame.jacobian(q))[:3, :]
    row, bias = turned[0, :], ca.SX(axes[0, :]) @ ca.SX(group.frame.bias(q, v))[:3]
    if damping:
        bias += damping * (row @ v)
    desired = sliding[member].velocity
    slip = turned[1:, :] @ v if desired is None else ca.SX(axes[1:, :]) @ desired
    force = sliding_force(slip, sliding[member])
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
    least = ca.DM(np.linalg.pinv(twist_map(group.arms).T))
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
    """Return the rows of a body with several points, at most six."""
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


def _centripetal(spin: ca.SX, arms: Array) -> ca.SX:
    """Return `ω × (ω × r_i)` of each point, stacked, body axes."""
    square = ca.sumsqr(spin)
    points = [ca.DM(arm) for arm in arms]
    return ca.vertcat(*(spin * ca.dot(spin, r) - square * r for r in points))
