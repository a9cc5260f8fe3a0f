"""Distances between bodies that are kept: self-collision, and obstacles of the model.

The gap g of two geoms is accelerated by `g̈ = J a + J̇ v`. As a joint before its stop it obeys
`braking_rule.py`: the approach can be stopped before the margin. Over a delay the gap is predicted,
see `predicted_motion.py`. Which pairs are kept apart is judged at sampled poses, `kept_pairs.py`.

Rows of the nearest pairs hold a call of one Function, which finds the pairs. In C it stands before
the scalar terms of the tick: so the problem has symbols in their place, `Late`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.limits.braking_rule import braking_bound
from mbcasadi.control.limits.gap_braking import gap_braking
from mbcasadi.control.limits.joint_limits import ANY_BRAKING, RESERVE, require_reserve
from mbcasadi.control.limits.kept_pairs import (
    Criteria,
    KeptPairs,
    kept_pairs,
    near_poses,
)
from mbcasadi.control.limits.predicted_motion import predicted
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.description import Contact, TuningParameter
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.scalars import Late
from mbcasadi.model import geometry
from mbcasadi.model.geometry import DistanceRows
from mbcasadi.qp.rows import Bounded, Row, Rows, Sizes, moved_ends
from mbcasadi.shapes import column, require_name, require_numbers, require_positive, require_whole
from mbcasadi.system import System
from mbcasadi.system.contacts import contacts_of
from mbcasadi.system.geometry_contacts import GeometryContact

MARGIN = "distances.margin"
MARGIN_LENGTH = 5e-3
"""Default of the least distance, m."""


@final
@dataclass(frozen=True)
class DistanceLimits(Part):
    """Distances between geoms that are kept.

    Attributes:
        braking: deceleration of an approach that is relied on, m/s²; None for what the actuators
            give most pairs that are near, see `gap_braking.py`.
        margin: least distance, m; 0 until the surfaces touch.
        bodies: pairs with a geom of one of these bodies; None for all.
        pairs: pairs by name, "geom2 on geom1" as `mb.contacts_of` names them: these, and no others.
        reserve: share of `braking` that is not planned with, as in `JointLimits`.
        nearest: of more pairs than so many, those get rows in a tick whose geoms are nearest, by
            the capsules about them.
        smoothing: what rounded edges may take from a gap without a formula, and from those of the
            nearest, m.
        reach: pairs that no sampled pose brings nearer than this beyond the margin are left out, m.
        samples: poses at which pairs are judged, see `kept_pairs.py`; 0 to keep all but the
            contacts of the controller.
        start: (nq,) where the robot begins; None for the first keyframe, if the model has one.
            Pairs within the margin there are left out.
    """

    braking: float | None = None
    margin: float = MARGIN_LENGTH
    bodies: tuple[str, ...] | None = None
    pairs: tuple[str, ...] | None = None
    reserve: float = RESERVE
    nearest: int = 8
    smoothing: float = 5e-3
    reach: float = 0.02
    samples: int = 2000
    start: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        if self.braking is not None:
            require_positive(braking=self.braking)
        require_positive(nearest=self.nearest, smoothing=self.smoothing)
        require_numbers(margin=self.margin)
        require_reserve(self.reserve)
        require_whole(0, samples=self.samples)
        for name, length in (("margin", self.margin), ("reach", self.reach)):
            if not length >= 0:
                raise ProblemError(f"{name} = {length}; expected a distance that is not negative")
        if self.bodies is not None and self.pairs is not None:
            raise ProblemError("distances by bodies and by pairs; expected one of them")

    @checked
    def kept(self, system: System, contacts: Sequence[Contact] = ()) -> KeptPairs:
        """Return which pairs of geoms are kept apart, and why others are not.

        Args:
            system: read from a model.
            contacts: of the controller.

        Raises:
            ProblemError, UnknownNameError, ShapeError: as in `limited_distances`.
        """
        return limited_distances(system, self, contacts).kept

    def bind(self, design: Design) -> Bound:
        """Return the distances as bounds of accelerations, and their margin as `tuning`.

        Raises:
            ProblemError, UnknownNameError, ShapeError: as in `limited_distances`, and in
                `gap_braking` without `braking`.
        """
        distances = limited_distances(design.system, self, design.contacts)
        braking = ANY_BRAKING if self.braking is None else self.braking
        if self.braking is None and design.lowers and distances.names:
            chosen = distances.representatives
            criteria = criteria_of(design.system, self)
            braking = gap_braking(
                design.system,
                chosen,
                near_poses(design.system, [each.geoms for each in chosen], criteria),
                design.ranges,
                design.tick.length,
                design.added_inertia,
            )
        planned = (1.0 - self.reserve) * braking
        about = [
            Row(
                f"distance '{x}'", f"distance of {x}", "distances", ("distance", x), "m/s²", planned
            )
            for x in distances.names
        ]

        def rows(now: Instant, sizes: Sizes) -> list[Rows]:
            found, late = distances.at(now.q, now.v)
            if not found:
                return []
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

        margin = TuningParameter(MARGIN, self.margin, unit="m")
        return Bound(
            "distances",
            tuning=(margin,) if "limits" in design.tunable else (),
            positions=tuple(about),
            planned=tuple(range(design.system.nv)),
            notes=distances.notes
            | ({"braking of distances": f"{braking:.3g} m/s²"} if about else {}),
            rows=rows,
            path=path,
        )


class NearestPairs(NamedTuple):
    """Pairs of geoms of which the nearest get rows.

    Attributes:
        candidates: a contact of each pair.
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
            return tuple(f"{each.geom2} on {each.geom1}" for each in self.candidates)
        return tuple(f"nearest {k + 1}" for k in range(self.rows))


