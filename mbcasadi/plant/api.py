"""All calls whose form depends on MuJoCo's version, or that are not straightforward.

Written for MuJoCo 3.10 and later, 4.x included.
"""

import copy
from pathlib import Path
from typing import TypeAlias

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi import models
from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ModelError, compiler_error

Array = NDArray[np.float64]

#: What a plant is made from: MJCF or URDF file, XML text, `MjSpec` or `MjModel`.
Source: TypeAlias = str | Path | mujoco.MjSpec | mujoco.MjModel

# Warnings that invalidate a simulation. The others (a full contact buffer, a singular inertia)
# come with one of these, or with a message of their own.
_DIVERGENCE = {
    int(mujoco.mjtWarning.mjWARN_BADQPOS): "position",
    int(mujoco.mjtWarning.mjWARN_BADQVEL): "velocity",
    int(mujoco.mjtWarning.mjWARN_BADQACC): "acceleration",
    int(mujoco.mjtWarning.mjWARN_BADCTRL): "control",
}


@checked
def compile_model(source: Source) -> mujoco.MjModel:
    """Return a new model, compiled from `source` (an `MjModel` is copied).

    Raises:
        ModelError: not found, refused by MuJoCo's compiler, whose message is kept, or with names
            that are not UTF-8.
    """
    model = _compile(source)
    try:
        model.names.decode()
    except UnicodeDecodeError as error:
        raise ModelError(
            "the model has names that are not UTF-8 text; save the file in UTF-8, or use ASCII "
            "names"
        ) from error
    return model


def _compile(source: Source) -> mujoco.MjModel:
    if isinstance(source, mujoco.MjModel):
        return copy.copy(source)
    try:
        if isinstance(source, mujoco.MjSpec):
            return source.compile()
        if isinstance(source, str) and source.lstrip().startswith("<"):
            return mujoco.MjModel.from_xml_string(source)
        return mujoco.MjModel.from_xml_path(str(models.find(source)))
    except (ValueError, mujoco.FatalError) as error:
        if isinstance(error, ModelError):
            raise
        raise compiler_error("the model", error) from error


def silence_warnings(data: mujoco.MjData) -> None:
    """Keep MuJoCo from writing MUJOCO_LOG.TXT into the working directory.

    MuJoCo logs a warning only the first time that it is raised, that is while its counter is
    zero. The counters start at one here, and `divergence` reads what exceeds one.
    """
    for kind in range(mujoco.mjtWarning.mjNWARNING):
        data.warning[kind].number = 1


def divergence(data: mujoco.MjData) -> str:
    """Return the quantity that diverged since `silence_warnings` ("position", …), or ""."""
    raised = data.warning.number.tolist()
    for kind, quantity in _DIVERGENCE.items():
        if raised[kind] > 1:
            return quantity
    return "" if np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all() else "position"


def equality_jacobian(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return (ne, nv) rows of the active equality constraints, dense or sparse inside."""
    rows = np.zeros((data.ne, model.nv))
    unit = np.zeros(data.nefc)
    for i in range(data.ne):
        unit[i] = 1.0
        mujoco.mj_mulJacTVec(model, data, rows[i], unit)
        unit[i] = 0.0
    return rows


def equality_force(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return (nv,) `Jᵀ force` of the equality rows alone, which MuJoCo puts first."""
    force = np.zeros(model.nv)
    if data.ne:
        part = np.zeros(data.nefc)
        part[: data.ne] = data.efc_force[: data.ne]
        mujoco.mj_mulJacTVec(model, data, force, part)
    return force


def contact_force(model: mujoco.MjModel, data: mujoco.MjData, contact: int) -> Array:
    """Return (3,) force (n, t1, t2) of one contact, in the contact frame, on its second geom."""
    force = np.zeros(6)
    mujoco.mj_contactForce(model, data, contact, force)
    return force[:3]
