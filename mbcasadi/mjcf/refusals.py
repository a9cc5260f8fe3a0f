"""Features without an equation here that would make forces wrong if they were ignored."""

import mujoco
import numpy as np

from mbcasadi.description import CoverageItem
from mbcasadi.mjcf.coverage import pick
from mbcasadi.mjcf.flags import Flags
from mbcasadi.mjcf.fluid import negative_media
from mbcasadi.mjcf.names import names

NO_ENERGY = ("density", "viscosity")
"""Features whose force has no potential."""


def passive_force_refusals(model: mujoco.MjModel, flags: Flags) -> list[CoverageItem]:
    """Return a refusal for each feature that would make the passive force wrong."""
    if not flags.passive:
        return []
    groups = [
        (
            "option",
            negative_media(model),
            "it is negative, which describes no medium; set it to 0 or more",
        ),
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
