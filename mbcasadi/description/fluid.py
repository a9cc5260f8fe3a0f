"""The medium that a model moves in, and the shapes on which it acts, as plain numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class FluidBox:
    """A body that the medium takes for the box with the body's mass and inertia.

    Attributes:
        body: index of the body.
        quat: (4,) principal axes of its inertia, in the body frame.
        moments: (3,) principal moments of inertia, kg m².
    """

    body: int
    quat: Array
    moments: Array


@summarised
@dataclass(frozen=True)
class FluidEllipsoid:
    """A geom that the medium takes for an ellipsoid (`fluidshape="ellipsoid"`).

    Attributes:
        name: of the geom.
        body: index of the body that carries it.
        pos, quat: (3,), (4,) pose of the geom in the body frame.
        semiaxes: (3,) m.
        strength: factor of all its forces.
        blunt_drag, slender_drag, angular_drag, kutta_lift, magnus_lift: MJCF's `fluidcoef`.
        added_mass: (3,) mass of the medium that moves with the geom, over density, m³.
        added_inertia: (3,) the same of its inertia, m⁵.
    """

    name: str
    body: int
    pos: Array
    quat: Array
    semiaxes: Array
    strength: float
    blunt_drag: float
    slender_drag: float
    angular_drag: float
    kutta_lift: float
    magnus_lift: float
    added_mass: Array
    added_inertia: Array


@summarised
@dataclass(frozen=True)
class Fluid:
    """A medium at rest or in uniform motion; it exerts forces, and takes none.

    Attributes:
        density: kg/m³.
        viscosity: kg/(m s).
        wind: (3,) velocity of the medium, world axes, m/s.
        boxes: bodies that meet it as boxes.
        ellipsoids: geoms that meet it as ellipsoids, whose bodies are no boxes.
        held_above: where older versions of MuJoCo hold the denominators of an ellipsoid's
            silhouette, which then is too small at low speed; 0 for nowhere.
    """

    density: float
    viscosity: float
    wind: Array
    boxes: tuple[FluidBox, ...] = ()
    ellipsoids: tuple[FluidEllipsoid, ...] = ()
    held_above: float = 0.0
