"""Real-time iterations in closed loop: a cart-pole swings up, a pendulum is held on a four-bar.

The plant is the controller's own model; the pendulum is pushed now and then. The first guess is an
optimum, and forces and torques are bounded. The four-bar's loop has three rows of rank two, which
every step of the prediction keeps closed.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import models
from mbcasadi.mpc import OptimalControlProblem, initial_guess, optimal_control_problem, solve_ocp
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.stage_bounds import StageBounds
from mbcasadi.mpc.rti.controller import real_time_iteration
from mbcasadi.mpc.rti.iteration import RealTimeIteration
from mbcasadi.system import from_lagrangian, read_mjcf

Array = NDArray[np.float64]

EVERY = 40  # ticks between pushes
CART_POLE, FOUR_BAR = 50, 30  # samples of a prediction


@dataclass(frozen=True)
class Case:
    """A controller and what happens to it.

    Attributes:
        rti: the controller.
        start: (nx,) the first state.
        goal: (nq,) the pose to hold.
        pushed, push: row of x that a push adds to, and how much, rad/s.
    """

    rti: RealTimeIteration
    start: Array
    goal: Array
    pushed: int
    push: float


def cart_pole() -> Case:
    """Return the swing-up: N = 50 samples of 0.04 s."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    bob = ca.vertcat(v[0] + 0.5 * v[1] * ca.cos(q[1]), 0.5 * v[1] * ca.sin(q[1]))
    system = from_lagrangian(
        q,
        v,
        kinetic=v[0] ** 2 / 2 + 0.3 * ca.sumsqr(bob) / 2,
        potential=-0.3 * 9.81 * 0.5 * ca.cos(q[1]),
        B=[[1], [0]],
        ctrl_range=[[-12.0, 12.0]],  # N
        name="cart_pole",
    )
    ocp = optimal_control_problem(
        system, CART_POLE, 0.04, [Cost(Q=[0.1, 1, 0.01, 0.01], R=0.05, Q_end=[200, 200, 20, 20])]
    )
    below, upright = np.zeros(4), np.array([0, np.pi, 0, 0])
    return Case(
        _controller_from_optimum(ocp, below, upright), below, upright[:2], pushed=3, push=2.5
    )


def four_bar() -> Case:
    """Return the pendulum on a four-bar: N = 30 samples of 0.02 s, torque within 0.8 N m."""
    system = read_mjcf(models.path("pendulum_on_four_bar"))
    crank_and_pendulum = np.array([1.0, 0, 1, 0])
    ocp = optimal_control_problem(
        system,
        FOUR_BAR,
        0.02,
        [
            Cost(
                Q=np.concatenate([[5, 0, 20, 0], 0.1 * crank_and_pendulum]),
                R=0.05,
                Q_end=np.concatenate([[20, 0, 100, 0], [1, 0, 5, 0]]),
            ),
            StageBounds(u=[[-0.8, 0.8]]),
        ],
        name="four_bar",
    )
    assert system.tree is not None
    upright = np.concatenate([system.tree.q0, np.zeros(system.nv)])
    return Case(
        _controller_from_optimum(ocp, upright, upright), upright, upright[:4], pushed=6, push=0.8
    )


def planar_biped() -> Case:
    """Return a biped at rest in a stride: N = 20 samples of 0.02 s, six rows of rank four."""
    system = read_mjcf(models.path("planar_biped"))
    ocp = optimal_control_problem(
        system,
        20,
        0.02,
        [
            Cost(
                Q=np.concatenate([np.full(7, 100.0), np.full(7, 1.0)]),
                R=np.full(system.nu, 1e-4),
                Q_end=np.concatenate([np.full(7, 100.0), np.full(7, 10.0)]),
            )
        ],
        name="planar_biped",
    )
    assert system.tree is not None
    standing = np.concatenate([system.tree.q0, np.zeros(system.nv)])
    return Case(
        _controller_from_optimum(ocp, standing, standing),
        standing,
        standing[:7],
        pushed=9,
        push=0.3,
    )


def _controller_from_optimum(
    ocp: OptimalControlProblem, start: Array, end: Array
) -> RealTimeIteration:
    """Return the controller that begins with the optimum from `start`."""
    nq = ocp.state.numel_in(0)
    straight = np.linspace(start, end, ocp.horizon + 1)
    guess = initial_guess(ocp, straight, np.zeros((ocp.horizon, ocp.nu)))
    optimum = solve_ocp(ocp, start, ocp.parameters(setpoint_q=end[:nq]), guess)
    return real_time_iteration(ocp, optimum, name=f"{ocp.name}_rti")


def closed_loop(case: Case, law: ca.Function, ticks: int) -> tuple[dict[str, Array], Array, Array]:
    """Return the law's inputs at every tick, its controls, and the z that it hands on."""
    ocp, x, z = case.rti.ocp, case.start.copy(), case.rti.controller.z0
    nq, p = case.goal.size, ocp.parameters(setpoint_q=case.goal)
    inputs: dict[str, list[Array]] = {key: [] for key in ("q", "v", "ref", "z")}
    controls, states = [], []
    for k in range(ticks):
        if k % EVERY == EVERY - 1:
            x[case.pushed] += case.push
        for key, value in zip(inputs, (x[:nq], x[nq:], p.ravel(), z), strict=True):
            inputs[key].append(value.copy())
        u, z = (np.array(out).ravel() for out in law(x[:nq], x[nq:], p.ravel(), z)[:2])
        x = np.array(ocp.dynamics(x, u, p[0])).ravel()
        controls.append(u)
        states.append(z)
    record = {key: np.array(values) for key, values in inputs.items()}
    return record, np.array(controls), np.array(states)
