"""Friction pyramids inside or around Coulomb's cone, as constant rows.

The cone is `|f_t| <= mu f_n`. A pyramid with N sides lies inside it when its faces are at the
edges of the inscribed polygon, at `cos(π/N)` of the radius:

    d_iᵀ f_t <= mu cos(π/N) f_n,   d_i = (cos 2πi/N, sin 2πi/N),   i = 0 … N-1.

Every force that satisfies these rows is inside the cone. The loss is up to 29 % of the friction in
the direction of a face with N = 4, and up to 8 % with N = 8. The rows imply `f_n >= 0`.

The outer pyramid has no factor `cos(π/N)`: its faces touch the cone, and a force at its edges may
exceed the friction by `1/cos(π/N)`.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.contacts.wheels import require_wheel
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_choice, require_kind, require_positive

Array = NDArray[np.float64]

MIN_SIDES, MAX_SIDES = 3, 360
"""Sides of a pyramid; each is a row of the QP. 64 leave 0.1 % of the friction unused."""
LEAST_COMPONENT = 1e-15
"""Cosines below this are zeros of the table, written with rounding errors."""


def contact_axes(normal: Array) -> Array:
    """Return (3, 3) rows n, t1, t2: a right-handed frame on the unit `normal`, world axes.

    `t1` is the world's x axis, projected onto the tangent plane; the y axis where the normal
    is within 45° of x. A vertical normal has `t1 = x`, `t2 = y`.
    """
    n = normal / np.linalg.norm(normal)
    along = np.array([0.0, 1.0, 0.0]) if abs(n[0]) > np.sqrt(0.5) else np.array([1.0, 0.0, 0.0])
    t1 = along - n * (n @ along)
    t1 /= np.linalg.norm(t1)
    return np.vstack([n, t1, np.cross(n, t1)])


def pyramid_rows(friction: float, sides: int, *, outer: bool = False) -> ca.DM:
    """Return (sides, 3) rows D with `D (f_n, f_t1, f_t2) <= 0`, the inner or outer pyramid.

    Args:
        friction: Coulomb coefficient mu, positive.
        sides: number of faces, at least 3.
        outer: whether the cone is inside.
    """
    return ca.sparsify(ca.horzcat(_normal_column(friction, sides, outer), _tangents(sides)))


def force_rows(contact: Contact, *, outer: bool = False) -> tuple[Array, Array]:
    """Return rows D (k, 3) and ends (k, 2), `lower <= D (f_n, f_t1, f_t2) <= upper`.

    The inner or outer pyramid, one-sided rows, and the normal force as the last row, where it has a
    limit.
    """
    D = pyramid_rows(contact.friction, contact.sides, outer=outer).full()
    faces = np.column_stack([np.full(len(D), -np.inf), contact.adhesion * -D[:, 0]])
    if contact.min_force <= 0 and contact.max_force is None:
        return D, faces
    highest = np.inf if contact.max_force is None else contact.max_force
    return np.vstack([D, [1.0, 0.0, 0.0]]), np.vstack([faces, [contact.min_force, highest]])


def tuned_pyramid_rows(friction: ca.SX, sides: int, *, outer: bool = False) -> ca.SX:
    """Return `pyramid_rows` of an expression."""
    column = friction * _normal_column(1.0, sides, outer)
    return ca.sparsify(ca.horzcat(column, ca.SX(_tangents(sides))))


def _normal_column(friction: float, sides: int, outer: bool) -> ca.DM:
    share = 1.0 if outer else np.cos(np.pi / sides)
    return ca.DM(np.full(sides, -friction * share))


def _tangents(sides: int) -> ca.DM:
    angle = 2 * np.pi * np.arange(sides) / sides
    rows = np.column_stack([np.cos(angle), np.sin(angle)])
    rows[np.abs(rows) < LEAST_COMPONENT] = 0.0
    return ca.sparsify(ca.DM(rows))


CONES = ("inner", "outer", "quadratic")
"""What stands for a friction cone in a QP, see `Contact`."""

FORCE_AXES = ("n", "t1", "t2")


def require_sides(label: str, sides: int) -> None:
    """Raise `ProblemError` unless a pyramid has a whole number of sides, 3 to 360."""
    if not (MIN_SIDES <= sides <= MAX_SIDES and sides == int(sides)):
        raise ProblemError(
            f"{label}: {sides} sides; expected a whole number, at least {MIN_SIDES} and at most "
            f"{MAX_SIDES}: each is a row of the QP"
        )


def require_contacts(contacts: Sequence[Contact], *, wheels: bool = False) -> None:
    """Raise unless each contact has a friction cone.

    Args:
        contacts: to check.
        wheels: whether they may be of wheels.

    Raises:
        ProblemError: friction, sides, kind of cone, normal or force limits that define no cone.
    """
    for contact in contacts:
        require_kind("contact", contact, Contact)
        require_fields(contact)
        label = f"contact {contact.frame!r}"
        normal = np.asarray(contact.normal, dtype=float)
        length = float(np.linalg.norm(normal)) if normal.shape == (3,) else 0.0
        if not np.isfinite(length) or length == 0:
            raise ProblemError(
                f"{label}: normal {contact.normal}; expected three numbers, not zero"
            )
        glides = contact.slides and contact.friction == 0
        if not (np.isfinite(contact.friction) and (contact.friction > 0 or glides)):
            raise ProblemError(f"{label}: friction {contact.friction}; expected a positive number")
        require_wheel(contact, able=wheels)
        require_sides(label, contact.sides)
        require_choice(f"{label}: cone", contact.cone, CONES)
        if not (np.isfinite(contact.adhesion) and contact.adhesion >= 0):
            raise ProblemError(f"{label}: adhesion {contact.adhesion} N; expected zero or more")
        if contact.slides and contact.geoms is not None:
            raise ProblemError(
                f"{label}: slides between {contact.geoms[0]!r} and {contact.geoms[1]!r}, whose "
                "normal turns; expected one that sticks, or a plane of the world"
            )
        if contact.slides and contact.adhesion:
            raise ProblemError(
                f"{label}: slides with an adhesion of {contact.adhesion} N; expected none"
            )
        require_positive(**{f"{label}: slide_speed": contact.slide_speed})
        highest = np.inf if contact.max_force is None else contact.max_force
        if not 0 <= contact.min_force <= highest or not np.isfinite(contact.min_force):
            raise ProblemError(
                f"{label}: normal force from {contact.min_force} to {contact.max_force} N; "
                "expected 0 <= min_force <= max_force"
            )


def require_ground(contacts: Sequence[Contact]) -> None:
    """Raise `ProblemError` for contacts with a body that moves, with adhesion, or that slide."""
    require_constant_normals(contacts)
    for contact in contacts:
        if contact.other or contact.adhesion or contact.slides:
            raise ProblemError(
                f"contact {contact.frame!r}: other {contact.other!r}, adhesion {contact.adhesion}, "
                f"slides {contact.slides}; expected a contact with the world that only pushes and "
                "does not slide: others are for InverseDynamicsQP"
            )


def require_constant_normals(contacts: Sequence[Contact]) -> None:
    """Raise `ProblemError` for contacts of two geoms whose normal turns with them."""
    for contact in contacts:
        if contact.geoms is not None:
            raise ProblemError(
                f"contact {contact.frame!r}: its normal turns with its geoms; expected a plane of "
                "the world or a frame with a constant normal: others are for InverseDynamicsQP"
            )
