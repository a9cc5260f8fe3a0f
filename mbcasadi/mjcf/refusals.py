"""Features without an equation here that would make forces wrong if they were ignored."""

import mujoco
import numpy as np

from mbcasadi.description import CoverageItem
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf.compat import plastic_springs
from mbcasadi.mjcf.coverage import pick
from mbcasadi.mjcf.flags import Flags
from mbcasadi.mjcf.fluid import negative_media
from mbcasadi.mjcf.names import names
from mbcasadi.mjcf.reflected_inertia import ReflectedInertia
from mbcasadi.mjcf.tree import tendon_indices

NO_ENERGY = ("density", "viscosity", "damping")
"""Features whose force has no potential."""


def passive_force_refusals(
    model: mujoco.MjModel, flags: Flags, reflected: ReflectedInertia
) -> list[CoverageItem]:
    """Return a refusal for each feature that would make the passive force wrong.

    Raises:
        UnsupportedFeatureError: a feature would make M and h wrong, and with them all equations.
    """
    _refuse_spatial_armature(model, reflected)
    if not flags.passive:
        return []
    springs = [*pick(names(model, "joint"), plastic_springs(model, "jnt"))]
    groups = [
        (
            "option",
            negative_media(model),
            "it is negative, which describes no medium; set it to 0 or more",
        ),
        *(
            (f"joint '{name}'", ["springyield"], "a plastic spring has a state of its own; set 0")
            for name in springs
        ),
        *_spatial_springs(model, flags, reflected),
        *(
            (f"flex '{name}'", ["elasticity"], "a deformable body is not rigid; remove it")
            for name in _elastic_flexes(model)
        ),
        *(
            (f"body '{name}'", ["plugin"], "its passive force is unknown; remove it")
            for name in pick(names(model, "body"), model.body_plugin >= 0)
        ),
    ]
    return [
        CoverageItem(
            feature=f"{who}: {what}",
            treatment="refused",
            member="passive_force",
            advice=advice,
            also=() if what in NO_ENERGY else ("potential_energy",),
        )
        for who, features, advice in groups
        for what in features
    ]


def _refuse_spatial_armature(model: mujoco.MjModel, reflected: ReflectedInertia) -> None:
    armature = model.tendon_armature + reflected.tendon_armature
    for i, name in enumerate(names(model, "tendon")):
        if i not in tendon_indices(model) and armature[i]:
            raise UnsupportedFeatureError(
                f"tendon '{name}': armature of a spatial tendon changes M and h and is not "
                "supported; set armature=0 (of its actuators too) or use a fixed tendon"
            )


def _spatial_springs(
    model: mujoco.MjModel, flags: Flags, reflected: ReflectedInertia
) -> list[tuple[str, list[str], str]]:
    stiffness = np.abs(model.tendon_stiffness) + np.abs(model.tendon_stiffnesspoly).sum(axis=1)
    damping = np.abs(model.tendon_damping + reflected.tendon_damping) + np.abs(
        model.tendon_dampingpoly + reflected.tendon_damping_poly
    ).sum(axis=1)
    groups = []
    plastic = plastic_springs(model, "tendon")
    for i, name in enumerate(names(model, "tendon")):
        fixed = i in tendon_indices(model)
        features = [
            *(["stiffness"] if flags.spring and stiffness[i] and not fixed else []),
            *(["damping"] if flags.damper and damping[i] and not fixed else []),
            *(["springyield"] if i in plastic else []),
        ]
        advice = "set it to 0" if fixed else "a spatial tendon has no equation here; set it to 0"
        groups.append((f"tendon '{name}'", features, advice))
    return groups


def _elastic_flexes(model: mujoco.MjModel) -> list[str]:
    """Return the flexes that deform, if any of them has a stiffness, damping or contact force."""
    strengths = (
        model.flex_edgestiffness,
        model.flex_edgedamping,
        model.flex_stiffness,
        model.flex_bending,
        model.flex_passive,
    )
    if not any(np.any(strength) for strength in strengths):
        return []
    return pick(names(model, "flex"), ~model.flex_rigid.astype(bool))
