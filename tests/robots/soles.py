"""Humanoids on a floor: corners of their soles from their geoms, and a pose with bent knees.

The corners are those of the convex hull of what touches the floor; a leg of less than six joints
cannot lay its sole flat wherever it stands, and has the two ends of the line from heel to toe. In
the pose the centre of mass is over the middle of where one foot alone can carry the robot, within
the torques of its ankle.
"""

from collections.abc import Iterator

import mujoco
import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from robots import models
from robots.ground import FLOOR, Array

THICK = 0.012  # m, over the lowest point of a foot: what belongs to its sole
INSIDE = 0.9  # share of the sole that its corners span
LEG = 6  # joints of a leg that lays its sole flat wherever it stands
PLACES = 60  # of a sole along each axis
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
    names, middles = [], []
    feet = [body for body, _ in zip(_lowest_bodies(model, data), range(2), strict=False)]
    for body in feet:
        points = np.vstack(list(_points(model, data, body)))
        sole = points[points[:, 2] < points[:, 2].min() + THICK]
        hull = sole[ConvexHull(sole[:, :2]).vertices, :2]
        middles.append(_middle(model, data, body, hull))
        if len(_joints(model, body)) < LEG:
            ahead = [hull[:, 0].min(), hull[:, 0].max()]
            hull = np.column_stack([ahead, np.full(2, hull[:, 1].mean())])
        for k, vertex in enumerate(hull):
            inside = vertex + (1 - INSIDE) * (hull.mean(axis=0) - vertex)
            place = np.array([*inside, points[:, 2].min()])
            local = data.xmat[body].reshape(3, 3).T @ (place - data.xpos[body])
            names.append(f"{model.body(body).name}_corner{k}")
            spec.body(model.body(body).name).add_site(name=names[-1], pos=local)
    return spec, _bent(model, data, feet, np.mean(middles, axis=0)), names


def _joints(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the hinges between a body and the free base, the next one first."""
    found = list[int]()
    while model.body_parentid[body]:
        first = model.body_jntadr[body]
        found += [*range(first, first + model.body_jntnum[body])] if first >= 0 else []
        body = model.body_parentid[body]
    return found


def _torque(model: mujoco.MjModel, joint: int) -> float:
    """Return the largest torque on a joint, N m."""
    bounds = [model.jnt_actfrcrange[joint]] if model.jnt_actfrclimited[joint] else []
    for i in np.flatnonzero(model.actuator_trnid[:, 0] == joint):
        bounds += [model.actuator_forcerange[i]] if model.actuator_forcelimited[i] else []
        motor = model.actuator_biastype[i] == mujoco.mjtBias.mjBIAS_NONE
        bounds += [model.actuator_gainprm[i, 0] * model.actuator_ctrlrange[i]] if motor else []
    return min((np.abs(each).max() for each in bounds), default=np.inf)


def _middle(model: mujoco.MjModel, data: mujoco.MjData, body: int, hull: Array) -> Array:
    """Return the mean (2,) of the places in a sole at which it can carry the whole robot."""
    weight = -model.body_subtreemass[0] * model.opt.gravity[2]
    low, high = hull.min(axis=0), hull.max(axis=0)
    grid = np.meshgrid(*np.linspace(low, high, PLACES).T)
    places = np.column_stack([axis.ravel() for axis in grid])
    inside = ConvexHull(hull).equations
    carries = (inside[:, :2] @ places.T + inside[:, 2:] < 0).all(axis=0)
    for joint in _joints(model, body)[:2]:  # the ankle
        arms = places - data.xanchor[joint, :2]
        axis = data.xaxis[joint]
        torque = weight * (axis[0] * arms[:, 1] - axis[1] * arms[:, 0])
        carries &= np.abs(torque) <= _torque(model, joint)
    return np.asarray(places[carries].mean(axis=0))


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


def _bent(model: mujoco.MjModel, data: mujoco.MjData, feet: list[int], middle: Array) -> Array:
    """Return the pose (nq,) whose base is lower, its feet flat where they were, on the floor.

    Its centre of mass is over `middle` (2,).
    """
    lowest = min(points[:, 2].min() for body in feet for points in _points(model, data, body))
    places = [data.xpos[body].copy() for body in feet]
    turns = [Rotation.from_matrix(data.xmat[body].reshape(3, 3)) for body in feet]
    height = data.qpos[2] - LOWERED * (data.qpos[2] - lowest)
    low, high = np.where(model.jnt_limited[1:, None], model.jnt_range[1:], [-np.inf, np.inf]).T
    margin = np.where(np.isfinite(high - low), OFF_ENDS * (high - low), 0.0)
    data.qpos[7:] = np.clip(data.qpos[7:], low + margin, high - margin)
    start, J = data.qpos.copy(), np.zeros((6 * len(feet) + 6, model.nv))
    J[-4:, 2:6], of_mass = np.eye(4), np.zeros((3, model.nv))
    for step in range(STEPS):
        mujoco.mj_forward(model, data)
        errors = []
        for k, (body, place, turn) in enumerate(zip(feet, places, turns, strict=True)):
            mujoco.mj_jacBody(model, data, J[6 * k : 6 * k + 3], J[6 * k + 3 : 6 * k + 6], body)
            now = Rotation.from_matrix(data.xmat[body].reshape(3, 3))
            errors += [place - data.xpos[body], (turn * now.inv()).as_rotvec()]
        back = np.zeros(model.nv)
        mujoco.mj_differentiatePos(model, back, 1.0, data.qpos, start)
        mujoco.mj_jacSubtreeCom(model, data, of_mass, 0)
        J[-6:-4] = of_mass[:2]
        over = (step > STEPS / 2) * (middle - data.subtree_com[0, :2])  # once the knees are bent
        errors += [over, [height - data.qpos[2]], back[3:6]]
        wanted = SHARE * np.concatenate(errors)
        inverse = J.T @ np.linalg.inv(J @ J.T + DAMPING * np.eye(len(J)))
        change = inverse @ (wanted - J @ (PULL * back)) + PULL * back
        mujoco.mj_integratePos(model, data.qpos, change, 1.0)
        data.qpos[7:] = np.clip(data.qpos[7:], low, high)
    q = data.qpos.copy()
    q[2] -= lowest
    return q
