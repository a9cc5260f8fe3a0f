"""Feet: what a limb stands on, and whether it is a point, a line or a surface."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy.links import CORNERS, Links
from mbcasadi.description import Geom
from mbcasadi.model.placement import rotation_of
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
FootShape = Literal["point", "line", "flat"]

LEVEL = 0.01
"""Height over the lowest point within which a foot stands, of the model's height."""

UPRIGHT = 0.1
"""Sine of the angle from the vertical up to which a cylinder stands on its rim."""

EXTENT = 0.005
"""Extent along an axis below which a foot has none, of the model's height."""


@summarised
@dataclass(frozen=True)
class RobotFoot:
    """What a limb stands on.

    Attributes:
        body: that carries the shapes, the outermost one.
        geoms: names of the shapes.
        shape: "point", "line" (heel to toe, or an edge) or "flat", in the pose of the description.
        points: (k, 3) where it stands, in the body's axes, m.
    """

    body: str
    geoms: tuple[str, ...]
    shape: FootShape
    points: Array


def foot_of(links: Links, geoms: Sequence[Geom], height: float) -> RobotFoot:
    """Return the foot that some shapes of one limb are.

    Args:
        links: in the pose in which it stands.
        geoms: of the limb.
        height: of the model, m.
    """
    body = max(geom.body for geom in geoms)
    p, R = links.pose(body)
    points = np.vstack([lower_points(links, geom) for geom in geoms])
    points = points[points[:, 2] <= points[:, 2].min() + LEVEL * height]
    spread = np.linalg.svd(points[:, :2] - points[:, :2].mean(axis=0))[1] / np.sqrt(len(points))
    wide = int(np.count_nonzero(spread > EXTENT * height))
    shapes: tuple[FootShape, ...] = ("point", "line", "flat")
    names = tuple(geom.name for geom in geoms)
    return RobotFoot(links.tree.bodies[body].name, names, shapes[wide], (points - p) @ R)


def lower_points(links: Links, geom: Geom) -> Array:
    """Return the points (k, 3) of a shape that may be its lowest ones, m, in the world."""
    size, down = geom.size, np.zeros(3)
    if len(geom.points):
        local = geom.points
    elif geom.kind == "capsule":
        local, down = np.array([[0, 0, -size[1]], [0, 0, size[1]]]), np.array([0, 0, size[0]])
    elif geom.kind == "sphere":
        local, down = np.zeros((1, 3)), np.array([0, 0, size[0]])
    elif geom.kind == "box":
        local = CORNERS * size
    elif geom.kind == "cylinder":
        return _of_cylinder(links, geom)
    else:
        return links.points(geom)
    return links.place(geom.body, geom.pos + local @ rotation_of(geom.quat).T) - down


def _of_cylinder(links: Links, geom: Geom) -> Array:
    """Return the lowest points of both rims of a cylinder, m; of one that stands both rims."""
    R = links.pose(geom.body)[1] @ rotation_of(geom.quat)
    across = np.array([-R[2, 0], -R[2, 1], 0.0])
    steep = float(np.linalg.norm(across))
    if steep < UPRIGHT:
        return links.points(geom)
    radial, along = geom.size[0] * across / steep, np.array([0.0, 0.0, geom.size[1]])
    local = np.array([radial - along, radial + along])
    return links.place(geom.body, geom.pos + local @ rotation_of(geom.quat).T)
