"""Which pairs of geoms a limit of distances keeps apart, where nobody names them.

Of the pairs that MuJoCo lets touch (`contacts_of`) those are left out that no controller can keep
apart or that never meet:

- contacts of the controller, which are to touch,
- links with the body that carries them where that is fixed to the world: MuJoCo leaves out other
  neighbours itself,
- pairs that are within the margin at the start, or at all sampled poses: their shapes overlap,
- pairs that are farther apart at all poses than the margin and `reach`.

Poses are uniform in the joints' ranges, closed where there are loops, with a fixed seed. Around the
nearest pose of a pair that has not met, others are drawn closer and closer, where there are no
loops. What is seen at none of n uniform poses happens at less than 3/n of all with a confidence of
95 %; a narrow way that leads two links together can be missed. A pair between whose geoms there is
a free joint, or a slide without a range, is never judged to be far apart: it may go anywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Contact, Geom, RigidTree
from mbcasadi.model import geometry
from mbcasadi.short_text import with_table
from mbcasadi.system import System
from mbcasadi.system.closed_poses import TRIALS, closed_from, random_poses
from mbcasadi.system.contacts import LeftOut
from mbcasadi.system.geom_pairs import is_static
from mbcasadi.system.geometry_contacts import GeometryContact
from mbcasadi.system.natural_sizes import model_length, tree_scales
from mbcasadi.system.ranges import position_ranges

Array = NDArray[np.float64]
Pair = tuple[str, str]

LOOP_SHARE = 0.1
"""Share of the poses that are drawn where loops have to be closed, each by Newton's steps."""
ROUNDS, DRAWN, FIRST, SMALLER = 6, 4, 0.5, 0.5
"""Rounds around the nearest poses, poses of each pair in one, their spread (of a radian, or of a
length of the model) in the first round, and what it is multiplied with from one to the next."""
FARTHEST = 0.5
"""Lengths of the model from which on a nearest pose is too far away to be followed."""
EXACT = 64
"""Poses of one pair at which its gap is computed; it is kept where they do not decide."""
FEW = 200
"""Poses at which braking is judged, at least."""
SHOWN = 3
"""Pairs of one reason that a text names."""


class Criteria(NamedTuple):
    """When a pair counts as near.

    Attributes:
        margin: least distance, m.
        reach: m beyond it.
        smoothing: what rounded edges may take from a gap, m.
        samples: number of poses.
        start: (nq,) or None.
    """

    margin: float
    reach: float
    smoothing: float
    samples: int
    start: Array | None


class Posed(NamedTuple):
    """Poses of a system.

    Attributes:
        q: (n, nq).
        bounds: (k, n) lower bounds of the gaps.
        places: (n, geoms, 12) their origins and rotations.
    """

    q: Array
    bounds: Array
    places: Array


@with_table
@dataclass(frozen=True, repr=False)
class KeptPairs:
    """Pairs of geoms whose distance is kept, and those that are not.

    Attributes:
        pairs: names of the geoms of each.
        left_out: the others that MuJoCo lets touch, with the reason.
        poses: number of poses at which they were judged.
    """

    pairs: tuple[Pair, ...]
    left_out: tuple[LeftOut, ...]
    poses: int

    def _summary(self) -> dict[str, object]:
        kept = {f"{second} on {first}": "kept apart" for first, second in self.pairs}
        others = {f"{each.geom2} on {each.geom1}": each.reason for each in self.left_out}
        return {**kept, **others}

    def __repr__(self) -> str:
        return f"KeptPairs({self.text})"

    @property
    def text(self) -> str:
        """What is kept and what is not, in a line."""
        total = len(self.pairs) + len(self.left_out)
        reasons: dict[str, list[str]] = {}
        for each in self.left_out:
            reasons.setdefault(each.reason, []).append(f"{each.geom2} on {each.geom1}")
        parts = [f"{len(self.pairs)} of {total} pairs"]
        for reason, names in reasons.items():
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            parts.append(f"left out, {reason}: {', '.join(names[:SHOWN])}{more}")
        return "; ".join(parts)


