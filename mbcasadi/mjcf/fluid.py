"""The medium of a compiled model: density, viscosity and wind, and what they act on.

A body with a geom of `fluidshape="ellipsoid"` meets the medium with these geoms only; every other
body does as the box with its mass and inertia. Bodies without mass meet no medium, as in MuJoCo.
"""

import mujoco
import numpy as np

from mbcasadi.description import CoverageItem, Fluid, FluidBox, FluidEllipsoid
from mbcasadi.mjcf.compat import least_silhouette
from mbcasadi.mjcf.flags import Flags
from mbcasadi.mjcf.names import names, object_names

SPHERE = int(mujoco.mjtGeom.mjGEOM_SPHERE)
CAPSULE = int(mujoco.mjtGeom.mjGEOM_CAPSULE)
CYLINDER = int(mujoco.mjtGeom.mjGEOM_CYLINDER)


def fluid(model: mujoco.MjModel, flags: Flags) -> Fluid | None:
    """Return the medium, or None where it exerts no force."""
    if not flags.passive or not _acts(model) or negative_media(model):
        return None
    bodies = [i for i in range(1, model.nbody) if model.body_mass[i] >= mujoco.mjMINVAL]
    ellipsoids = {i: _ellipsoid_geoms(model, i) for i in bodies}
    geom_names = names(model, "geom")
    return Fluid(
        density=float(model.opt.density),
        viscosity=float(model.opt.viscosity),
        wind=np.array(model.opt.wind),
        boxes=tuple(
            FluidBox(i, np.array(model.body_iquat[i]), np.array(model.body_inertia[i]))
            for i in bodies
            if not ellipsoids[i]
        ),
        ellipsoids=tuple(
            _ellipsoid(model, g, geom_names[g]) for i in bodies for g in ellipsoids[i]
        ),
        held_above=least_silhouette(),
    )


def negative_media(model: mujoco.MjModel) -> list[str]:
    """Return the options that are negative beside one that makes the medium act."""
    if not _acts(model):
        return []
    return [name for name in ("density", "viscosity") if getattr(model.opt, name) < 0.0]


def fluid_features(medium: Fluid | None, bodies: tuple[str, ...]) -> list[CoverageItem]:
    """Return what the equations contain of the medium.

    Args:
        medium: of the model, or None.
        bodies: names of all bodies.
    """
    if medium is None:
        return []
    groups = [
        ("body", [bodies[box.body] for box in medium.boxes], "fluid forces on its inertia box"),
        ("geom", [e.name for e in medium.ellipsoids], "fluid forces on its ellipsoid"),
    ]
    advice = "density, viscosity and wind; once differentiable where the medium is at rest"
    return [
        CoverageItem(f"{object_names(kind, who)}: {what}", "used", "", advice)
        for kind, who, what in groups
        if who
    ]


def _acts(model: mujoco.MjModel) -> bool:
    return bool(model.nv and (model.opt.density > 0.0 or model.opt.viscosity > 0.0))


def _ellipsoid_geoms(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the geoms of a body that are ellipsoids to the medium; none for an inertia box."""
    first = int(model.body_geomadr[body])
    geoms = range(first, first + int(model.body_geomnum[body]))
    if not any(model.geom_fluid[g, 0] > 0.0 for g in geoms):
        return []
    return [g for g in geoms if model.geom_fluid[g, 0] != 0.0]


def _ellipsoid(model: mujoco.MjModel, geom: int, name: str) -> FluidEllipsoid:
    strength, blunt, slender, angular, kutta, magnus = (
        float(c) for c in model.geom_fluid[geom, :6]
    )
    return FluidEllipsoid(
        name=name,
        body=int(model.geom_bodyid[geom]),
        pos=np.array(model.geom_pos[geom]),
        quat=np.array(model.geom_quat[geom]),
        semiaxes=_semiaxes(int(model.geom_type[geom]), np.array(model.geom_size[geom])),
        strength=strength,
        blunt_drag=blunt,
        slender_drag=slender,
        angular_drag=angular,
        kutta_lift=kutta,
        magnus_lift=magnus,
        added_mass=np.array(model.geom_fluid[geom, 6:9]),
        added_inertia=np.array(model.geom_fluid[geom, 9:12]),
    )


def _semiaxes(kind: int, size: np.ndarray) -> np.ndarray:
    """Return half the extent of a geom along its axes, m."""
    radius, half_length = size[0], size[1]
    if kind == SPHERE:
        return np.full(3, radius)
    if kind == CAPSULE:
        return np.array([radius, radius, half_length + radius])
    if kind == CYLINDER:
        return np.array([radius, radius, half_length])
    return size
