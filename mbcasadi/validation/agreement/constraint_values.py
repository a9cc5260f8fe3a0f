"""MuJoCo's residual, Jacobian and bias of the equality constraints at a sample."""

import mujoco
import numpy as np

from mbcasadi.validation.agreement import equality_rows
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.mujoco_values import directional_derivative
from mbcasadi.validation.agreement.samples import Sample


def constraint(s: Sample) -> Array:
    """Return phi; NaN where MuJoCo drops a constraint whose Jacobian vanishes."""
    return equality_rows.residual(s.model, s.data)


def constraint_jacobian(s: Sample) -> Array:
    """Return A; zero where MuJoCo drops a constraint."""
    return equality_rows.jacobian(s.model, s.data)


def constraint_bias(s: Sample) -> Array:
    """Return c = Ȧ v by differences of A v along the motion."""
    data = mujoco.MjData(s.model)

    def velocity(q: Array) -> Array:
        data.qpos = q
        mujoco.mj_fwdPosition(s.model, data)
        return np.asarray(equality_rows.jacobian(s.model, data) @ s.v)

    return directional_derivative(s, s.v, velocity)
