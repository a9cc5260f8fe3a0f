"""Closed loops in MuJoCo with faults of the measurement, and what MuJoCo says about them."""

from dataclasses import dataclass

import mujoco
import numpy as np


@dataclass
class Run:
    """One row for each tick: statuses, and MuJoCo's actuator forces, speeds and positions.

    `first`, `last` are the ticks at which the fault begins and has ended.
    """

    status: np.ndarray
    force: np.ndarray
    speed: np.ndarray
    q: np.ndarray
    first: int
    last: int

    @property
    def before(self):
        """Actuator force of the last good tick."""
        return self.force[self.first - 1]

    @property
    def force_change(self):
        """Largest change of an actuator force during the fault, relative to the force before."""
        change = np.abs(self.force[self.first : self.last] - self.before).max()
        return change / np.abs(self.before).max()

    @property
    def top_speed(self):
        """Largest speed during the fault."""
        return np.abs(self.speed[self.first : self.last]).max()

    @property
    def travel(self):
        """Largest change of a coordinate during the fault."""
        return np.abs(self.q[self.first - 1 : self.last] - self.q[self.first - 1]).max()


def nan(q, v, past):
    return np.full_like(q, np.nan), np.full_like(v, np.nan)


def one_encoder(q, v, past):
    broken = q.copy()
    broken[-1] = np.nan
    return broken, v


def huge_spike(q, v, past):
    broken = q.copy()
    broken[-1] = 1e13
    return broken, v


def spike(q, v, past):
    broken = q.copy()
    broken[-1] += 0.1
    return broken, v


def stale(q, v, past):
    return past


def run(controller, model, q0, fault, seconds, *, begin=0.1, after=0.05, reference=None, **given):
    """Return the closed loop of a controller's Function and MuJoCo around one fault."""
    data, f = mujoco.MjData(model), controller.function
    data.qpos[:] = q0
    period = controller.period
    steps, first = round(period / model.opt.timestep), round(begin / period)
    last = first + max(1, round(seconds / period))
    z, rows, past = controller.z0, [], None
    for k in range(last + round(after / period)):
        q, v = data.qpos.copy(), data.qvel.copy()
        if first <= k < last:
            q, v = fault(q, v, past)
        else:
            past = q, v
        inputs = {"q": q, "v": v, "ref": reference(k * period), "mask": [], "z": z} | given
        out = f(**{name: inputs[name] for name in f.name_in()})
        z = out["z_next"]
        data.ctrl[:] = np.array(out["u"]).ravel()
        mujoco.mj_step(model, data, steps)
        state = data.actuator_force.copy(), data.qvel.copy(), data.qpos.copy()
        rows.append((int(out["status"]), *state))
    return Run(*(np.array(column) for column in zip(*rows, strict=True)), first, last)
