"""Distances between bodies that are kept: self-collision, and obstacles of the model.

The gap g of two geoms is accelerated by `g̈ = J a + J̇ v`. As a joint before its stop it obeys
`braking_rule.py`: the approach can be stopped before the margin. Over a delay the gap is predicted,
see `predicted_motion.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.inequalities import Rows, Sizes
from mbcasadi.control.inverse_dynamics.limits.braking_rule import Tick, braking_bound
from mbcasadi.control.inverse_dynamics.limits.joint_limits import RESERVE, require_reserve
from mbcasadi.control.inverse_dynamics.limits.nearest_distances import (
    NearestPairs,
    late_rows,
    nearest_of,
)
from mbcasadi.control.inverse_dynamics.limits.predicted_motion import predicted
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.scalars import Late
from mbcasadi.shapes import require_name, require_numbers, require_positive
from mbcasadi.system import System
from mbcasadi.system.contacts import contacts_of
from mbcasadi.system.geometry_contacts import GeometryContact


@dataclass(frozen=True)
class DistanceLimits:
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

    @property
    def planned(self) -> float:
        """Deceleration that is planned with, m/s²."""
        return (1.0 - self.reserve) * self.braking


@dataclass(frozen=True)
class LimitedDistances:
    """The distances of a system that are kept.

    Attributes:
        contacts: pairs, each with its gap, that have a row each.
        nearest: pairs of which the nearest have rows, or None.
        left_out: names of pairs that may touch, and that have no formula.
        limits: margin and braking.
    """

    contacts: tuple[GeometryContact, ...]
    nearest: NearestPairs | None
    left_out: tuple[str, ...]
    limits: DistanceLimits

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the rows, in their order."""
        nearest = () if self.nearest is None else self.nearest.names
        names = (*(contact.name for contact in self.contacts), *nearest)
        return tuple(f"distance '{name}'" for name in names)


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
        limits,
    )


def distance_rows(
    distances: LimitedDistances | None,
    state: tuple[ca.SX, ca.SX],
    plans: Sequence[ca.SX],
    tick: Tick,
    sizes: Sizes,
    tuning: Mapping[str, ca.SX],
) -> tuple[Rows, Late | None]:
    """Return the limits of distances as bounds of accelerations, and what they know late.

    Args:
        distances: what is limited; None for no row.
        state: q, v as they were measured.
        plans: (nv,) accelerations until the tick that is planned, the first one first.
        tick: that is planned.
        sizes: of the unknowns.
        tuning: entries of `tuning`, by name: `distances.margin`.
    """
    rows, lower, late = [ca.SX(0, sizes.nv)], [ca.SX(0, 1)], None

    def add(J: ca.SX, gap: ca.SX, bias: ca.SX) -> None:
        assert distances is not None
        left = gap - tuning.get("distances.margin", distances.limits.margin)
        left, rate = predicted(left, J @ state[1], [J @ a + bias for a in plans], tick)
        rows.append(J)
        lower.append(-braking_bound(left, -rate, distances.limits.planned, tick) - bias)

    for contact in () if distances is None else distances.contacts:
        J, gap = ca.SX(contact.gap_jacobian(state[0])), contact.gap(state[0])[0]
        add(J, gap, contact.gap_bias(*state))
    nearest = None if distances is None else distances.nearest
    if nearest is not None:
        known, late = late_rows(nearest, state)
        for k in range(nearest.rows):
            add(known.J[k, :], known.gap[k], known.bias[k])
    names = () if distances is None else distances.row_names
    limits = sizes.rows(
        names,
        ca.vertcat(*lower),
        UNBOUNDED * ca.SX.ones(len(names)),
        C_a=ca.sparsify(ca.vertcat(*rows)),
    )
    return limits, late
