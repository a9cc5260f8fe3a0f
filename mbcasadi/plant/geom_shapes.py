"""Triangles and colours of MuJoCo's geoms, in their own axes."""

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Triangles = NDArray[np.int64]

SECTORS = 32  # of round geoms
RINGS = 8  # of a hemisphere
PLAIN = (0.5, 0.5, 0.5, 1.0)
"""Colour of a geom that was given none: that of its material shows."""

_BOX = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
_BOX_SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def geom_triangles(model: mujoco.MjModel, geom: int) -> tuple[Array, Triangles]:
    """Return vertices (n, 3), m, in the axes of the geom, and faces (k, 3), seen from outside.

    Those of any type but planes, which have no end.
    """
    kind, size = mujoco.mjtGeom(int(model.geom_type[geom])), model.geom_size[geom]
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        sides = [(a, b, c, a, c, d) for a, b, c, d in _BOX_SIDES]
        return _BOX * size, np.array(sides).reshape(-1, 3)
    if kind in (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF):
        return _mesh(model, int(model.geom_dataid[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_HFIELD:
        return _height_field(model, int(model.geom_dataid[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        r, h = size[0], size[1]
        return _revolved(np.array([[0, -h], [r, -h], [r, h], [0, h]]))
    arc = np.linspace(-np.pi / 2, 0, RINGS + 1)
    lower = np.column_stack([np.cos(arc), np.sin(arc)])
    upper = lower[::-1] * [1, -1]
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        half = [0, size[1]]
        return _revolved(np.vstack([size[0] * lower - half, size[0] * upper + half]))
    vertices, faces = _revolved(np.vstack([lower, upper[1:]]))
    radii = size if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID else np.full(3, size[0])
    return vertices * radii, faces


def geom_color(model: mujoco.MjModel, geom: int) -> tuple[float, float, float, float]:
    """Return red, green, blue and opacity, 0 to 1, as MuJoCo shows the geom without textures."""
    r, g, b, a = map(float, model.geom_rgba[geom])
    material = int(model.geom_matid[geom])
    if material >= 0 and np.allclose((r, g, b, a), PLAIN):
        r, g, b, a = map(float, model.mat_rgba[material])
    return r, g, b, a


def _revolved(profile: Array) -> tuple[Array, Triangles]:
    """Return the surface of a profile (n, 2), distance from z and height, from below to above."""
    angle = 2 * np.pi * np.arange(SECTORS) / SECTORS
    around = np.column_stack([np.cos(angle), np.sin(angle), np.ones(SECTORS)])
    vertices = (profile[:, None, [0, 0, 1]] * around).reshape(-1, 3)
    ring, sector = np.meshgrid(np.arange(len(profile) - 1), np.arange(SECTORS), indexing="ij")
    a, b = ring * SECTORS + sector, ring * SECTORS + (sector + 1) % SECTORS
    return vertices, _quads(a, b, b + SECTORS, a + SECTORS)


def _mesh(model: mujoco.MjModel, mesh: int) -> tuple[Array, Triangles]:
    vertex, face = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
    vertices = model.mesh_vert[vertex : vertex + int(model.mesh_vertnum[mesh])]
    faces = model.mesh_face[face : face + int(model.mesh_facenum[mesh])]
    return np.array(vertices, dtype=float), np.array(faces, dtype=np.int64)


def _height_field(model: mujoco.MjModel, field: int) -> tuple[Array, Triangles]:
    """Return the upper side of a height field."""
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    x, y, top, _ = model.hfield_size[field]
    start = int(model.hfield_adr[field])
    height = top * model.hfield_data[start : start + rows * columns]
    xs, ys = np.meshgrid(np.linspace(-x, x, columns), np.linspace(-y, y, rows))
    row, column = np.meshgrid(np.arange(rows - 1), np.arange(columns - 1), indexing="ij")
    a = row * columns + column
    vertices = np.column_stack([xs.ravel(), ys.ravel(), height])
    return vertices, _quads(a, a + 1, a + columns + 1, a + columns)


def _quads(*corners: Triangles) -> Triangles:
    """Return two triangles of each quadrilateral, of its corners a, b, c, d."""
    a, b, c, d = (each.ravel() for each in corners)
    return np.stack([a, b, c, a, c, d], axis=1).reshape(-1, 3)
