"""Distances between bodies that are kept: self-collision, and obstacles of the model.

The gap g of two geoms is accelerated by `g̈ = J a + J̇ v`. As a joint before its stop it obeys
`braking_rule.py`: the approach can be stopped before the margin. Over a delay the gap is predicted,
see `predicted_motion.py`.


Rows of the nearest pairs hold a call of one Function, which finds the pairs. In C it stands before
the scalar terms of the tick: so the problem has symbols in their place, `Late`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import casadi as ca

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.limits.braking_rule import braking_bound
from mbcasadi.control.limits.joint_limits import RESERVE, require_reserve
from mbcasadi.control.limits.predicted_motion import predicted
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.description import TuningParameter
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.scalars import Late
from mbcasadi.model import geometry
from mbcasadi.model.geometry import DistanceRows
from mbcasadi.qp.rows import Bounded, Row, Rows, Sizes, moved_ends
from mbcasadi.shapes import require_name, require_numbers, require_positive
from mbcasadi.system import System
from mbcasadi.system.contacts import contacts_of
from mbcasadi.system.geometry_contacts import GeometryContact

MARGIN = "distances.margin"


@final
@dataclass(frozen=True)
class DistanceLimits(Part):
    """Distances between geoms that are kept.

    Attributes:
        braking: deceleration of an approach that is relied on, m/s².
        margin: least distance, m; 0 until the surfaces touch.
        bodies: pairs with a geom of one of these bodies; None for all. Pairs that are contacts of
            the controller are left out.
        pairs: pairs by name, "geom2 on geom1" as `mb.contacts_of` names them, in place of `bodies`.
        reserve: share of `braking` that is not planned with, as in `JointLimits`.
        nearest: of more pairs than so many, those get rows in a tick whose geoms are nearest, by
            the capsules about them. Spots on planes have rows of their own.
        smoothing: what rounded edges may take from a gap without a formula, and from those of the
            nearest, m.
    """

    braking: float
    margin: float = 0.0
    bodies: tuple[str, ...] | None = None
    pairs: tuple[str, ...] | None = None
    reserve: float = RESERVE
    nearest: int = 8
    smoothing: float = 5e-3

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(braking=self.braking, nearest=self.nearest, smoothing=self.smoothing)
        require_numbers(margin=self.margin)
        require_reserve(self.reserve)
        if self.margin < 0:
            raise ProblemError(f"margin = {self.margin}; expected a distance that is not negative")
        if self.bodies is not None and self.pairs is not None:
            raise ProblemError("distances by bodies and by pairs; expected one of them")

    def bind(self, design: Design) -> Bound:
        """Return the distances as bounds of accelerations, and their margin as `tuning`.

        Raises:
            ProblemError, UnknownNameError: as in `limited_distances`.
        """
        used = [contact.frame for contact in design.contacts]
        distances = limited_distances(design.system, self, used)
        planned = (1.0 - self.reserve) * self.braking
        about = [
            Row(
                f"distance '{x}'", f"distance of {x}", "distances", ("distance", x), "m/s²", planned
            )
            for x in distances.names
        ]

        def rows(now: Instant, sizes: Sizes) -> list[Rows]:
            found, late = distances.at(now.q, now.v)
            lower = []
            for J, gap, bias in found:
                left = gap - now.tuning.get(MARGIN, self.margin)
                along = [J @ a + bias for a in now.plans]
                left, rate = predicted(left, J @ now.v, along, design.tick)
                lower.append(-braking_bound(left, -rate, planned, design.tick) - bias)
            own = sizes.rows(
                about,
                ca.vertcat(ca.SX(0, 1), *lower),
                UNBOUNDED * ca.SX.ones(len(about)),
                C_a=ca.sparsify(ca.vertcat(ca.SX(0, sizes.nv), *(J for J, _, _ in found))),
            )
            return [replace(own, late=late)]

        def margin_of(now: Instant) -> ca.SX | float:
            return now.tuning.get(MARGIN, self.margin)

        def path(now: Instant) -> list[Bounded]:
            found, late = distances.at(now.q, now.v)
            gaps = [gap for _, gap, _ in found]
            gaps = gaps if late is None else late.put_into(gaps)
            return [
                moved_ends(Bounded(gap, self.margin, name=row.name), margin_of(now), float("inf"))
                for gap, row in zip(gaps, about, strict=True)
            ]

        left_out = ", ".join(distances.left_out)
        margin = TuningParameter(MARGIN, self.margin, unit="m")
        return Bound(
            "distances",
            tuning=(margin,) if "limits" in design.tunable else (),
            positions=tuple(about),
            planned=tuple(range(design.system.nv)),
            notes={"distances without a formula": left_out} if left_out else {},
            rows=rows,
            path=path,
        )


class NearestPairs(NamedTuple):
    """Pairs of convex geoms of which the nearest get rows.

    Attributes:
        candidates: the pairs.
        rows: number of rows.
        smoothing: what rounded edges may take from a gap, m.
    """

    candidates: tuple[GeometryContact, ...]
    rows: int
    smoothing: float

    @property
    def names(self) -> tuple[str, ...]:
        """Of the rows: those of the pairs, or the rank where pairs are chosen in each tick."""
        if self.rows == len(self.candidates):
            return tuple(contact.name for contact in self.candidates)
        return tuple(f"nearest {k + 1}" for k in range(self.rows))


@dataclass(frozen=True)
class LimitedDistances:
    """The distances of a system that are kept.

    Attributes:
        contacts: pairs, each with its gap, that have a row each.
        nearest: pairs of which the nearest have rows, or None.
        left_out: names of pairs that may touch, and that have no formula.
    """

    contacts: tuple[GeometryContact, ...]
    nearest: NearestPairs | None
    left_out: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pairs of the rows, in their order."""
        nearest = () if self.nearest is None else self.nearest.names
        return (*(contact.name for contact in self.contacts), *nearest)

    def at(self, q: ca.SX, v: ca.SX) -> tuple[list[tuple[ca.SX, ca.SX, ca.SX]], Late | None]:
        """Return J (1, nv), gap and J̇ v of each row at a state, and what they know late."""
        found = [
            (ca.SX(each.gap_jacobian(q)), each.gap(q)[0], each.gap_bias(q, v))
            for each in self.contacts
        ]
        if self.nearest is None:
            return found, None
        known, late = late_rows(self.nearest, (q, v))
        rows = range(self.nearest.rows)
        return found + [(known.J[k, :], known.gap[k], known.bias[k]) for k in rows], late


