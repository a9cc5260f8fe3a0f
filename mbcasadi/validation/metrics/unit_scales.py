"""What a length, an angle or a force of a model is compared with, and units that suit a number."""

import math

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


PREFIXES = (("", 1.0), ("m", 1e3), ("µ", 1e6), ("n", 1e9))


def prefixed(value: float, unit: str) -> str:
    """Return three digits with the unit at which the number is at least one: 0.0485 s is 48.5 ms.

    Args:
        value: in `unit`.
        unit: m or s.
    """
    if not value or not math.isfinite(value):
        return f"{value:.3g} {unit}" if value else "0"
    rounded = [(float(f"{value * factor:.3g}"), prefix) for prefix, factor in PREFIXES]
    number, prefix = next((each for each in rounded if abs(each[0]) >= 1), rounded[-1])
    return f"{number:.4g} {prefix}{unit}"
