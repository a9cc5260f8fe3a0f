"""The collision geometry of a model as plain numbers, and which geoms MuJoCo lets touch.

Lengths in m; quaternions are w x y z and unit.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
GeomKind = Literal[
    "plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf"
]
GEOM_KINDS: tuple[GeomKind, ...] = (
    "plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf",
)  # fmt: skip
"""In MuJoCo's order: of a pair, the geom whose kind comes first is `geom1`."""


@summarised
@dataclass(frozen=True)
class Geom:
    """A shape that is fixed to a body.

    Attributes:
        name: unique name; unnamed MJCF geoms get `geom<id>`.
        kind: its shape.
        body: index of the body that carries it.
        pos, quat: (3,), (4,) pose in the body frame.
        size: (3,) as in MJCF: radius; radius and half length (capsule, cylinder; along z); half
            axes (ellipsoid, box). A plane is the half space below its z axis, whatever its size.
        friction: (3,) coefficients: sliding; spinning, m; rolling, m.
        contype, conaffinity: two geoms may touch where a bit of one's contype is set in the
            other's conaffinity.
        condim: dimension of its contacts: 1, 3, 4 or 6.
        priority: the geom with the higher one sets friction and condim of a contact.
        margin, gap: distances below which MuJoCo reports a contact and pushes, m.
        solmix: weight of its solver parameters in a contact.
        solref, solimp: (2,), (5,) of MuJoCo's soft contact; see `softness.soft_row`.
        points: (k, 3) vertices of the convex hull of a mesh that may touch, in its axes, m; (0, 3)
            of any other geom.
    """

    name: str
    kind: GeomKind
    body: int
    pos: Array
    quat: Array
    size: Array
    friction: Array
    contype: int = 1
    conaffinity: int = 1
    condim: int = 3
    priority: int = 0
    margin: float = 0.0
    gap: float = 0.0
    solmix: float = 1.0
    solref: Array = field(default_factory=lambda: np.array([0.02, 1.0]))
    solimp: Array = field(default_factory=lambda: np.array([0.9, 0.95, 0.001, 0.5, 2.0]))
    points: Array = field(default_factory=lambda: np.zeros((0, 3)))


@dataclass(frozen=True)
class GeomPair:
    """A `<pair>` of MJCF: two geoms that may touch whatever the filters say.

    Attributes:
        geoms: indices into `RigidTree.geoms`.
        friction: (5,) coefficients: sliding along two tangents, spinning, rolling about both.
        condim: dimension of the contact.
        solref, solimp: (2,), (5,) of the soft contact.
        margin, gap: as of a geom, m.
    """

    geoms: tuple[int, int]
    friction: Array
    condim: int
    solref: Array
    solimp: Array
    margin: float = 0.0
    gap: float = 0.0


@dataclass(frozen=True)
class CollisionRules:
    """What MuJoCo's filters know beside the geoms.

    Attributes:
        pairs: explicit pairs.
        excluded: pairs of bodies whose geoms do not touch each other (`<exclude>`).
        filter_parent: geoms of a body and of its parent do not touch, unless the parent is fixed
            to the world.
        override: (5,), (2,), (5,) friction, solref and solimp that all contacts have in place of
            their own (`<flag override>`), or None.
        elliptic: whether friction cones are elliptic, not pyramids.
        impratio: how much stiffer friction is than the normal direction.
        least_time: s, which time constants of soft rows are at least.
    """

    pairs: tuple[GeomPair, ...] = ()
    excluded: frozenset[tuple[int, int]] = frozenset()
    filter_parent: bool = True
    override: tuple[Array, Array, Array] | None = None
    elliptic: bool = False
    impratio: float = 1.0
    least_time: float = 0.0