def kept_pairs(
    system: System,
    contacts: Sequence[GeometryContact],
    used: Sequence[Contact],
    criteria: Criteria,
) -> KeptPairs:
    """Return which pairs of geoms are kept apart.

    Args:
        system: read from a model.
        contacts: all that may touch and have a formula.
        used: contacts of the controller.
        criteria: when a pair counts as near.
    """
    tree = system.tree
    assert tree is not None  # it has contacts
    pairs = {(each.geom1, each.geom2): each.geoms for each in contacts}
    reasons: dict[Pair, str] = {}
    touching = _touching(system, used)
    for name, geoms in pairs.items():
        if touching(geoms):
            reasons[name] = "a contact of the controller"
        elif _are_neighbours(tree, geoms):
            reasons[name] = "a link and the fixed body that carries it"
    left = {name: geoms for name, geoms in pairs.items() if name not in reasons}
    if left and criteria.samples:
        judged = _judged(system, list(left.values()), criteria)
        reasons |= {
            name: reason for name, reason in zip(left, judged.reasons, strict=True) if reason
        }
    return KeptPairs(
        tuple(name for name in pairs if name not in reasons),
        tuple(LeftOut(*name, reasons[name]) for name in pairs if name in reasons),
        judged.poses if left and criteria.samples else 0,
    )


def _touching(system: System, used: Sequence[Contact]) -> Callable[[tuple[Geom, Geom]], bool]:
    """Return whether geoms are of a contact of the controller.

    Of a site or body these are all geoms that are fixed to it.
    """
    tree = system.tree
    assert tree is not None
    exact = {contact.frame.partition(",")[0] for contact in used if contact.kind == "contact"}

    def carried(frame: str, kind: str) -> set[str]:
        if not frame:
            return {geom.name for geom in tree.geoms if is_static(tree, geom)}
        if kind == "geom":
            return {frame}
        carrier = system.frame(frame, kind).carrier
        if carrier is None or carrier.body is None:
            return set()
        root = tree.bodies[carrier.body].weld_root
        return {geom.name for geom in tree.geoms if tree.bodies[geom.body].weld_root == root}

    sides = [
        (carried(contact.frame, contact.kind), carried(contact.other, contact.other_kind))
        for contact in used
        if contact.kind != "contact"
    ]

    def touches(geoms: tuple[Geom, Geom]) -> bool:
        a, b = (geom.name for geom in geoms)
        return f"{b} on {a}" in exact or any(
            (a in own and b in other) or (b in own and a in other) for own, other in sides
        )

    return touches


def _are_neighbours(tree: RigidTree, geoms: tuple[Geom, Geom]) -> bool:
    """Whether one geom is of a body that is fixed to the world, and carries the other's link."""
    for fixed, moving in (geoms, geoms[::-1]):
        root = tree.bodies[moving.body].weld_root
        if fixed.body != 0 and is_static(tree, fixed) and root:
            above = tree.bodies[root].parent
            if above == fixed.body or (above and _fixed_together(tree, above, fixed.body)):
                return True
    return False


def _fixed_together(tree: RigidTree, first: int, second: int) -> bool:
    """Whether two bodies that are fixed to the world hang on one body below it."""

    def below_world(body: int) -> int:
        while tree.bodies[body].parent:
            body = tree.bodies[body].parent
        return body

    static = all(tree.bodies[body].weld_root == 0 for body in (first, second))
    return static and below_world(first) == below_world(second)


class _Judgement(NamedTuple):
    reasons: list[str]
    poses: int


def _judged(system: System, pairs: Sequence[tuple[Geom, Geom]], criteria: Criteria) -> _Judgement:
    """Return why each pair is left out, "" where it is kept."""
    samples = _Samples(system, pairs, criteria)
    reasons = []
    for k in range(len(pairs)):
        near = criteria.margin + criteria.reach
        if samples.gap_at_start(k) <= criteria.margin:
            reasons.append(f"within the margin of {_mm(criteria.margin)} at the start")
        elif samples.always_within(k, criteria.margin):
            reasons.append(f"within the margin of {_mm(criteria.margin)} at all poses")
        elif not samples.anywhere[k] and not samples.ever_within(k, near):
            reasons.append(f"farther apart than {_mm(near)} at all poses")
        else:
            reasons.append("")
    return _Judgement(reasons, len(samples.posed.q))


def _mm(length: float) -> str:
    return f"{1e3 * length:.3g} mm"


