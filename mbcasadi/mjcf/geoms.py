"""Collision geometry of a compiled model."""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import CollisionRules, Geom, GeomPair
from mbcasadi.description.geoms import GEOM_KINDS, GeomKind
from mbcasadi.mjcf.names import names
from mbcasadi.mjcf.softness import least_time

KINDS: dict[int, GeomKind] = {
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}")): kind for kind in GEOM_KINDS
}
BODY_BITS = 16
"""`exclude_signature` is the lower body's index, shifted by so many bits, plus the higher one's."""


def geoms(model: mujoco.MjModel) -> tuple[Geom, ...]:
    """Return all geoms, those that touch nothing included, in MuJoCo's order."""
    return tuple(
        Geom(
            name=name,
            kind=KINDS[int(model.geom_type[i])],
            body=int(model.geom_bodyid[i]),
            pos=np.array(model.geom_pos[i]),
            quat=np.array(model.geom_quat[i]),
            size=np.array(model.geom_size[i]),
            friction=np.array(model.geom_friction[i]),
            contype=int(model.geom_contype[i]),
            conaffinity=int(model.geom_conaffinity[i]),
            condim=int(model.geom_condim[i]),
            priority=int(model.geom_priority[i]),
            margin=float(model.geom_margin[i]),
            gap=float(model.geom_gap[i]),
            solmix=float(model.geom_solmix[i]),
            solref=np.array(model.geom_solref[i]),
            solimp=np.array(model.geom_solimp[i]),
            points=_hull(model, i),
        )
        for i, name in enumerate(names(model, "geom"))
    )


def _hull(model: mujoco.MjModel, geom: int) -> NDArray[np.float64]:
    """Return (k, 3) the vertices of the hull of a mesh that may touch; (0, 3) of any other geom."""
    touches = model.geom_contype[geom] or model.geom_conaffinity[geom]
    touches = touches or geom in model.pair_geom1 or geom in model.pair_geom2
    if KINDS[int(model.geom_type[geom])] != "mesh" or not touches:
        return np.zeros((0, 3))
    mesh = int(model.geom_dataid[geom])
    start, graph = int(model.mesh_vertadr[mesh]), int(model.mesh_graphadr[mesh])
    points = model.mesh_vert[start : start + int(model.mesh_vertnum[mesh])].astype(float)
    if graph < 0:
        return np.array(points)
    count = int(model.mesh_graph[graph])  # then the number of faces, and two numbers of each vertex
    return np.array(points[model.mesh_graph[graph + 2 + count : graph + 2 + 2 * count]])


def collision_rules(model: mujoco.MjModel) -> CollisionRules:
    """Return explicit pairs, excluded bodies and flags."""
    pairs = tuple(
        GeomPair(
            geoms=(int(model.pair_geom1[i]), int(model.pair_geom2[i])),
            friction=np.array(model.pair_friction[i]),
            condim=int(model.pair_dim[i]),
            solref=np.array(model.pair_solref[i]),
            solimp=np.array(model.pair_solimp[i]),
            margin=float(model.pair_margin[i]),
            gap=float(model.pair_gap[i]),
        )
        for i in range(model.npair)
    )
    signatures = [int(signature) for signature in model.exclude_signature]
    bodies = (divmod(signature, 1 << BODY_BITS) for signature in signatures)
    override = model.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    common = (model.opt.o_friction, model.opt.o_solref, model.opt.o_solimp)
    friction, solref, solimp = (np.array(values) for values in common)
    parents = not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    return CollisionRules(
        pairs=pairs,
        excluded=frozenset((min(pair), max(pair)) for pair in bodies),
        filter_parent=bool(parents),
        override=(friction, solref, solimp) if override else None,
        elliptic=int(model.opt.cone) == int(mujoco.mjtCone.mjCONE_ELLIPTIC),
        impratio=float(model.opt.impratio),
        least_time=least_time(model),
    )
