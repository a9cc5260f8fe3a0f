"""MuJoCo's residual, Jacobian and bias of the equality constraints at a sample."""

import mujoco
import numpy as np

from mbcasadi.validation.agreement import equality_rows
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.mujoco_values import directional_derivative
from mbcasadi.validation.agreement.samples import Sample

SMOOTH = 1e-12
"""Largest error of differences of smooth tendons' lengths, relative to the fastest of them: a jump
that is not seen at that size moves the bias by less than a hundred times as much."""


def constraint(s: Sample) -> Array:
    """Return phi; NaN where MuJoCo drops a constraint whose Jacobian vanishes."""
    return equality_rows.residual(s.model, s.data)


def constraint_jacobian(s: Sample) -> Array:
    """Return A; zero where MuJoCo drops a constraint."""
    return equality_rows.jacobian(s.model, s.data)


def constraint_bias(s: Sample) -> Array:
    """Return c = Ȧ v by differences of A v along the motion.

    NaN for couplings of tendons where no difference has a meaning: where a tendon starts or ceases
    to wrap between the differences, or takes the other side, so that the rate of its length jumps,
    or where one passes inside a geom: the error of MuJoCo's own iteration there, up to 1e-6, jumps.
    """
    data = mujoco.MjData(s.model)
    inside: list[bool] = []

    def values(q: Array) -> Array:
        data.qpos = q
        mujoco.mj_fwdPosition(s.model, data)
        inside.append(_passes_inside(data))
        rates = equality_rows.jacobian(s.model, data) @ s.v
        return np.concatenate([rates, data.ten_length])

    rows = equality_rows.rows_of_tendons(s.model)
    bias, speeds = np.split(directional_derivative(s, s.v, values), [rows.size])
    jump = np.abs(speeds - s.data.ten_velocity).max(initial=0.0)
    if any(inside) or jump > SMOOTH * np.abs(s.data.ten_velocity).max(initial=0.0):
        bias[rows] = np.nan
    return bias


def _passes_inside(data: mujoco.MjData) -> bool:
    """Return whether a tendon touches a geom at one point, as MuJoCo lets it inside only."""
    count = int(data.ten_wrapnum.sum())
    geoms, points = data.wrap_obj.ravel()[:count], data.wrap_xpos.reshape(-1, 3)[:count]
    pairs = (geoms[1:] >= 0) & (geoms[1:] == geoms[:-1])
    return bool(np.any(pairs & np.all(points[1:] == points[:-1], axis=1)))