class _Samples:
    """Poses at random with what is known of the gaps there.

    Attributes:
        posed: the start first, if there is one.
        anywhere: (k,) whether bodies that move freely may bring a pair together.
    """

    def __init__(
        self, system: System, pairs: Sequence[tuple[Geom, Geom]], criteria: Criteria
    ) -> None:
        self.system, self.pairs, self.criteria = system, pairs, criteria
        tree = system.tree
        assert tree is not None
        self.tree = tree
        self.order = {
            id(geom): k
            for k, geom in enumerate({id(g): g for pair in pairs for g in pair}.values())
        }
        self.function = geometry.bounds_fun(tree, pairs)
        self.anywhere = np.array([_moves_freely(system, pair) for pair in pairs])
        rng = np.random.default_rng(0)
        count = criteria.samples
        if system.nc:
            count = max(1, round(LOOP_SHARE * count))
            starts = random_poses(system, rng, TRIALS * count)
            poses = np.array(closed_from(system, list(starts), tree_scales(tree), count))
            poses = poses if len(poses) else starts[:count]
        else:
            poses = random_poses(system, rng, count)
        if criteria.start is not None:
            poses = np.vstack([criteria.start, poses])
        parts = [self._posed(poses)]
        if not system.nc:
            self._look_closer(rng, parts)
        self.posed = Posed(
            np.concatenate([part.q for part in parts]),
            np.concatenate([part.bounds for part in parts], axis=1),
            np.concatenate([part.places for part in parts]),
        )

    def gap_at_start(self, pair: int) -> float:
        """Return the gap of a pair at the start, or a larger number than the margin."""
        near = self.posed.bounds[pair, 0] <= self.criteria.margin
        if self.criteria.start is None or not near:
            return float(np.inf)
        return float(self.gaps(pair, np.zeros(1, int))[0])

    def gaps(self, pair: int, poses: NDArray[np.int64]) -> Array:
        """Return the gaps of a pair at some poses."""
        first, second = (
            self.posed.places[poses, self.order[id(geom)]] for geom in self.pairs[pair]
        )
        return geometry.pair_gaps(self.pairs[pair], (first, second), self.criteria.smoothing)

    def always_within(self, pair: int, distance: float) -> bool:
        """Whether a pair is nowhere farther apart."""
        bounds = self.posed.bounds[pair]
        if bounds.max() > distance:
            return False
        farthest = np.argsort(-bounds, kind="stable")[:EXACT]
        return bool(self.gaps(pair, farthest).max() <= distance)

    def ever_within(self, pair: int, distance: float) -> bool:
        """Whether a pair is nearer somewhere, or more than `EXACT` poses may be."""
        near = np.flatnonzero(self.posed.bounds[pair] < distance)
        if not 0 < len(near) <= EXACT:
            return len(near) > EXACT
        return bool(self.gaps(pair, near).min() < distance)

    def _posed(self, q: Array) -> Posed:
        bounds, places = self.function.map(len(q))(q.T)
        geoms = len(self.order)
        placed = np.array(places).reshape(geoms, len(q), 12).swapaxes(0, 1)
        return Posed(q, np.array(bounds), placed)

    def _look_closer(self, rng: np.random.Generator, parts: list[Posed]) -> None:
        """Add poses around the nearest ones of pairs that are apart at all poses."""
        near = self.criteria.margin + self.criteria.reach
        far = near + FARTHEST * model_length(self.tree)
        spread = FIRST * tree_scales(self.tree)
        low, high = position_ranges(self.system)
        least, best = np.full(len(self.pairs), np.inf), np.zeros((len(self.pairs), len(low)))
        for _ in range(ROUNDS):
            latest = parts[-1]
            nearest = latest.bounds.argmin(axis=1)
            found = latest.bounds[np.arange(len(least)), nearest]
            best = np.where((found < least)[:, None], latest.q[nearest], best)
            least = np.minimum(found, least)
            apart = ~self.anywhere & (near < least) & (least < far)
            if not apart.any():
                return
            q = np.repeat(best[apart], DRAWN, axis=0)
            steps = spread * rng.standard_normal((len(q), self.system.nv))
            moved = np.array(self.system.integrate.map(len(q))(q.T, steps.T)).T
            parts.append(self._posed(np.clip(moved, low, high)))
            spread = SMALLER * spread


def near_poses(system: System, pairs: Sequence[tuple[Geom, Geom]], criteria: Criteria) -> Array:
    """Return (k, nq) for each pair the sampled pose whose bound is closest to its reach."""
    few = criteria._replace(samples=max(criteria.samples, FEW))
    posed = _Samples(system, pairs, few).posed
    off = np.abs(posed.bounds - criteria.margin - criteria.reach)
    return np.asarray(posed.q[off.argmin(axis=1)])


def _moves_freely(system: System, pair: tuple[Geom, Geom]) -> bool:
    """Whether a joint between two geoms moves without a range: a free one, or a slide."""
    tree = system.tree
    assert tree is not None
    low, high = position_ranges(system)
    unlimited = {
        joint.body
        for joint in tree.joints
        if joint.kind == "free"
        or (joint.kind == "slide" and not np.isfinite(high[joint.qpos] - low[joint.qpos]))
    }

    def carriers(geom: Geom) -> set[int]:
        body, found = geom.body, set[int]()
        while body:
            found.add(body)
            body = tree.bodies[body].parent
        return found

    return bool(unlimited & (carriers(pair[0]) ^ carriers(pair[1])))
