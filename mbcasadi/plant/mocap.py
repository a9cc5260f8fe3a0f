"""Poses of mocap bodies: bodies without a joint that are moved from outside."""

from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.real_numbers import described, real_array
from mbcasadi.unknown_names import unknown_name

Array = NDArray[np.float64]

POSITION, POSE = 3, 7
"""Sizes of a position, and of a position with a quaternion w x y z behind it."""

LEAST_QUATERNION = 0.5
"""Length below which a quaternion is none; others are normalised, as in MuJoCo."""


def mocap_names(model: mujoco.MjModel) -> tuple[str, ...]:
    """Return the names of the mocap bodies, in MuJoCo's order."""
    names = {int(model.body_mocapid[i]): model.body(i).name for i in range(model.nbody)}
    return tuple(names[k] for k in range(model.nmocap))


def move_mocap(model: mujoco.MjModel, data: mujoco.MjData, poses: Mapping[str, ArrayLike]) -> None:
    """Put mocap bodies at poses in the world; see `Plant.move_mocap`."""
    if not isinstance(poses, Mapping):
        raise ProblemError(f"poses is {described(poses)}; expected a mapping from mocap bodies")
    names = mocap_names(model) if poses else ()
    for name, value in poses.items():
        if name not in names:
            raise unknown_name("mocap body", name, names)
        pose = real_array(f"pose of {name!r}", value).ravel()
        if pose.size not in (POSITION, POSE) or not np.isfinite(pose).all():
            raise ShapeError(
                f"pose of mocap body {name!r} is {pose}; expected a position x y z, m, or with a "
                "quaternion w x y z behind it"
            )
        k, quaternion = names.index(name), pose[POSITION:]
        data.mocap_pos[k] = pose[:POSITION]
        if quaternion.size:
            length = float(np.linalg.norm(quaternion))
            if length < LEAST_QUATERNION:
                raise ShapeError(f"the quaternion of mocap body {name!r} has length {length:g}")
            data.mocap_quat[k] = quaternion / length


def poses_of_mocap(data: mujoco.MjData) -> Array:
    """Return (7 nmocap,) position and quaternion of each mocap body."""
    return np.hstack([data.mocap_pos, data.mocap_quat]).ravel()


def mocap_rows(model: mujoco.MjModel, rows: ArrayLike | None, count: int) -> Array:
    """Return (count, 7 nmocap) poses, those of the model where `rows` is None.

    Raises:
        ShapeError: another shape, or numbers that are not finite.
    """
    if rows is None:
        return np.tile(poses_of_mocap(mujoco.MjData(model)), (count, 1))
    values = real_array("mocap", rows)
    if values.shape != (count, POSE * model.nmocap) or not np.isfinite(values).all():
        raise ShapeError(
            f"mocap has shape {values.shape}, expected ({count}, {POSE * model.nmocap}), finite"
        )
    return values
