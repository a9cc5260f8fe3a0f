"""Tendons as plain numbers: combinations of joints, and paths through sites around geoms.

Lengths in m; a fixed tendon's length has the unit of its coefficients times its joints'.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WrapKind = Literal["sphere", "cylinder"]
WrapGeneration = Literal["3.10", "3.16", "4.0"]
"""The MuJoCo from which on paths around geoms are like this. With a side site outside the geom, 4.0
goes the long way where the point opposite to the side is between the ends, seen from the centre;
before, it is the way whose points of contact are nearer to the side. Inside a geom Newton's method
finds the point of contact; before 3.16 it gives up near the ends of its range."""


@dataclass(frozen=True)
class FixedTendon:
    """A fixed tendon, `length = Σ coef_i q_i`.

    Attributes:
        name: unique name.
        joints: indices of its slide and hinge joints.
        coef: (len(joints),) coefficients.
        stiffness, damping, armature: spring, damper, inertia of the length.
        spring_range: dead band of the spring; equal ends where there is none.
        spring_yield: stretch at which the spring yields, 0 where it does not.
        stiffness_poly, damping_poly: higher coefficients, () where linear.
        force_range: clip of the summed actuator force on this tendon, or None.
    """

    name: str
    joints: tuple[int, ...]
    coef: Array
    stiffness: float = 0.0
    damping: float = 0.0
    armature: float = 0.0
    spring_range: tuple[float, float] = (0.0, 0.0)
    spring_yield: float = 0.0
    stiffness_poly: tuple[float, ...] = ()
    damping_poly: tuple[float, ...] = ()
    force_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class PathSite:
    """A site that a tendon passes through.

    Attributes:
        frame: index of the site in `RigidTree.frames`.
    """

    frame: int


@dataclass(frozen=True)
class PathGeom:
    """A sphere or cylinder between two sites, around which a tendon wraps where it is in the way.

    Attributes:
        geom: index in `RigidTree.geoms`; its radius is `size[0]`, a cylinder has no ends here.
        kind: "sphere" or "cylinder".
        side: index in `RigidTree.frames` of the site that tells the side to pass on, or None. One
            that is nearer to the geom's centre than its radius makes the tendon pass inside.
        generation: of MuJoCo, for geoms with a side.
    """

    geom: int
    kind: WrapKind
    side: int | None = None
    generation: WrapGeneration = "4.0"


@dataclass(frozen=True)
class PathPulley:
    """The start of a branch whose length counts `1/divisor`."""

    divisor: float


PathElement = PathSite | PathGeom | PathPulley


@dataclass(frozen=True)
class SpatialTendon:
    """A spatial tendon: the length of the shortest path through sites, around geoms.

    Attributes:
        name: unique name.
        path: sites, geoms (each between two sites) and pulleys, in order.
        stiffness, damping, armature: spring, N/m, damper, N s/m, inertia, kg, of the length.
        spring_range: dead band of the spring, m; equal ends where there is none.
        spring_yield: stretch, m, at which the spring yields, 0 where it does not.
        stiffness_poly, damping_poly: higher coefficients, () where linear.
        force_range: clip of the summed actuator force on this tendon, N, or None.
    """

    name: str
    path: tuple[PathElement, ...]
    stiffness: float = 0.0
    damping: float = 0.0
    armature: float = 0.0
    spring_range: tuple[float, float] = (0.0, 0.0)
    spring_yield: float = 0.0
    stiffness_poly: tuple[float, ...] = ()
    damping_poly: tuple[float, ...] = ()
    force_range: tuple[float, float] | None = None

    @property
    def wraps(self) -> tuple[PathGeom, ...]:
        """The geoms of its path."""
        return tuple(element for element in self.path if isinstance(element, PathGeom))


Tendon = FixedTendon | SpatialTendon
