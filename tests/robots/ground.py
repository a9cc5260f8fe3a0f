"""Floors under published robots, and poses whose feet touch them."""

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

import mbcasadi as mb
from mbcasadi import plant

Array = NDArray[np.float64]

FLOOR = "floor"


@dataclass(frozen=True)
class Ground:
    """A plane under the robot.

    Attributes:
        slope: rad, about the world's y: the robot looks downhill where it is positive.
        friction: of the feet, in place of the model's.
        block: height of two blocks on the plane, 1 m long and 1 m apart, m; no planner knows them.
    """

    slope: float = 0.0
    friction: float | None = None
    block: float = 0.0

    @property
    def quaternion(self) -> Array:
        """Return the turn (w, x, y, z) from the level floor to this one."""
        return np.array([np.cos(self.slope / 2), 0.0, np.sin(self.slope / 2), 0.0])

    @property
    def rotation(self) -> Array:
        """Return the same as a matrix (3, 3)."""
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, self.quaternion)
        return R.reshape(3, 3)


def on_ground(path: Path, ground: Ground, feet: tuple[str, ...]) -> mujoco.MjSpec:
    """Return a model with a floor, and the friction of the ground on it and on the feet."""
    return plant.with_ground(
        path, plant.Ground(slope=-ground.slope, friction=ground.friction, feet=feet)
    )


def standing_pose(system: mb.System, pose: Array, ground: Ground, contacts) -> Array:
    """Return a pose (nq,) turned with the ground and moved along its normal until it touches."""
    q = np.array(pose, dtype=float).ravel()
    q[:3] = ground.rotation @ q[:3]
    turned = np.zeros(4)
    mujoco.mju_mulQuat(turned, ground.quaternion, q[3:7])
    q[3:7] = turned
    least = min(float(contact.gap(q)[0]) for contact in contacts)
    q[:3] -= least * ground.rotation[:, 2]
    return q
