"""Feet: what a limb stands on, and whether it is a point, a line or a surface."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy.links import CORNERS, Links, surface
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
    """Return points (k, 3) of a shape in the world, m: the lowest one, and what may be as low.

    These are both ends of a capsule, both rims of a cylinder, corners of a box or a mesh; of a mesh
    without points those of its box.
    """
    turn, size = rotation_of(geom.quat), geom.size
    up = turn.T @ links.pose(geom.body)[1][2]  # of the world, in the axes of the shape
    ends = np.array([[0, 0, -1.0], [0, 0, 1.0]])
    if len(geom.points):
        local = geom.points
    elif geom.kind == "sphere":
        local = -size[:1] * up[None]
    elif geom.kind == "ellipsoid":
        local = -(size**2 * up / np.linalg.norm(size * up))[None]
    elif geom.kind == "capsule":
        local = size[1] * ends - size[0] * up
    elif geom.kind == "cylinder":
        across = np.array([up[0], up[1], 0.0])
        steep = float(np.linalg.norm(across))
        local = size[1] * ends - size[0] * across / max(steep, 1e-300)
        if steep < UPRIGHT:
            local = np.vstack([local, surface("cylinder", size)])
    else:
        local = CORNERS * size
    return links.place(geom.body, geom.pos + local @ turn.T)
