"""The contacts of a model, from its own geometry."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description import RigidTree
from mbcasadi.errors import ProblemError, UnsupportedFeatureError
from mbcasadi.model import geometry
from mbcasadi.shapes import column, require_numbers
from mbcasadi.short_text import with_table
from mbcasadi.system.cylinder_soles import with_soles
from mbcasadi.system.geom_pairs import TouchingPair, is_static, touching_pairs
from mbcasadi.system.geometry_contacts import (
    SMOOTHING,
    GeometryContact,
    contact_of_pair,
    placed,
)
from mbcasadi.system.missing_ground import GROUNDS, require_ground_name
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.system.system import System

Array = NDArray[np.float64]

SHOWN_PAIRS = 8
"""Pairs of geoms that a `repr` names."""


@dataclass(frozen=True)
class LeftOut:
    """A pair of geoms that may touch in MuJoCo and has no formula here.

    Attributes:
        geom1, geom2: their names.
        reason: why.
    """

    geom1: str
    geom2: str
    reason: str


@with_table
@dataclass(frozen=True)
class GeometryContacts(Sequence[GeometryContact]):
    """The contacts of a model's geometry, as a sequence.

    Attributes:
        contacts: in MuJoCo's order of bodies.
        left_out: pairs that may touch and have no formula.
    """

    contacts: tuple[GeometryContact, ...]
    left_out: tuple[LeftOut, ...]

    def _summary(self) -> dict[str, object]:
        used = {c.name: f"friction {c.friction[0]:g}, condim {c.condim}" for c in self}
        without = {f"left out: {each.geom2} on {each.geom1}": each.reason for each in self.left_out}
        return {**used, **without}

    def __repr__(self) -> str:
        pairs = dict.fromkeys(f"{c.geom2} on {c.geom1}" for c in self.contacts)
        more = f", ... {len(pairs) - SHOWN_PAIRS} more" if len(pairs) > SHOWN_PAIRS else ""
        shown = ", ".join(list(pairs)[:SHOWN_PAIRS]) + more
        without = f"; {len(self.left_out)} pairs left out" if self.left_out else ""
        return f"GeometryContacts({len(self)} points: {shown}{without})"

    @overload
    def __getitem__(self, index: int) -> GeometryContact: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[GeometryContact, ...]: ...
    def __getitem__(self, index: int | slice) -> GeometryContact | tuple[GeometryContact, ...]:
        """Return one contact, or several."""
        return self.contacts[index]

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.contacts)

    def __iter__(self) -> Iterator[GeometryContact]:
        """Iterate over the contacts."""
        return iter(self.contacts)


@checked
def contacts_of(
    system: System,
    bodies: Sequence[str] | None = None,
    ground: str | None = None,
    *,
    geoms: Sequence[str] | None = None,
    q: ArrayLike | None = None,
    smoothing: float = SMOOTHING,
) -> GeometryContacts:
    """Return the contacts of a model's geometry: gaps, points, normals, friction and Jacobians.

    Two geoms may touch where MuJoCo's rules say so: contype and conaffinity, bodies that are fixed
    to each other, parents, `<exclude>` and `<pair>`. Planes, spheres, capsules, ellipsoids,
    cylinders, boxes and meshes have formulas or an iteration of fixed length; other pairs are in
    `left_out`. Meshes stand for their convex hulls, and may be larger by `GeometryContact.excess`.
    Functions are built when they are first used.

    Args:
        system: read from a model.
        bodies: only pairs with a geom of one of these bodies; None for all.
        ground: only pairs with this geom, which is fixed to the world; None for all.
        geoms: only pairs with one of these geoms, as the feet among other geoms of a calf; None for
            all.
        q: (nq,) configuration at which the sides are chosen that touch a plane: of a box the four
            corners of the face that looks most towards it; of a cylinder three points of the rim
            where it stands within 30°, else the lowest points of both rims, fixed to it where its
            body lies on other points beside it; of a mesh the corners of the polygon that its
            lowest vertices span. By default the authored configuration.
        smoothing: pairs whose nearest points jump, as from edge to edge of two boxes, are computed
            with rounded edges, which takes at most so much from the gap, m; 0 for sharp ones.

    Returns:
        The contacts as a sequence, explicit pairs first.

    Raises:
        UnknownNameError: no such body or geom; the message lists the valid names.
        UnsupportedFeatureError: the ground is of a kind without any formula.
        ProblemError: the system has no geometry; the ground is not fixed to the world; bodies,
            ground or geoms are named and nothing of them may touch; or smoothing is negative.
        ShapeError: q has the wrong shape.
    """
    tree = system.tree
    if tree is None:
        raise ProblemError(
            f"'{system.name}' is given by equations and has no geometry; expected a system of "
            "read_mjcf, or a frame of System.with_frame with a Contact"
        )
    names = [body.name for body in tree.bodies]
    for body in bodies or ():
        require_name_of(system, "body", body, names)
    for geom in geoms or ():
        require_name_of(system, "geom", geom, [each.name for each in tree.geoms])
    if ground is not None:
        _require_ground(tree, ground)
    chosen = [
        pair for pair in touching_pairs(tree) if _is_chosen(tree, pair, bodies, ground, geoms)
    ]
    if not chosen and not (bodies is None and ground is None and geoms is None):
        of_bodies = "any body" if bodies is None else ", ".join(map(repr, bodies)) or "no body"
        of_geoms = f"none of {', '.join(map(repr, geoms))}" if geoms else "no geom"
        on = "another geom" if ground is None else repr(ground)
        raise ProblemError(
            f"{of_geoms} of {of_bodies} may touch {on}; expected geoms that MuJoCo lets touch: see "
            "contype, conaffinity, <exclude> and <pair>, and read the file that holds the floor"
        )
    at = column("q", tree.q0 if q is None else q, tree.nq)
    require_numbers(smoothing=smoothing)
    if smoothing < 0:
        raise ProblemError(f"smoothing = {smoothing}; expected a length that is not negative")
    found = [_contacts_of_pair(tree, pair, at, smoothing) for pair in chosen]
    touching = [c for each in found if not isinstance(each, LeftOut) for c in each]
    return GeometryContacts(
        contacts=tuple(with_soles(touching, at)),
        left_out=tuple(each for each in found if isinstance(each, LeftOut)),
    )


def _require_ground(tree: RigidTree, ground: str) -> None:
    """Raise unless a geom is fixed to the world and of a kind with a formula."""
    geoms = {geom.name: geom for geom in tree.geoms}
    require_ground_name(tree, ground)
    geom = geoms[ground]
    if not is_static(tree, geom):
        raise ProblemError(
            f"ground {ground!r} is a geom of body {tree.bodies[geom.body].name!r}, which moves; "
            "expected one that is fixed to the world; for two bodies that move, name bodies="
        )
    if geom.kind not in GROUNDS:
        raise UnsupportedFeatureError(
            f"ground {ground!r} is a {geom.kind}, which has no formula here; expected one of "
            f"{', '.join(GROUNDS)}"
        )


def _is_chosen(
    tree: RigidTree,
    pair: TouchingPair,
    bodies: Sequence[str] | None,
    ground: str | None,
    geoms: Sequence[str] | None,
) -> bool:
    """Return whether a pair has a geom of one of the bodies, the ground, and one of the geoms."""
    both = (pair.first, pair.second)
    of_bodies = bodies is None or any(tree.bodies[geom.body].name in bodies for geom in both)
    on_ground = ground is None or any(geom.name == ground for geom in both)
    return of_bodies and on_ground and (geoms is None or any(geom.name in geoms for geom in both))


def _contacts_of_pair(
    tree: RigidTree, pair: TouchingPair, q: Array, smoothing: float
) -> tuple[GeometryContact, ...] | LeftOut:
    """Return the contacts of two geoms, or why there are none.

    Args:
        tree: the mechanism.
        pair: of the tree.
        q: (nq,) configuration at which the sides of boxes and cylinders that touch are chosen.
        smoothing: what rounded edges may take from a gap, m.
    """
    first, second = pair.first, pair.second

    if first.kind == "plane" and geometry.spots(second):
        R1, R2 = (np.array(ca.evalf(placed(tree, geom, ca.SX(q)).R)) for geom in (first, second))
        spots = geometry.facing_spots(second, R2, R1[:, 2])
        return tuple(contact_of_pair(tree, pair, spot, smoothing) for spot in spots)
    if geometry.summands(first) is not None and geometry.summands(second) is not None:
        return (contact_of_pair(tree, pair, None, smoothing),)
    reason = f"a {first.kind} against a {second.kind} has no formula here"
    return LeftOut(first.name, second.name, reason)
