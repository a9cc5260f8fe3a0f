"""What a picture of a motion shows: geoms that stand for each body, and a camera that fits."""

import copy
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHOWN_GROUPS = 3  # MuJoCo shows the groups 0 to 2; those behind hold collision geoms
MARGIN = 1.08  # of the fitted frame
FLAT = 0.2  # least spread over largest horizontal one, below which a motion is seen from the side
MOST_POSES = 200  # that a camera is fitted to
ALONG = 225.0  # degrees, azimuth for a mechanism that is not flat: from the front and the left
SIDE_TURN = 12.0  # degrees off the normal of a flat motion, so that depth is seen


@dataclass(frozen=True)
class Camera:
    """A free camera: MuJoCo's `mjvCamera`; degrees and m."""

    lookat: tuple[float, float, float]
    distance: float
    azimuth: float
    elevation: float


def shown_model(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy in which every body that has geoms shows some.

    Bodies whose visible geoms (groups 0 to 2) are missing, as in models without their meshes, show
    their collision geoms.
    """
    model = copy.copy(model)
    visible = (model.geom_group < SHOWN_GROUPS) & (model.geom_rgba[:, 3] > 0)
    seen = set(model.geom_bodyid[visible].tolist())
    hidden = np.array([body not in seen for body in model.geom_bodyid.tolist()], dtype=bool)
    model.geom_group[hidden] = 0
    model.geom_rgba[hidden, 3] = 1.0
    return model


def fitted_camera(model: mujoco.MjModel, q: Array, aspect: float) -> Camera:
    """Return a free camera that has all moving bodies in its frame, at all configurations.

    A motion in one vertical plane is seen from its side, any other from the front and above.

    Args:
        model: of the scene.
        q: (n, nq) configurations.
        aspect: width over height of the picture.
    """
    few = q[np.unique(np.linspace(0, len(q) - 1, min(len(q), MOST_POSES)).astype(int))]
    centres, radii = _spheres(model, few)
    azimuth, elevation = _direction(centres)
    forward, right, up = view_axes(azimuth, elevation)
    x, y, depth = centres @ right, centres @ up, centres @ forward
    middle = [((v + radii).max() + (v - radii).min()) / 2 for v in (x, y, depth)]
    tan_y = np.tan(np.radians(float(model.vis.global_.fovy)) / 2)
    reach_y = (np.abs(y - middle[1]) + MARGIN * radii) / tan_y
    reach_x = (np.abs(x - middle[0]) + MARGIN * radii) / (tan_y * aspect)
    distance = float((np.maximum(reach_x, reach_y) - (depth - middle[2]) + radii).max())
    lookat = middle[0] * right + middle[1] * up + middle[2] * forward
    place = (float(lookat[0]), float(lookat[1]), float(lookat[2]))
    return Camera(place, MARGIN * max(distance, 1e-3), azimuth, elevation)


def _spheres(model: mujoco.MjModel, q: Array) -> tuple[Array, Array]:
    """Return centres (n, 3) and radii (n,) that hold the moving bodies, at all configurations."""
    data = mujoco.MjData(model)
    moving = model.body_weldid != 0
    if not moving.any():
        moving = np.ones(model.nbody, dtype=bool)
    geoms = np.flatnonzero(moving[model.geom_bodyid] & (model.geom_rbound > 0))
    bodies = np.flatnonzero(moving)
    centres, radii = [], []
    for row in q:
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        centres.append(np.vstack([data.geom_xpos[geoms], data.xpos[bodies]]))
        radii.append(np.concatenate([model.geom_rbound[geoms], np.zeros(len(bodies))]))
    return np.vstack(centres), np.concatenate(radii)


def _direction(centres: Array) -> tuple[float, float]:
    """Return azimuth and elevation, degrees, by how the points spread horizontally."""
    spread, axes = np.linalg.eigh(np.cov((centres - centres.mean(axis=0))[:, :2].T))
    widths = np.sqrt(np.maximum(spread, 0))
    tall = float(centres[:, 2].std())
    if widths[0] > FLAT * max(widths[1], tall):
        return ALONG, -20.0
    normal = axes[:, 0] * (1 if axes[1, 0] > 0 or (axes[1, 0] == 0 and axes[0, 0] > 0) else -1)
    azimuth = float(np.degrees(np.arctan2(normal[1], normal[0])))
    return azimuth + SIDE_TURN, -12.0


def view_axes(azimuth: float, elevation: float) -> tuple[Array, Array, Array]:
    """Return forward, right and up of MuJoCo's free camera in the world."""
    a, e = np.radians(azimuth), np.radians(elevation)
    forward = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([np.sin(a), -np.cos(a), 0.0])
    return forward, right, np.cross(right, forward)