def limited_distances(
    system: System, limits: DistanceLimits, used: Sequence[str]
) -> LimitedDistances:
    """Return the pairs whose distance is kept.

    Args:
        system: read from a model.
        limits: what is kept.
        used: frames of the controller's contacts.

    Raises:
        UnknownNameError: no such body or pair.
        ProblemError: no pair that may touch has a formula.
    """
    found = contacts_of(system, limits.bodies)
    contacts = [contact for contact in found if contact.name not in used]
    if limits.pairs is not None:
        for name in limits.pairs:
            require_name("pair", name, [contact.name for contact in found])
        contacts = [contact for contact in found if contact.name in limits.pairs]
    left_out = [f"{pair.geom2} on {pair.geom1}" for pair in found.left_out]
    if not contacts:
        why = f"; without a formula: {', '.join(left_out)}" if left_out else ""
        raise ProblemError(
            f"no distance of '{system.name}' is limited: no pair of geoms may touch that has a "
            f"formula and is no contact of the controller{why}"
        )
    nearest = nearest_of(contacts, limits.nearest, limits.smoothing)
    return LimitedDistances(
        tuple(contact for contact in contacts if nearest is None or not contact.is_pair),
        nearest,
        () if limits.pairs is not None else tuple(left_out),
    )


def nearest_of(
    contacts: Sequence[GeometryContact], count: int, smoothing: float
) -> NearestPairs | None:
    """Return the pairs of which the nearest get rows; None where all have formulas and few rows."""
    candidates = tuple(contact for contact in contacts if contact.is_pair)
    if len(candidates) <= count and all(contact.has_formula for contact in candidates):
        return None
    return NearestPairs(candidates, min(count, len(candidates)), smoothing)


def late_rows(nearest: NearestPairs, state: tuple[ca.SX, ca.SX]) -> tuple[DistanceRows, Late]:
    """Return the rows as symbols, and what they stand for.

    Args:
        nearest: the pairs.
        state: q, v.
    """
    pairs = [contact.geoms for contact in nearest.candidates]
    tree = nearest.candidates[0].tree
    values = geometry.nearest_rows(tree, pairs, nearest.rows, nearest.smoothing, state)
    symbols = DistanceRows(*(ca.SX.sym("late", *x.shape) for x in values))
    flat = [ca.vertcat(*map(ca.vec, rows)) for rows in (symbols, values)]
    return symbols, Late(flat[0], flat[1])
