"""A compiled model as plain numbers."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi import models
from mbcasadi.description import Actuator, Coverage, Equality, RigidTree, Sensor
from mbcasadi.mjcf.actuators import actuators
from mbcasadi.mjcf.coverage import plant_only_features, used_features
from mbcasadi.mjcf.equalities import equalities, rows_without_equations
from mbcasadi.mjcf.flags import read_flags
from mbcasadi.mjcf.load import Source, is_text, label, load
from mbcasadi.mjcf.model_checks import require_equations_possible
from mbcasadi.mjcf.reflected_inertia import reflected_inertia
from mbcasadi.mjcf.refusals import passive_force_refusals
from mbcasadi.mjcf.sensors import sensor_features, sensors
from mbcasadi.mjcf.tree import rigid_tree
from mbcasadi.progress import logged_time

Array = NDArray[np.float64]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelData:
    """All data of a model that the equations need.

    Attributes:
        tree: bodies, joints, frames, tendons, keyframes.
        actuators: one for each control, in the order of `ctrl`.
        equalities: in MuJoCo's order; those that are switched off have `active=False`.
        coverage: what became of each feature, and the warnings of MuJoCo's compiler.
        joint_range: (njnt, 2) limits of slide and hinge joints; infinite elsewhere.
        timestep: of the simulation, s.
        na: number of activation states, those of refused actuators included.
        refused_rows: rows of active constraints that have no equation here; they belong to the
            count of constraints, so that none is taken for absent.
        off: attributes without an effect, as a flag of the model switches their force off.
        sensors: all of them, in MuJoCo's order.
    """

    tree: RigidTree
    actuators: tuple[Actuator, ...]
    equalities: tuple[Equality, ...]
    coverage: Coverage
    joint_range: Array
    timestep: float
    na: int
    refused_rows: int = 0
    off: tuple[str, ...] = ()
    sensors: tuple[Sensor, ...] = ()


def read(source: Source) -> ModelData:
    """Return the numbers of a model, as `numbers_of`, and log how long that took."""
    with logged_time(_log, "reading %s", label(source)):
        return numbers_of(source)


def numbers_of(source: Source) -> ModelData:
    """Read a model through MuJoCo's own compiler.

    Args:
        source: path of an MJCF, URDF or MJB file, the name of a model of the package, XML text,
            `mujoco.MjSpec`, `mujoco.MjModel`.

    Raises:
        ModelError: the file is missing, MuJoCo's compiler refuses it, a number of it is NaN or
            infinite, or it has more than 1,000 degrees of freedom.
        UnsupportedFeatureError: a feature would make mass matrix and bias force wrong.
    """
    model, warnings = load(source)
    require_equations_possible(model)
    flags, reflected = read_flags(model), reflected_inertia(model)
    passive_refusals = passive_force_refusals(model, flags)
    tree = rigid_tree(model, flags, reflected, _path(source))
    tree_actuators, actuator_refusals = actuators(model, flags)
    tree_equalities, equality_refusals = equalities(model, flags)
    tree_sensors = sensors(model, tree_actuators)
    items = (
        *used_features(tree, tree_actuators, tree_equalities),
        *plant_only_features(model),
        *sensor_features(model, tree_sensors),
        *passive_refusals,
        *actuator_refusals,
        *equality_refusals,
    )
    return ModelData(
        tree=tree,
        actuators=tree_actuators,
        equalities=tree_equalities,
        coverage=Coverage(items, warnings),
        joint_range=_joint_range(model),
        timestep=float(model.opt.timestep),
        na=int(model.na),
        refused_rows=rows_without_equations(model) if equality_refusals else 0,
        off=flags.off,
        sensors=tree_sensors,
    )


def _joint_range(model: mujoco.MjModel) -> Array:
    scalar = (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)
    limited = model.jnt_limited.astype(bool) & np.isin(model.jnt_type, [int(k) for k in scalar])
    unlimited = np.tile([-np.inf, np.inf], (model.njnt, 1))
    return np.where(limited[:, None], model.jnt_range, unlimited)


def _path(source: Source) -> Path | None:
    if isinstance(source, (str, os.PathLike)) and not is_text(source):
        return models.find(os.fspath(source))
    return None
