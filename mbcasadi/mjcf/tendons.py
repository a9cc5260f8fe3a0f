"""Tendons of a compiled model: combinations of joints, and paths through sites around geoms."""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import (
    FixedTendon,
    PathGeom,
    PathPulley,
    PathSite,
    SpatialTendon,
    Tendon,
)
from mbcasadi.description.tendons import PathElement, WrapKind
from mbcasadi.errors import ModelError, UnsupportedFeatureError
from mbcasadi.mjcf.compat import is_fixed_tendon, spring_yield, wrap_generation
from mbcasadi.mjcf.flags import Flags
from mbcasadi.mjcf.names import names
from mbcasadi.mjcf.reflected_inertia import ReflectedInertia

Array = NDArray[np.float64]

WRAP_KINDS: dict[int, WrapKind] = {
    int(mujoco.mjtWrap.mjWRAP_SPHERE): "sphere",
    int(mujoco.mjtWrap.mjWRAP_CYLINDER): "cylinder",
}


def tendons(model: mujoco.MjModel, flags: Flags, reflected: ReflectedInertia) -> tuple[Tendon, ...]:
    """Return all tendons in MuJoCo's order; forces that the flags switch off are zero in them.

    Args:
        model: the compiled model.
        flags: what the model switches off.
        reflected: armature and damping that actuators add to tendons.

    Raises:
        ModelError: a pulley whose divisor is zero.
        UnsupportedFeatureError: a tendon that wraps has armature, or its actuator.
    """
    described: list[Tendon] = []
    for i, name in enumerate(names(model, "tendon")):
        damping = float(model.tendon_damping[i] + reflected.tendon_damping[i])
        damping_poly = model.tendon_dampingpoly[i] + reflected.tendon_damping_poly[i]
        lower, upper = (float(end) for end in model.tendon_lengthspring[i])
        stiffness = float(model.tendon_stiffness[i]) if flags.spring else 0.0
        damping = damping if flags.damper else 0.0
        armature = float(model.tendon_armature[i] + reflected.tendon_armature[i])
        stiffness_poly = higher_coefficients(model.tendon_stiffnesspoly[i], flags.spring)
        limits = force_range(model.tendon_actfrcrange[i], bool(model.tendon_actfrclimited[i]))
        forces = (
            stiffness,
            damping,
            armature,
            (lower, upper),
            spring_yield(model, "tendon", i),
            stiffness_poly,
            higher_coefficients(damping_poly, flags.damper),
            limits,
        )
        wrap = slice(model.tendon_adr[i], model.tendon_adr[i] + model.tendon_num[i])
        if is_fixed_tendon(model, i):
            joints = tuple(int(joint) for joint in model.wrap_objid[wrap])
            described.append(FixedTendon(name, joints, np.array(model.wrap_prm[wrap]), *forces))
        else:
            tendon = SpatialTendon(name, _path(model, name, wrap), *forces)
            _refuse_armature_around_geoms(tendon)
            described.append(tendon)
    return tuple(described)


def _path(model: mujoco.MjModel, name: str, wrap: slice) -> tuple[PathElement, ...]:
    """Return the elements of a spatial tendon; sites are the first frames of a tree."""
    path: list[PathElement] = []
    for kind, index, number in zip(
        model.wrap_type[wrap], model.wrap_objid[wrap], model.wrap_prm[wrap], strict=True
    ):
        if kind == mujoco.mjtWrap.mjWRAP_SITE:
            path.append(PathSite(int(index)))
        elif kind == mujoco.mjtWrap.mjWRAP_PULLEY:
            if number == 0.0:
                raise ModelError(
                    f"tendon '{name}': a pulley with divisor 0, which makes its length infinite; "
                    "expected a positive divisor"
                )
            path.append(PathPulley(float(number)))
        else:
            side = round(float(number))
            place = side if side >= 0 else None
            path.append(PathGeom(int(index), WRAP_KINDS[int(kind)], place, wrap_generation()))
    return tuple(path)


def _refuse_armature_around_geoms(tendon: SpatialTendon) -> None:
    if tendon.armature and tendon.wraps:
        raise UnsupportedFeatureError(
            f"tendon '{tendon.name}': armature of a tendon that wraps around geoms, its own or an "
            "actuator's, stops MuJoCo itself; set it to 0, or let the path go through sites only"
        )


def higher_coefficients(coefficients: Array, enabled: bool) -> tuple[float, ...]:
    """Return the higher coefficients of a polynomial spring or damper, () where it is linear."""
    if not enabled or not np.any(coefficients):
        return ()
    return tuple(float(c) for c in coefficients)


def force_range(limits: Array, limited: bool) -> tuple[float, float] | None:
    """Return a range of forces, or None where there is none."""
    return (float(limits[0]), float(limits[1])) if limited else None
