"""A model in a browser: geoms, contact forces, cones of friction, paths; by viser's scene.

An arrow of a contact force has the length that MuJoCo's viewer gives it, `vis.map.force` over
`stat.meanmass` m for each N. The cone of its friction stands on the same point and is as high as
the arrow of the normal force, so a force inside its cone ends inside the ring that is drawn.
"""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.plant.api import contact_force
from mbcasadi.plant.geom_shapes import geom_color, geom_triangles
from mbcasadi.plant.motion_paths import BASE_COLOR, END_COLOR
from mbcasadi.plant.scene import SHOWN_GROUPS, Camera, view_axes

Array = NDArray[np.float64]

ROUND = (
    mujoco.mjtGeom.mjGEOM_SPHERE,
    mujoco.mjtGeom.mjGEOM_CAPSULE,
    mujoco.mjtGeom.mjGEOM_ELLIPSOID,
)
FORCE_COLOR, CONE_COLOR = (217, 43, 43), (110, 110, 110)
SPOKES = 16  # of a cone
LINE = 1.5  # pixels
THICKNESS = 0.02  # of an arrow, as a share of the size of the model's bodies


class BrowserScene:
    """What a server shows of a model.

    Attributes:
        bodies: handle of the frame of each body that has a visible geom.
        geoms: handle of each visible geom, in the axes of its body.
        arrows, cones: handles of the contact forces and of their cones.
        paths: handles of the paths of bases and of ends.
    """

    def __init__(self, server: Any, model: mujoco.MjModel) -> None:
        """Add all geoms of a model, which `shown_model` returned, to the scene of a server."""
        self.model, self._server, self._scene = model, server, server.scene
        self.bodies: dict[int, Any] = {}
        self.geoms: dict[int, Any] = {}
        for geom in range(model.ngeom):
            if model.geom_group[geom] < SHOWN_GROUPS and geom_color(model, geom)[3] > 0:
                self._add_geom(geom)
        none, thick = np.zeros((0, 2, 3)), THICKNESS * 2 * float(model.stat.meansize)
        self.arrows = self._scene.add_arrows(
            "/forces", none, FORCE_COLOR,
            shaft_radius=thick, head_radius=2 * thick, head_length=4 * thick,
        )  # fmt: skip
        self.cones = self._lines("/cones", CONE_COLOR)
        self.paths = tuple(
            self._lines(f"/plans/{name}", tuple(round(255 * c) for c in color))
            for name, color in (("base", BASE_COLOR), ("ends", END_COLOR))
        )

    def show(self, data: mujoco.MjData, *, forces: bool = True) -> None:
        """Show the poses and, if required, the contact forces of data after `mj_forward`."""
        with self._server.atomic():  # one message, so that nothing is seen half moved
            for body, frame in self.bodies.items():
                frame.position, frame.wxyz = data.xpos[body], data.xquat[body]
            if forces:
                self.arrows.points, self.cones.points = contact_lines(self.model, data)

    def show_paths(self, paths: Sequence[Array]) -> None:
        """Show paths (n, k, 3), m, of bases and of ends; n is 0 for none."""
        for handle, places in zip(self.paths, paths, strict=True):
            pieces = np.stack([places[:-1], places[1:]], axis=2) if len(places) else places
            handle.points = pieces.reshape(-1, 2, 3)

    def _lines(self, name: str, color: tuple[int, ...]) -> Any:
        return self._scene.add_line_segments(
            name, np.zeros((0, 2, 3)), color, thickness=LINE, thickness_units="screen"
        )

    def _add_geom(self, geom: int) -> None:
        """Add a geom to the frame of its body."""
        model, body = self.model, int(self.model.geom_bodyid[geom])
        if body not in self.bodies:
            name = f"/bodies/{body}"
            self.bodies[body] = self._scene.add_frame(name, show_axes=False)
        *color, opacity = geom_color(model, geom)
        name, rgb = f"/bodies/{body}/{geom}", tuple(round(255 * c) for c in color)
        pose = {"position": model.geom_pos[geom], "wxyz": model.geom_quat[geom]}
        kind = int(model.geom_type[geom])
        if kind == mujoco.mjtGeom.mjGEOM_PLANE:
            width, height = (2 * float(s) for s in model.geom_size[geom, :2])
            self.geoms[geom] = self._scene.add_grid(
                name, width or 1.0, height or 1.0, infinite_grid=not width or not height,
                plane_color=rgb, plane_opacity=opacity, **pose,
            )  # fmt: skip
            return
        vertices, faces = geom_triangles(model, geom)
        self.geoms[geom] = self._scene.add_mesh_simple(
            name, vertices, faces, color=rgb, opacity=None if opacity >= 1 else opacity,
            flat_shading=kind not in ROUND, **pose,
        )  # fmt: skip


def contact_lines(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Array, Array]:
    """Return arrows (n, 2, 3) of the contact forces and segments (k, 2, 3) of their cones, m.

    The force is that on the second geom of a contact, or on the one that is no part of the world.
    """
    length = float(model.vis.map.force) / max(float(model.stat.meanmass), mujoco.mjMINVAL)
    arrows, cones = [], []
    for i in range(data.ncon):
        contact = data.contact[i]
        local = length * contact_force(model, data, i)
        if contact.efc_address < 0 or local[0] <= 0:
            continue
        axes = np.array(contact.frame).reshape(3, 3)
        sign = -1.0 if model.body_weldid[model.geom_bodyid[contact.geom[1]]] == 0 else 1.0
        arrows.append([contact.pos, contact.pos + sign * axes.T @ local])
        if contact.dim > 1:
            cones.append(contact.pos + sign * _cone(float(local[0]), contact.friction[:2]) @ axes)
    return np.array(arrows).reshape(-1, 2, 3), np.array(cones).reshape(-1, 2, 3)


def _cone(height: float, friction: Array) -> Array:
    """Return the segments (2 SPOKES, 2, 3) of a cone about x: its spokes and its ring."""
    angle = 2 * np.pi * np.arange(SPOKES) / SPOKES
    mu, nu = friction
    ring = height * np.column_stack([np.ones(SPOKES), mu * np.cos(angle), nu * np.sin(angle)])
    spokes = np.stack([np.zeros_like(ring), ring], axis=1)
    return np.vstack([spokes, np.stack([ring, np.roll(ring, -1, axis=0)], axis=1)])


def set_camera(server: Any, camera: Camera) -> None:
    """Let pages that open show a scene as a camera does."""
    forward, _, up = view_axes(camera.azimuth, camera.elevation)
    server.initial_camera.position = np.array(camera.lookat) - camera.distance * forward
    server.initial_camera.look_at = np.array(camera.lookat)
    server.initial_camera.up = up
