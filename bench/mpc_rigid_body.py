"""The single rigid body of a quadruped that trots, turns and is pushed, in closed loop.

The plant is the controller's own model at each tick's yaw and arms; pushes are jumps of speed.
Feet land under the hips. Ten samples, four feet with friction pyramids: 120 unknowns, 200 rows.
"""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.mpc import SingleRigidBody, single_rigid_body_mpc
from mbcasadi.mpc.legged.rigid_body import NX, next_state
from mbcasadi.mpc.legged.rigid_body_controller import SingleRigidBodyMPC

Array = NDArray[np.float64]

BODY = SingleRigidBody(12.0, np.diag([0.07, 0.26, 0.24]), friction=0.5, f_max=200.0)
HIPS = np.array([[0.2, 0.13], [0.2, -0.13], [-0.2, 0.13], [-0.2, -0.13]])  # m
Q = np.array([5.0, 5, 10, 10, 10, 50, 0.1, 0.1, 0.1, 0.5, 0.5, 0.5])
RHO, PERIOD, HORIZON = 1e-5, 0.03, 10  # 1/N², s, samples
HEIGHT, SPEED, TURN = 0.3, 0.4, 0.4  # m, m/s, rad/s
STEP = 8  # samples for which a pair of feet stays
PUSH, PUSHED = 0.8, 20  # m/s of its standard deviation, and the ticks between pushes
PAIRS = np.array([[1.0, 0, 0, 1], [0, 1, 1, 0]])


def quadruped() -> SingleRigidBodyMPC:
    """Return the controller."""
    return single_rigid_body_mpc(BODY, HORIZON, Q, RHO, period=PERIOD, name="quadruped_forces")


def closed_loop(law: ca.Function, z: Array, ticks: int) -> tuple[dict[str, Array], Array, Array]:
    """Return the law's inputs at every tick, its controls, and the z that it hands on."""
    rng, plant = np.random.default_rng(0), next_state(BODY, PERIOD)
    x = np.zeros(NX)
    x[5] = HEIGHT
    inputs: dict[str, list[Array]] = {key: [] for key in ("x0", "feet", "ref", "mask", "z")}
    controls, states = [], []
    for k in range(ticks):
        if k % PUSHED == PUSHED - 1:
            x[9:11] += PUSH * rng.standard_normal(2)
        values = (
            x.copy(),
            _feet(x),
            _desired_states(x),
            PAIRS[(np.arange(HORIZON) + k) // STEP % 2],
            z,
        )
        for key, value in zip(inputs, values, strict=True):
            inputs[key].append(value.ravel())
        u, z = (np.array(out).ravel() for out in law(*(v.ravel() for v in values))[:2])
        x = np.array(plant(x, values[1].ravel(), u)).ravel()
        controls.append(u)
        states.append(z)
    record = {key: np.array(values) for key, values in inputs.items()}
    return record, np.array(controls), np.array(states)


def _desired_states(x: Array) -> Array:
    """Return (N, 12): on from here at a constant speed, straight up."""
    ref, ahead = np.zeros((HORIZON, NX)), PERIOD * np.arange(1, HORIZON + 1)
    ref[:, 2], ref[:, 3] = x[2] + TURN * ahead, x[3] + SPEED * ahead
    ref[:, 5], ref[:, 8], ref[:, 9] = HEIGHT, TURN, SPEED
    return ref


def _feet(x: Array) -> Array:
    c, s = np.cos(x[2]), np.sin(x[2])
    places = HIPS @ np.array([[c, s], [-s, c]]) + x[3:5]
    return np.column_stack([places, np.zeros(len(HIPS))])
