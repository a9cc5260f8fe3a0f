"""Which geoms of a model may touch, with the friction of each pair, by MuJoCo's rules.

Two geoms may touch where an explicit `<pair>` says so; or else where

- their bodies are not fixed to each other, and neither carries the other one by the joints of one
  body only (not counted where the carrier is fixed to the world),
- no `<exclude>` names their bodies, and
- a bit of one's contype is set in the other's conaffinity.

Friction and condim are those of the geom with the higher priority; at equal priority the larger of
each. Coefficients are at least 1e-5. `solref` and `solimp` are those of the geom with the higher
priority, or means that are weighted by `solmix`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import CollisionRules, Geom, RigidTree
from mbcasadi.description.geoms import GEOM_KINDS
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]

LEAST_FRICTION = 1e-5
"""MuJoCo's smallest coefficient (`mjMINMU`)."""
MIN_SOLMIX = 1e-15
"""A smaller `solmix` counts as zero (`mjMINVAL`)."""
TO_CONTACT = [0, 0, 1, 2, 2]
"""Of a geom's (sliding, spinning, rolling) friction, the entries of a contact's five."""


class Surface(NamedTuple):
    """Of a contact: friction (5,), its dimension, and its `solref` (2,) and `solimp` (5,)."""

    friction: Array
    condim: int
    solref: Array
    solimp: Array


@summarised
@dataclass(frozen=True)
class TouchingPair:
    """Two geoms that may touch, in MuJoCo's order.

    Attributes:
        first, second: the geoms.
        surface: friction, dimension and softness of the contact.
    """

    first: Geom
    second: Geom
    surface: Surface

    @property
    def friction(self) -> Array:
        """(5,) sliding along two tangents, spinning, rolling about both."""
        return self.surface.friction

    @property
    def condim(self) -> int:
        """Dimension of the contact."""
        return self.surface.condim


def touching_pairs(tree: RigidTree) -> tuple[TouchingPair, ...]:
    """Return all pairs of geoms that may touch: explicit ones, then the others by bodies."""
    rules, geoms = tree.collision_rules, tree.geoms
    explicit = [
        _pair(
            rules, geoms[i], geoms[j], Surface(pair.friction, pair.condim, pair.solref, pair.solimp)
        )
        for pair in rules.pairs
        for i, j in [pair.geoms]
    ]
    taken = {frozenset(pair.geoms) for pair in rules.pairs}
    others = [
        _pair(rules, geoms[i], geoms[j], _mixed(geoms[i], geoms[j]))
        for i, j in _filtered(tree)
        if frozenset((i, j)) not in taken
    ]
    return (*explicit, *others)


def is_static(tree: RigidTree, geom: Geom) -> bool:
    """Return whether a geom is fixed to the world."""
    return tree.bodies[geom.body].weld_root == 0


def _filtered(tree: RigidTree) -> Iterator[tuple[int, int]]:
    """Yield the indices of geoms that pass all filters; the lower body first."""
    order = sorted(range(len(tree.geoms)), key=lambda i: tree.geoms[i].body)
    for k, i in enumerate(order):
        for j in order[k + 1 :]:
            a, b = tree.geoms[i], tree.geoms[j]
            matching = (a.contype & b.conaffinity) | (b.contype & a.conaffinity)
            if matching and _bodies_may_touch(tree, a.body, b.body):
                yield i, j


def _bodies_may_touch(tree: RigidTree, first: int, second: int) -> bool:
    root1, root2 = (tree.bodies[body].weld_root for body in (first, second))
    if root1 == root2 or (first, second) in tree.collision_rules.excluded:
        return False
    above1, above2 = (tree.bodies[tree.bodies[root].parent].weld_root for root in (root1, root2))
    carried = root1 != 0 and root2 != 0 and (root1 == above2 or root2 == above1)
    return not (carried and tree.collision_rules.filter_parent)


def _mixed(a: Geom, b: Geom) -> Surface:
    """Return the surface of two geoms."""
    if a.priority != b.priority:
        leading = a if a.priority > b.priority else b
        friction = leading.friction[TO_CONTACT]
        return Surface(friction, leading.condim, leading.solref, leading.solimp)
    share = _share(a.solmix, b.solmix)
    solref = np.minimum(a.solref, b.solref)
    if a.solref[0] > 0 and b.solref[0] > 0:
        solref = share * a.solref + (1 - share) * b.solref
    solimp = share * a.solimp + (1 - share) * b.solimp
    friction = np.maximum(a.friction, b.friction)[TO_CONTACT]
    return Surface(friction, max(a.condim, b.condim), solref, solimp)


def _share(first: float, second: float) -> float:
    """Return the weight of the first geom's parameters."""
    if max(first, second) < MIN_SOLMIX:
        return 0.5
    if min(first, second) < MIN_SOLMIX:
        return float(first >= MIN_SOLMIX)
    return first / (first + second)


def _pair(rules: CollisionRules, a: Geom, b: Geom, surface: Surface) -> TouchingPair:
    """Return a pair in the order of the geoms' kinds."""
    first, second = (b, a) if GEOM_KINDS.index(a.kind) > GEOM_KINDS.index(b.kind) else (a, b)
    if rules.override is not None:
        friction, solref, solimp = rules.override
        surface = Surface(friction, surface.condim, solref, solimp)
    friction = np.maximum(surface.friction, LEAST_FRICTION)
    return TouchingPair(first, second, surface._replace(friction=friction))
