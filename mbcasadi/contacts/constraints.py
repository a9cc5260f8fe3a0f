"""Contacts as constraint rows of a system, and the forces that their multipliers stand for.

Points of one rigid body move with `E (v, ω)`, where E (3k, 6) has the rows n, t1, t2 of each point.
Independent rows are kept, at most six for each body: normals of points far from each other, both
tangents of the first point, and the velocity of the furthest one across the line between them,

    (n × d)·v / |d_0|,   d from the first point to this one,  `<contact>.turn`.

It turns with the body: of tangents that are fixed in the world any choice of three depends on each
other once the foot has turned so far. A normal is a row of positions, `n·(p - p_0) = 0`; the others
are of velocities: a foot that is lifted and put down elsewhere keeps its new place.

The forces on all points of a body, of least squares among those that move it alike, are

    f = Π Pᵀ lam,   Π the projector on range(E),   P the rows that are kept.
"""

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.contacts.friction_cone import (
    FORCE_AXES,
    contact_axes,
    require_constant_normals,
    require_contacts,
)
from mbcasadi.contacts.groups import CONSTANT_RANK_TOL, ContactGroup, contact_groups_of, twist_map
from mbcasadi.description import Contact, PointRow
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import unique
from mbcasadi.system import System
from mbcasadi.system.coordinates import pose_of, start_pose
from mbcasadi.system.parametric_system import expose_parameters

Array = NDArray[np.float64]

ROW_AXES = (*FORCE_AXES, "turn")
"""Names of the rows of a point: its velocity along these axes, and across the line from the first
point of its body."""

TURN = ROW_AXES.index("turn")


@checked
def with_contacts(
    system: System, contacts: Sequence[Contact], q0: ArrayLike | None = None
) -> System:
    """Return the system with contacts as further rows: `<contact>.n`, `.t1`, `.t2`, `.turn`.

    Dynamics, equilibria, linearisations and optimal control of it have feet that neither leave the
    ground nor slide; `with_mask` makes them switch, those of one body together, and `row_mask` a
    mask by their names. Friction cones are limits of the multipliers: see `contact_force_fun`.

    Args:
        system: the mechanism.
        contacts: that stick, on the world or on another body.
        q0: (nq,) pose in which they touch; a key frame or the initial pose by default.

    Raises:
        ProblemError: contacts that slide, that are rows of the system already, or of no cone.
        UnknownNameError: a contact's frame is not in the model.
        ShapeError: a wrong shape of q0.
    """
    require_contacts(contacts)
    require_constant_normals(contacts)
    sliding = [contact.frame for contact in contacts if contact.slides]
    if sliding:
        raise ProblemError(f"contact '{sliding[0]}' slides; expected contacts that stick")
    base = system.carried
    pose = pose_of(base, "q0", start_pose(base) if q0 is None else q0)
    names = unique([contact.frame for contact in contacts])
    q, v = ca.SX.sym("q", base.nq), ca.SX.sym("v", base.nv)
    heights, slips = [ca.SX(0, 1)], [ca.SX(0, base.nv)]
    labels: tuple[list[tuple[str, tuple[str, ...]]], ...] = [], []  # of heights, of slips
    of_points: tuple[list[PointRow | None], ...] = [], []
    for group in contact_groups_of(base, contacts):
        points, of_body = GroupPoints(group, contacts, q), tuple(names[i] for i in group.members)
        for point, axis in points.independent(pose):
            labels[axis > 0].append((f"{of_body[point]}.{ROW_AXES[axis]}", of_body))
            of_points[axis > 0].append(points.row_of(point, axis))
            if axis:
                slips.append(points.rate(point, axis))
            else:
                heights.append(points.height(point, pose))
    own = tuple(name for part in labels for name, _ in part)
    there = next((name for name in own if name in base.constraint_names), None)
    if there is not None:
        raise ProblemError(f"'{base.name}' has a row {there!r} already; expected other contacts")
    phi, A = ca.vertcat(*heights), ca.vertcat(*slips)
    added = base.with_rows(q, v, phi=phi) if labels[0] else base
    added = added.with_rows(q, v, A=A) if labels[1] else added
    named = replace(
        added,
        row_names=(*base.row_names, *own),
        row_owners=(*base.row_owners, *(owners for part in labels for _, owners in part)),
        point_rows=(*base.point_rows, *_placed([*of_points[0], *of_points[1]], base.nc)),
        _cache={},
    )
    return named if base is system else expose_parameters(system, named)


def _placed(rows: Sequence[PointRow | None], first: int) -> list[PointRow]:
    """Return the rows of points with their places, counted from `first`."""
    return [replace(row, row=first + k) for k, row in enumerate(rows) if row is not None]


@checked
def contact_force_fun(system: System, contacts: Sequence[Contact]) -> ca.Function:
    """Return (q, lam) → (f): the forces (3 nc,) on all contacts, n, t1, t2 of each, N.

    Args:
        system: with these contacts, from `with_contacts`.
        contacts: those that were given there.

    Raises:
        ProblemError: a system without their rows, or contacts of no cone.
    """
    require_contacts(contacts)
    base = system.carried
    q, lam = ca.SX.sym("q", base.nq), ca.SX.sym("lam", base.nc)
    places = {name: i for i, name in enumerate(base.constraint_names)}
    names = unique([contact.frame for contact in contacts])
    forces = ca.SX(3 * len(contacts), 1)
    for group in contact_groups_of(base, contacts):
        rows = [[f"{names[i]}.{axis}" for axis in ROW_AXES] for i in group.members]
        kept = [
            (k, axis, places[row])
            for k, own in enumerate(rows)
            for axis, row in enumerate(own)
            if row in places
        ]
        if not kept:
            raise ProblemError(
                f"'{base.name}' has no rows of contact '{names[group.members[0]]}'; expected a "
                "system from with_contacts, and its contacts"
            )
        points, own = GroupPoints(group, contacts, q), ca.SX(3 * len(rows), 1)
        for k, axis, row in kept:
            own[3 * k : 3 * k + 3] += points.along(k, axis) * lam[row]
        shared = points.shared(own)
        for k, i in enumerate(group.members):
            forces[3 * i : 3 * i + 3] = shared[3 * k : 3 * k + 3]
    return ca.Function("contact_force", [q, lam], [forces], ["q", "lam"], ["f"])


