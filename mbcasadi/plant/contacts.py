"""Contact forces as they act on a named site, geom or body, or near a point of a body."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ShapeError
from mbcasadi.plant.api import contact_force
from mbcasadi.real_numbers import real_array
from mbcasadi.unknown_names import unknown_name

Array = NDArray[np.float64]
FrameKind = Literal["site", "geom", "body"]

_KINDS = {
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "body": mujoco.mjtObj.mjOBJ_BODY,
}


@dataclass(frozen=True)
class ContactForce:
    """The contact force of the environment on one frame of the robot, summed over its contacts.

    Attributes:
        force: (3,) N, world axes, on the robot.
        normal: N, sum of the normal forces, never negative.
        tangential: N, sum of the tangential magnitudes.
        margin: N, smallest `mu f_n - |f_t|` of its contacts: negative means outside the cone;
            zero without contact.
        capacity: N, tangential force at which all of its contacts slide, the sum of `mu f_n`.
        friction: smallest sliding coefficient of its contacts, 0 without contact.
        count: number of contacts.
    """

    force: Array
    normal: float
    tangential: float
    margin: float
    capacity: float
    friction: float
    count: int


@dataclass(frozen=True)
class ContactFrame:
    """A frame whose contacts are measured.

    Attributes:
        name: of the frame.
        body: index of its body.
        geom: index of the geom if only that one counts.
        site: index of the site that it is, or None.
        point: (3,) where it is in the axes of the body, m; None for a site, geom or body.
    """

    name: str
    body: int
    geom: int | None = None
    site: int | None = None
    point: Array | None = None


def find_frame(model: mujoco.MjModel, name: str, kind: FrameKind) -> ContactFrame:
    """Return the frame `name` of `kind`.

    Raises:
        UnknownNameError: no such frame; the message lists the valid names.
    """
    index = frame_index(model, name, kind)
    if index < 0:
        valid = [each for each in _names(model, kind) if each]
        raise unknown_name(kind, name, valid, elsewhere=kinds_of_name(model, name))
    if kind == "site":
        return ContactFrame(name, int(model.site_bodyid[index]), site=index)
    if kind == "geom":
        return ContactFrame(name, int(model.geom_bodyid[index]), geom=index)
    return ContactFrame(name, index)


def frame_index(model: mujoco.MjModel, name: str, kind: FrameKind) -> int:
    """Return the index of a frame, -1 without one; a nameless one is called `<kind><index>`."""
    index = int(mujoco.mj_name2id(model, _KINDS[kind], name))
    if index >= 0:
        return index
    nameless = [f"{kind}{k}" for k, each in enumerate(_names(model, kind)) if not each]
    return int(name.removeprefix(kind)) if name in nameless else -1


def _names(model: mujoco.MjModel, kind: FrameKind) -> list[str | None]:
    count = {"site": model.nsite, "geom": model.ngeom, "body": model.nbody}[kind]
    return [mujoco.mj_id2name(model, _KINDS[kind], i) for i in range(count)]


def kinds_of_name(model: mujoco.MjModel, name: str) -> dict[str, tuple[str, ...]]:
    """Return the kinds of frames of which the model has one of this name."""
    return {k: (name,) for k, code in _KINDS.items() if mujoco.mj_name2id(model, code, name) >= 0}


def find_point(model: mujoco.MjModel, name: str, body: str, point: Sequence[float]) -> ContactFrame:
    """Return the frame `name` at a point (3,) of a body, in its axes, m.

    Raises:
        UnknownNameError: no such body; the message lists the valid names.
        ShapeError: a point that is not three finite numbers.
    """
    place = real_array(name, point)
    if place.shape != (3,) or not np.all(np.isfinite(place)):
        raise ShapeError(f"{name}: the point is {point}; expected three finite numbers")
    return ContactFrame(name, find_frame(model, body, "body").body, point=place)


def contact_forces(
    model: mujoco.MjModel, data: mujoco.MjData, frames: Sequence[ContactFrame]
) -> list[ContactForce]:
    """Return the force on each frame.

    A contact belongs to the frames of its geom's body. Where several sites or points share one body
    (the corners of a sole), each contact counts for the one that is nearest to it.
    """
    parts: list[list[_Part]] = [[] for _ in frames]
    if not data.ncon:
        return [_sum(part) for part in parts]
    found = data.contact  # all contacts at once: one by one they take ten times as long
    geoms, bodies = found.geom.tolist(), model.geom_bodyid[found.geom].tolist()
    axes, frictions = found.frame.reshape(-1, 3, 3), found.friction[:, 0].tolist()
    on_geom, on_body = _places(frames)
    for i in np.flatnonzero(found.efc_address >= 0).tolist():
        owners = [
            _nearest(data, frames, [*on_geom.get(geom, ()), *on_body.get(body, ())], found.pos[i])
            for geom, body in zip(geoms[i], bodies[i], strict=True)
        ]
        if owners == [None, None]:
            continue
        local = contact_force(model, data, i)
        world, (normal, *tangential) = local @ axes[i], local.tolist()
        for owner, sign in zip(owners, (-1.0, 1.0), strict=True):
            if owner is not None:
                part = _Part(sign * world, normal, math.hypot(*tangential), frictions[i])
                parts[owner].append(part)
    return [_sum(part) for part in parts]


class _Part(NamedTuple):
    """One contact of a frame: force in world axes, its normal and tangential size, friction."""

    world: Array
    normal: float
    slip: float
    friction: float


def _places(frames: Sequence[ContactFrame]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Return the indices of the frames by geom, and of those that are no geoms by body."""
    on_geom: dict[int, list[int]] = {}
    on_body: dict[int, list[int]] = {}
    for k, frame in enumerate(frames):
        if frame.geom is not None:
            on_geom.setdefault(frame.geom, []).append(k)
        else:
            on_body.setdefault(frame.body, []).append(k)
    return on_geom, on_body


