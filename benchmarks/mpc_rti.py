"""A cart-pole swings up by real-time iterations: N = 50 samples of 0.04 s, bounded force.

The plant is the controller's own model; the pole is pushed when it stands. The first guess is the
optimum from rest below.
"""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.mpc import guess_of, optimal_control_problem, solve
from mbcasadi.control.mpc.real_time_iteration import RealTimeIteration, real_time_iteration
from mbcasadi.system import from_lagrangian

Array = NDArray[np.float64]

HORIZON, PERIOD, LIMIT = 50, 0.04, 12.0  # samples, s, N
PUSHED, PUSH = 40, 2.5  # ticks between pushes, rad/s


def cart_pole() -> RealTimeIteration:
    """Return the controller."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    bob = ca.vertcat(v[0] + 0.5 * v[1] * ca.cos(q[1]), 0.5 * v[1] * ca.sin(q[1]))
    system = from_lagrangian(
        q,
        v,
        kinetic=v[0] ** 2 / 2 + 0.3 * ca.sumsqr(bob) / 2,
        potential=-0.3 * 9.81 * 0.5 * ca.cos(q[1]),
        B=[[1], [0]],
        ctrl_range=[[-LIMIT, LIMIT]],
        name="cart_pole",
    )
    ocp = optimal_control_problem(
        system,
        HORIZON,
        PERIOD,
        Q=[0.1, 1, 0.01, 0.01],
        R=0.05,
        Q_end=[200, 200, 20, 20],
    )
    upright = np.array([0, np.pi, 0, 0])
    straight = np.linspace(np.zeros(4), upright, HORIZON + 1)
    guess = guess_of(ocp, straight, np.zeros((HORIZON, 1)))
    best = solve(ocp, np.zeros(4), ocp.parameters(setpoint_q=upright[:2]), guess)
    return real_time_iteration(ocp, best, name="cart_pole_rti")


def closed_loop(
    rti: RealTimeIteration, law: ca.Function, ticks: int
) -> tuple[dict[str, Array], Array, Array]:
    """Return the law's inputs at every tick, its controls, and the active sets handed on."""
    ocp, x, z = rti.ocp, np.zeros(4), rti.controller.z0
    p = ocp.parameters(setpoint_q=[0, np.pi])
    inputs: dict[str, list[Array]] = {key: [] for key in ("q", "v", "ref", "z")}
    controls, active = [], []
    for k in range(ticks):
        if k % PUSHED == PUSHED - 1:
            x[3] += PUSH
        for key, value in zip(inputs, (x[:2], x[2:], p.ravel(), z), strict=True):
            inputs[key].append(value.copy())
        u, z = (np.array(out).ravel() for out in law(x[:2], x[2:], p.ravel(), z)[:2])
        x = np.array(ocp.dynamics(x, u, p[0])).ravel()
        controls.append(u)
        active.append(z[-HORIZON:])
    record = {key: np.array(values) for key, values in inputs.items()}
    return record, np.array(controls), np.array(active)