class GroupPoints:
    """The points of one body at a symbolic configuration."""

    def __init__(self, group: ContactGroup, contacts: Sequence[Contact], q: ca.SX) -> None:
        self.group, self.q = group, q
        self.is_fixed = not any(contacts[i].other for i in group.members)
        normals = [np.asarray(contacts[i].normal, dtype=float) for i in group.members]
        self.axes = [contact_axes(normal) for normal in normals]
        self.centre, R = (ca.SX(x) for x in group.frame.pose(q))
        self.R = R if len(group.members) > 1 else ca.SX.eye(3)
        self.J = ca.SX(group.frame.jacobian(q))

    def row_of(self, point: int, axis: int) -> PointRow | None:
        """Return a row as that of a body's point, or None: of rolling points, between bodies."""
        carrier = self.group.frame.carrier
        if not self.is_fixed or carrier is None or carrier.body is None or carrier.rolling:
            return None
        anchor = np.asarray(carrier.point) + self.group.arms[point]
        if axis == TURN:
            return PointRow(0, carrier.body, anchor, None, of_position=False)
        return PointRow(0, carrier.body, anchor, self.axes[point][axis], of_position=axis == 0)

    def along(self, point: int, axis: int) -> ca.SX:
        """Return the direction (3, 1) of a row in the axes of its point."""
        if axis != TURN:
            return ca.SX.eye(3)[:, axis]
        axes, line = self.axes[point], self.group.arms[point] - self.group.arms[0]
        way = ca.DM(line / (np.linalg.norm(line) or 1.0))
        return ca.DM(axes) @ ca.cross(ca.DM(axes[0]), self.R @ way)

    def rates(self, point: int) -> ca.SX:
        """Return the rows (3, nv) of a point's velocity along n, t1, t2."""
        return ca.vertcat(*(self.rate(point, axis) for axis in range(len(FORCE_AXES))))

    def rate(self, point: int, axis: int) -> ca.SX:
        """Return the row (1, nv) of a point's velocity along an axis of `ROW_AXES`."""
        r = self.R @ ca.DM(self.group.arms[point])
        along = self.along(point, axis).T @ ca.DM(self.axes[point])
        return along @ (self.J[:3, :] - ca.skew(r) @ self.J[3:, :])

    def height(self, point: int, pose: Array) -> ca.SX:
        """Return the height of a point over where it is at a pose."""
        place = self.centre + self.R @ ca.DM(self.group.arms[point])
        height = ca.dot(ca.DM(self.axes[point][0]), place)
        return height - float(ca.Function("height", [self.q], [height])(pose))

    def independent(self, pose: Array) -> list[tuple[int, int]]:
        """Return point and axis of independent rows at a pose, normals first."""
        R = np.array(ca.Function("R", [self.q], [self.R])(pose))
        turns = scipy.linalg.block_diag(*(axes @ R for axes in self.axes))
        E = turns @ twist_map(self.group.arms)
        E[:, 3:] /= np.abs(self.group.arms).max() or 1.0
        points, chosen, rows = self._far_apart(R), list[tuple[int, int]](), np.zeros((0, 6))
        candidates = [*((i, 0) for i in points), (0, 1), (0, 2)]
        candidates += [(points[1], TURN)] if len(points) > 1 else []
        for point, axis in [*candidates, *((i, k) for i in points[1:] for k in (1, 2))]:
            along = ca.Function("along", [self.q], [self.along(point, axis)])(pose).full()
            more = np.vstack([rows, along.T @ E[3 * point : 3 * point + 3]])
            if np.linalg.matrix_rank(more, tol=CONSTANT_RANK_TOL) == len(more):
                chosen, rows = [*chosen, (point, axis)], more
        return chosen

    def _far_apart(self, R: Array) -> list[int]:
        """Return the points, the first one and those furthest from it and from the line first."""
        n = self.axes[0][0]
        over = (self.group.arms - self.group.arms[0]) @ R.T
        flat = over - np.outer(over @ n, n)
        furthest = int(np.linalg.norm(flat, axis=1).argmax())
        off_line = int(np.abs(flat @ np.cross(n, flat[furthest])).argmax())
        return list(dict.fromkeys([0, furthest, off_line, *range(len(flat))]))

    def shared(self, force: ca.SX) -> ca.SX:
        """Return the forces of least squares that move the body like these, along the axes."""
        if len(self.axes) == 1:
            return force
        U, s, _ = np.linalg.svd(twist_map(self.group.arms), full_matrices=False)
        U = U[:, s > CONSTANT_RANK_TOL * s[0]]
        turns = ca.diagcat(*(ca.DM(axes) @ self.R for axes in self.axes))
        return turns @ (ca.DM(U @ U.T) @ (turns.T @ force))
