"""The quadruped's inverse dynamics in the usual form, for the QP solvers of other tools.

Unknowns are the accelerations and the contact forces, (a, f); the six rows of the dynamics
without motors and the twelve of the standing feet are equalities, torque limits, pyramids and
normal forces inequalities. It has the same cost as the condensed problem, so its torques must be
those of our controller: `torques` lets the benchmark check that.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bench.tick_cases import BASE_WEIGHT, KD, KP, POSTURE_WEIGHT
from mbcasadi.control import InverseDynamicsQP

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratic:
    """`min ½ xᵀ H x + gᵀ x` subject to `CE x + ce = 0`, `CI x + ci >= 0`; `u = T x + t`."""

    H: Array
    g: Array
    CE: Array
    ce: Array
    CI: Array
    ci: Array
    T: Array
    t: Array

    def torques(self, x: Array) -> Array:
        """Return the actuator forces of a solution."""
        return self.T @ x + self.t


def full_form(
    controller: InverseDynamicsQP,
    feet: tuple[str, ...],
    cone: tuple[float, float],
    states: tuple[Array, Array],
    stance: Array,
) -> list[Quadratic]:
    """Return the problem of every state.

    Args:
        controller: the whole-body controller.
        feet: names of their frames.
        cone: friction coefficient and least normal force, N.
        states: (ticks, nq) and (ticks, nv).
        stance: (nq,) configuration to hold.
    """
    frames = [controller.system.frame(name) for name in ("trunk", *feet)]
    return [_problem(controller, frames, cone, q, v, stance) for q, v in zip(*states, strict=True)]


def _problem(
    controller: InverseDynamicsQP,
    frames: list[Any],
    cone: tuple[float, float],
    q: Array,
    v: Array,
    stance: Array,
) -> Quadratic:
    system = controller.system
    nv, nf, friction, least = system.nv, 3 * (len(frames) - 1), *cone
    M, B = _full(system.mass_matrix(q)), _full(system.actuation(q))
    bias = _column(system.bias_force(q, v)) - _column(system.passive_force(q, v))
    J_trunk, c_trunk = _full(frames[0].jacobian(q)), _column(frames[0].bias(q, v))
    J = np.vstack([_full(frame.jacobian(q))[:3] for frame in frames[1:]])
    c = np.concatenate([_column(frame.bias(q, v))[:3] for frame in frames[1:]])
    dynamics = np.hstack([M, -J.T])  # M a + bias - Jᵀ f = B u
    T, t = B[6:].T @ dynamics[6:], B[6:].T @ bias[6:]
    root = np.sqrt(controller.force_weights.actuators)
    rows = [
        (np.hstack([J_trunk, np.zeros((6, nf))]), _trunk(q, v, J_trunk, stance) - c_trunk),
        (np.eye(nv, nv + nf, 0)[6:], KP * (stance[7:] - q[7:]) - KD * v[6:]),
        (root[:, None] * T, -root * t),
    ]
    weights = (BASE_WEIGHT, POSTURE_WEIGHT, 1.0)
    H = sum(w * R.T @ R for w, (R, _) in zip(weights, rows, strict=True)) + 0.0
    g = -np.sum([w * R.T @ r for w, (R, r) in zip(weights, rows, strict=True)], axis=0)
    # (a, f) with the same torques and tasks: none is free, but eiquadprog needs a Cholesky factor.
    H += 1e-12 * np.eye(nv + nf)
    low, high = system.limits.ctrl[:, 0], system.limits.ctrl[:, 1]
    pyramid = np.kron(np.eye(len(frames) - 1), _pyramid(friction))
    normal = np.kron(np.eye(len(frames) - 1), [[0.0, 0.0, 1.0]])
    of_f = np.hstack([np.zeros((nf, nv)), np.eye(nf)])
    CI = np.vstack([T, -T, pyramid @ of_f, normal @ of_f])
    ci = np.concatenate([t - low, high - t, np.zeros(len(pyramid)), np.full(len(normal), -least)])
    CE = np.vstack([dynamics[:6], np.hstack([J, np.zeros((nf, nf))])])
    return Quadratic(H, g, CE, np.concatenate([bias[:6], c]), CI, ci, T, t)


def _trunk(q: Array, v: Array, J: Array, stance: Array) -> Array:
    """Return the PD acceleration of the trunk: position, then rotation vector, world axes."""
    turn = Rotation.from_quat(stance[[4, 5, 6, 3]]) * Rotation.from_quat(q[[4, 5, 6, 3]]).inv()
    error = np.concatenate([stance[:3] - q[:3], turn.as_rotvec()])
    return KP * error - KD * (J @ v)


def _pyramid(friction: float) -> Array:
    """Return four sides whose edges lie on the cone, world axes, force against the ground."""
    edge = friction / np.sqrt(2.0)
    return np.array([[1, 0, edge], [-1, 0, edge], [0, 1, edge], [0, -1, edge]], dtype=float)


def _full(value: Any) -> Array:
    return np.array(value, dtype=float)


def _column(value: Any) -> Array:
    return np.array(value, dtype=float).ravel()
