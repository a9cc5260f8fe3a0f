"""Limits and dry friction of spatial tendons, as wrenches on the bodies along their paths.

They are forces of MuJoCo's solver, in no equation of ours. `model.tendon_wrenches` has the formula.
"""

from collections.abc import Iterator

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Point = tuple[int, Array]  # a body, and a point in the world, m
PULLEY = -2  # in `wrap_obj`; a geom is at its own id
ON_GEOM = 0
SOLVED = (mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON, mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)


def limit_wrenches(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return (6, nbody): force, N, above moment about the body's origin, N m, world axes."""
    total = np.zeros((6, model.nbody))
    solved = np.isin(data.efc_type, SOLVED)
    for tendon in np.unique(data.efc_id[solved]):
        if model.wrap_type[model.tendon_adr[tendon]] == mujoco.mjtWrap.mjWRAP_JOINT:  # fixed
            continue
        force = _along(model, data, tendon, solved & (data.efc_id == tendon))
        for (start, a), (end, b), share in _pieces(model, data, tendon):
            direction = (b - a) / (np.linalg.norm(b - a) or 1.0)
            for body, place, pull in ((end, b, force * share), (start, a, -force * share)):
                if body and start != end:
                    moment = np.cross(place - data.xpos[body], direction)
                    total[:, body] += pull * np.concatenate([direction, moment])
    return total


def _along(
    model: mujoco.MjModel, data: mujoco.MjData, tendon: int, rows: NDArray[np.bool_]
) -> float:
    """Return F with `Jᵀ F` the force of some rows, whose Jacobians are a tendon's J or `-J`."""
    force, J = np.zeros(model.nv), np.zeros(model.nv)
    mujoco.mj_mulJacTVec(model, data, force, data.efc_force * rows)
    first, count = model.ten_J_rowadr[tendon], model.ten_J_rownnz[tendon]
    places = slice(first, first + count)
    J[model.ten_J_colind[places]] = data.ten_J.ravel()[places]
    square = float(J @ J)
    return float(J @ force) / square if square else 0.0


def _pieces(
    model: mujoco.MjModel, data: mujoco.MjData, tendon: int
) -> Iterator[tuple[Point, Point, float]]:
    """Yield the straight pieces of a tendon: both ends, and the share of its length that counts.

    What is wound on a geom is between two points of its body, and has no effect.
    """
    elements = range(model.tendon_adr[tendon], model.tendon_adr[tendon] + model.tendon_num[tendon])
    sites = iter([i for i in elements if model.wrap_type[i] == mujoco.mjtWrap.mjWRAP_SITE])
    pulleys = iter([i for i in elements if model.wrap_type[i] == mujoco.mjtWrap.mjWRAP_PULLEY])
    start: Point | None = None
    share = 1.0
    first = data.ten_wrapadr[tendon]
    objects, places = data.wrap_obj.ravel(), data.wrap_xpos.reshape(-1, 3)
    for i in range(first, first + data.ten_wrapnum[tendon]):
        if objects[i] == PULLEY:
            start, share = None, 1.0 / float(model.wrap_prm[next(pulleys)])
            continue
        if objects[i] >= ON_GEOM:
            body = model.geom_bodyid[objects[i]]
        else:
            body = model.site_bodyid[model.wrap_objid[next(sites)]]
        end = int(body), np.array(places[i])
        if start is not None:
            yield start, end, share
        start = end
