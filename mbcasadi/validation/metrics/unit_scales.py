"""What a length, an angle or a force of a model is compared with."""

import mujoco
import numpy as np


def unit_scale(model: mujoco.MjModel, unit: str) -> float:
    """Return what an error of 100 % is in this unit; 0 for a unit without a scale.

    1 rad; the extent of the model (MuJoCo's `stat.extent`), m; the same per second; the model's
    weight, N (mass times extent per s² without gravity), and that times the extent, N m.
    """
    extent = float(model.stat.extent)
    gravity = float(np.linalg.norm(model.opt.gravity)) or extent
    weight = float(np.sum(model.body_mass)) * gravity
    scales = {"rad": 1.0, "m": extent, "N": weight, "N m": weight * extent}
    return scales.get(unit.removesuffix("/s"), 0.0)
