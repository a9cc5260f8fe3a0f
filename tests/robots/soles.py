"""Humanoids on a floor: corners of their soles from their geoms, and a pose with bent knees."""

from collections.abc import Iterator

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from robots import models
from robots.ground import FLOOR, Array

THICK = 0.012  # m, over the lowest point of a foot: what belongs to its sole
INSIDE = 0.9  # share of the sole that its corners span
LOWERED = 0.04  # of the height of the base, from straight legs
STEPS, DAMPING, SHARE = 400, 1e-4, 0.2  # of the inverse kinematics; share of an error in a step
PULL, OFF_ENDS = 0.02, 0.08  # to the first pose, whose joints are off the ends of their ranges

HUMANOIDS = {
    "G1": "men__unitree_g1__g1",
    "H1": "men__unitree_h1__h1",
    "T1": "men__booster_t1__t1",
    "Apollo": "men__apptronik_apollo__apptronik_apollo",
    "Talos": "men__pal_talos__talos_motor",
}

SOLES = {"Apollo": ("collision_l_sole", "collision_r_sole")}
"""Geoms that touch nothing but in a pair with a floor, which the model leaves to its user."""


def on_soles(name: str) -> tuple[mujoco.MjSpec, Array, list[str]]:
    """Return a robot on a floor, a pose on its soles with bent knees, and sites in their corners.

    The sites of a foot are one behind the other.
    """
    spec = mujoco.MjSpec.from_file(str(models.path(HUMANOIDS[name])))
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(
        name=FLOOR, type=plane, size=[0, 0, 1], condim=3, contype=1, conaffinity=1
    )
    for sole in SOLES.get(name, ()):
        spec.add_pair(geomname1=FLOOR, geomname2=sole, condim=3)
    model = spec.compile()
    data = mujoco.MjData(model)
    if model.nkey:
        data.qpos[:] = model.key_qpos[0]
    mujoco.mj_forward(model, data)
    names = []
    feet = [body for body, _ in zip(_lowest_bodies(model, data), range(2), strict=False)]
    for body in feet:
        points = np.vstack(list(_points(model, data, body)))
        sole = points[points[:, 2] < points[:, 2].min() + THICK]
        low, high = sole.min(axis=0), sole.max(axis=0)
        middle, half = (low + high)[:2] / 2, INSIDE * (high - low)[:2] / 2
        for k, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
            place = np.array([*(middle + half * [x, y]), points[:, 2].min()])
            local = data.xmat[body].reshape(3, 3).T @ (place - data.xpos[body])
            names.append(f"{model.body(body).name}_corner{k}")
            spec.body(model.body(body).name).add_site(name=names[-1], pos=local)
    return spec, _bent(model, data, feet), names


def _lowest_bodies(model: mujoco.MjModel, data: mujoco.MjData) -> Iterator[int]:
    """Yield moving bodies with colliding geoms, those of the lowest points first."""
    lowest = {
        body: min(points[:, 2].min() for points in found)
        for body in range(1, model.nbody)
        if (found := list(_points(model, data, body)))
    }
    yield from sorted(lowest, key=lambda body: lowest[body])


def _points(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> Iterator[Array]:
    """Yield points (n, 3) of the surface of each colliding geom of a body, in the world."""
    kinds = mujoco.mjtGeom
    of_pairs = {*model.pair_geom1, *model.pair_geom2}
    for i in range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body]):
        if not (model.geom_contype[i] or model.geom_conaffinity[i] or i in of_pairs):
            continue
        size, kind = model.geom_size[i], mujoco.mjtGeom(model.geom_type[i])
        R, down = data.geom_xmat[i].reshape(3, 3), np.zeros(3)
        if kind == kinds.mjGEOM_MESH:
            mesh = model.geom_dataid[i]
            first = model.mesh_vertadr[mesh]
            local = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
        elif kind == kinds.mjGEOM_BOX:
            local = size * np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
        elif kind in (kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER):
            local = np.array([[0, 0, size[1]], [0, 0, -size[1]]])
            down = np.array([0, 0, -size[0]])
        else:
            local, down = np.zeros((1, 3)), np.array([0, 0, -size[0]])
        yield data.geom_xpos[i] + local @ R.T + down


def _bent(model: mujoco.MjModel, data: mujoco.MjData, feet: list[int]) -> Array:
    """Return the pose (nq,) whose base is lower, its feet flat where they were, on the floor."""
    lowest = min(points[:, 2].min() for body in feet for points in _points(model, data, body))
    places = [data.xpos[body].copy() for body in feet]
    turns = [Rotation.from_matrix(data.xmat[body].reshape(3, 3)) for body in feet]
    goal = data.qpos[:3] - [0, 0, LOWERED * (data.qpos[2] - lowest)]
    low, high = np.where(model.jnt_limited[1:, None], model.jnt_range[1:], [-np.inf, np.inf]).T
    margin = np.where(np.isfinite(high - low), OFF_ENDS * (high - low), 0.0)
    data.qpos[7:] = np.clip(data.qpos[7:], low + margin, high - margin)
    start, J = data.qpos.copy(), np.zeros((6 * len(feet) + 6, model.nv))
    J[-6:, :6] = np.eye(6)
    for _ in range(STEPS):
        mujoco.mj_forward(model, data)
        errors = []
        for k, (body, place, turn) in enumerate(zip(feet, places, turns, strict=True)):
            mujoco.mj_jacBody(model, data, J[6 * k : 6 * k + 3], J[6 * k + 3 : 6 * k + 6], body)
            now = Rotation.from_matrix(data.xmat[body].reshape(3, 3))
            errors += [place - data.xpos[body], (turn * now.inv()).as_rotvec()]
        back = np.zeros(model.nv)
        mujoco.mj_differentiatePos(model, back, 1.0, data.qpos, start)
        wanted = SHARE * np.concatenate([*errors, goal - data.qpos[:3], back[3:6]])
        inverse = J.T @ np.linalg.inv(J @ J.T + DAMPING * np.eye(len(J)))
        step = inverse @ (wanted - J @ (PULL * back)) + PULL * back
        mujoco.mj_integratePos(model, data.qpos, step, 1.0)
        data.qpos[7:] = np.clip(data.qpos[7:], low, high)
    q = data.qpos.copy()
    q[2] -= lowest
    return q