@dataclass(frozen=True)
class LimitedDistances:
    """The distances of a system that are kept.

    Attributes:
        contacts: spots and pairs, each with its gap, that have a row each.
        nearest: pairs of which the nearest have rows, or None.
        kept: pairs of geoms that are kept apart, and those that are not.
        without_formula: names of pairs that may touch, and that have no formula.
    """

    contacts: tuple[GeometryContact, ...]
    nearest: NearestPairs | None
    kept: KeptPairs
    without_formula: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pairs of the rows, in their order."""
        nearest = () if self.nearest is None else self.nearest.names
        return (*(contact.name for contact in self.contacts), *nearest)

    @property
    def representatives(self) -> tuple[GeometryContact, ...]:
        """A contact of each pair of geoms."""
        nearest = () if self.nearest is None else self.nearest.candidates
        by_geoms = {(each.geom1, each.geom2): each for each in (*self.contacts, *nearest)}
        return tuple(by_geoms.values())

    @property
    def notes(self) -> dict[str, str]:
        """What is kept apart, for a report."""
        notes = {"distances": self.kept.text}
        if self.without_formula:
            notes["distances without a formula"] = ", ".join(self.without_formula)
        return notes

    def at(self, q: ca.SX, v: ca.SX) -> tuple[list[tuple[ca.SX, ca.SX, ca.SX]], Late | None]:
        """Return J (1, nv), gap and J̇ v of each row at a state, and what they know late."""
        of_contacts = [
            (ca.SX(each.gap_jacobian(q)), each.gap(q)[0], each.gap_bias(q, v))
            for each in self.contacts
        ]
        if self.nearest is None:
            return of_contacts, None
        nearest, late = late_rows(self.nearest, (q, v))
        rows = range(self.nearest.rows)
        of_nearest = [(nearest.J[k, :], nearest.gap[k], nearest.bias[k]) for k in rows]
        return of_contacts + of_nearest, late


def limited_distances(
    system: System, limits: DistanceLimits, used: Sequence[Contact]
) -> LimitedDistances:
    """Return the pairs whose distance is kept.

    Args:
        system: read from a model.
        limits: what is kept.
        used: the controller's contacts.

    Raises:
        UnknownNameError: no such body or pair.
        ProblemError: pairs may touch, and none of them has a formula; or `bodies` have none that is
            kept apart.
        ShapeError: `start` has the wrong size.
    """
    touching = contacts_of(system, limits.bodies)
    if limits.pairs is not None:
        for name in limits.pairs:
            require_name("pair", name, [contact.name for contact in touching])
        contacts = [contact for contact in touching if contact.name in limits.pairs]
        names = dict.fromkeys((contact.geom1, contact.geom2) for contact in contacts)
        kept = KeptPairs(tuple(names), (), 0)
    else:
        kept = kept_pairs(system, touching, used, criteria_of(system, limits))
        pairs = set(kept.pairs)
        contacts = [contact for contact in touching if (contact.geom1, contact.geom2) in pairs]
    without = [f"{pair.geom2} on {pair.geom1}" for pair in touching.left_out]
    if not contacts and (without or limits.bodies is not None):
        why = f"; without a formula: {', '.join(without)}" if without else ""
        raise ProblemError(
            f"no distance of '{system.name}' is limited: no pair of geoms may touch that has a "
            f"formula and is no contact of the controller ({kept.text}){why}"
        )
    nearest = nearest_of(contacts, limits)
    apart = set(() if nearest is None else nearest.candidates)
    planes = {(each.geom1, each.geom2) for each in apart}
    return LimitedDistances(
        tuple(each for each in contacts if (each.geom1, each.geom2) not in planes),
        nearest,
        kept,
        () if limits.pairs is not None else tuple(without),
    )


def criteria_of(system: System, limits: DistanceLimits) -> Criteria:
    """Return when pairs of geoms count as near."""
    start, tree = None, system.tree
    assert tree is not None  # `contacts_of` requires one
    if limits.start is not None:
        start = column("start", limits.start, system.nq)
    elif tree.keyframes:
        start = np.array(tree.q0, dtype=float)
        start[: tree.nq_of_joints] = next(iter(tree.keyframes.values()))
    return Criteria(limits.margin, limits.reach, limits.smoothing, limits.samples, start)


def nearest_of(contacts: Sequence[GeometryContact], limits: DistanceLimits) -> NearestPairs | None:
    """Return the pairs of which the nearest get rows; None where all have formulas and few rows.

    A geom and a plane are one of these pairs, unless their spots are named.
    """
    own = [each for each in contacts if each.is_pair or limits.pairs is None]
    if len(own) <= limits.nearest and all(each.has_formula for each in own):
        return None
    pairs = {(each.geom1, each.geom2): each for each in own}
    candidates = tuple(pairs.values())
    return NearestPairs(candidates, min(limits.nearest, len(candidates)), limits.smoothing)


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