def _nearest(
    data: mujoco.MjData, frames: Sequence[ContactFrame], candidates: list[int], point: Array
) -> int | None:
    """Return the one of some frames, by index, that is nearest to a point; None of none."""
    if len(candidates) <= 1:
        return candidates[0] if candidates else None

    def distance(k: int) -> float:
        return float(np.linalg.norm(frame_position(data, frames[k]) - point))

    return min(candidates, key=distance)


def pair_force(
    model: mujoco.MjModel, data: mujoco.MjData, geoms: tuple[str, str]
) -> tuple[ContactForce, Array, Array]:
    """Return the force of one geom on another one, where it acts, and the normal.

    Args:
        model: the compiled model.
        data: evaluated.
        geoms: their names; "geom7" is that of an unnamed one, the seventh from 0 on. The force is
            that on the second one, the normal points from the first to the second one. Without a
            contact both are zero, and the place is NaN.

    Raises:
        UnknownNameError: no such geom.
    """
    names = {model.geom(k).name or f"geom{k}": k for k in range(model.ngeom)}
    for name in geoms:
        if name not in names:
            raise unknown_name("geom", name, names)
    first, second = (names[name] for name in geoms)
    parts, places, normals = [], [], []
    for i in range(data.ncon):
        contact = data.contact[i]
        if set(contact.geom) != {first, second} or contact.efc_address < 0:
            continue
        sign = 1.0 if contact.geom[1] == second else -1.0
        local, axes = contact_force(model, data, i), contact.frame.reshape(3, 3)
        slip = float(np.hypot(local[1], local[2]))
        world = sign * axes.T @ local
        parts.append(_Part(world, float(local[0]), slip, float(contact.friction[0])))
        places.append(np.array(contact.pos))
        normals.append(sign * axes[0])
    if not parts:
        return _sum(parts), np.full(3, np.nan), np.zeros(3)
    return _sum(parts), np.mean(places, axis=0), np.mean(normals, axis=0)


def frame_position(data: mujoco.MjData, frame: ContactFrame) -> Array:
    """Return the (3,) position of a frame in the world, m."""
    if frame.point is not None:
        place = data.xpos[frame.body] + data.xmat[frame.body].reshape(3, 3) @ frame.point
        return np.asarray(place)
    if frame.site is not None:
        return np.asarray(data.site_xpos[frame.site])
    return np.asarray(data.xpos[frame.body] if frame.geom is None else data.geom_xpos[frame.geom])


def frame_rotation(data: mujoco.MjData, frame: ContactFrame) -> Array:
    """Return the (3, 3) rotation of a frame."""
    if frame.site is not None:
        return np.array(data.site_xmat[frame.site]).reshape(3, 3)
    own = data.xmat[frame.body] if frame.geom is None else data.geom_xmat[frame.geom]
    return np.array(own).reshape(3, 3)


def _sum(parts: list[_Part]) -> ContactForce:
    if not parts:
        return ContactForce(np.zeros(3), 0.0, 0.0, 0.0, 0.0, 0.0, 0)
    if len(parts) == 1:
        world, normal, slip, friction = parts[0]
        capacity = friction * normal
        return ContactForce(world, normal, slip, capacity - slip, capacity, friction, 1)
    return ContactForce(
        force=np.sum([part.world for part in parts], axis=0),
        normal=sum(part.normal for part in parts),
        tangential=sum(part.slip for part in parts),
        margin=min(part.friction * part.normal - part.slip for part in parts),
        capacity=sum(part.friction * part.normal for part in parts),
        friction=min(part.friction for part in parts),
        count=len(parts),
    )
