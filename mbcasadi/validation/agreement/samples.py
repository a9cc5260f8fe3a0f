"""Random states at which a `System` is compared, in the sizes of the mechanism."""

from typing import NamedTuple

import mujoco
import numpy as np

from mbcasadi.validation.agreement.manifold import Array, integrate
from mbcasadi.validation.agreement.sizes import Sizes

RUNNING = 1.0  # s; at time 0 the plugin `mujoco.pid` has no set-point yet that its slew rate holds
CTRL_MARGIN = 0.5  # controls are drawn from their range, widened by this fraction on each side


class Sample(NamedTuple):
    """One random state, a second configuration and a step, and MuJoCo's data at the state."""

    model: mujoco.MjModel
    data: mujoco.MjData
    sizes: Sizes
    q: Array
    v: Array
    u: Array
    act: Array
    q0: Array
    q1: Array
    dv: Array


def random_sample(model: mujoco.MjModel, sizes: Sizes, rng: np.random.Generator) -> Sample:
    """Draw a state anywhere in the configuration space, controls in and out of their ranges.

    Args:
        model: without forces of MuJoCo's solver.
        sizes: of the model.
        rng: of the random numbers.
    """
    steps = sizes.coordinates * rng.normal(size=(3, model.nv))
    q, q1 = (integrate(model, model.qpos0, step) for step in steps[:2])
    low, high = model.actuator_ctrlrange.T
    margin = CTRL_MARGIN * np.abs(high - low)
    within = rng.uniform(low - margin, high + margin)
    free = sizes.actuators.controls * rng.normal(size=model.nu)
    sample = Sample(
        model=model,
        data=mujoco.MjData(model),
        sizes=sizes,
        q=q,
        v=sizes.rate * sizes.coordinates * rng.normal(size=model.nv),
        u=np.where(model.actuator_ctrllimited, within, free),
        act=sizes.actuators.activations * rng.normal(size=model.na),
        q0=q,
        q1=q1,
        dv=steps[2],
    )
    data = sample.data
    data.time = RUNNING
    data.qpos, data.qvel, data.ctrl, data.act = sample.q, sample.v, sample.u, sample.act
    mujoco.mj_forward(model, data)
    return sample
