"""Constrained motion at many states at once by singular values, in plain NumPy."""

from typing import NamedTuple

import mujoco
import numpy as np

from mbcasadi.dynamics.terms import terms_fun
from support.admissible_states import SINGULAR, States, call, column, pinv, times
from support.constrained_mechanisms import Mechanism

Array = np.ndarray


class Motion(NamedTuple):
    """Terms and motion at every state: `M a + h = f + f_c`, `A⁺ A a = -A⁺ c`."""

    M: Array
    h: Array
    f: Array
    A: Array
    c: Array
    a: Array
    f_c: Array
    lam: Array


def reference_motion(mechanism: Mechanism, states: States) -> Motion:
    """Return the motion of the system's own matrices."""
    terms = call(terms_fun(mechanism.system), states)
    h, c = column(terms, "h"), column(terms, "c")
    return solve(terms["M"], h, states["f"].T, terms["A"], c)


def solve(M: Array, h: Array, f: Array, A: Array, c: Array) -> Motion:
    """Return `a = -A⁺ c + a_along`, `a_along` in null(A) with `P (M a + h - f) = 0`."""
    A_pinv = pinv(A)
    P = np.eye(M.shape[1]) - A_pinv @ A
    across = -times(A_pinv, c)
    force = times(P, f - h - times(M, across))
    along = np.linalg.solve(P @ M @ P + (np.eye(M.shape[1]) - P), force[:, :, None])[:, :, 0]
    a = across + along
    f_c = times(M, a) + h - f
    return Motion(M, h, f, A, c, a, f_c, times(np.swapaxes(A_pinv, 1, 2), f_c))


def mujoco_motion(mechanism: Mechanism, states: States) -> Motion:
    """Return the motion of MuJoCo's own M, J, bias and `J̇v`, its aref without what pulls back."""
    model = mechanism.model
    assert model is not None
    data = mujoco.MjData(model)
    parts: list[list[Array]] = []
    for q, v in zip(states["q"].T, states["v"].T, strict=True):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        J = data.efc_J.reshape(-1, model.nv)[rows].copy()
        # aref pulls back what Newton's method left, 1e-13 times a stiffness of 1e3 and more
        K, B, impedance, _ = data.efc_KBIP[rows].T
        pull = B * (J @ v) + K * impedance * data.efc_pos[rows]
        parts.append([M, data.qfrc_bias - data.qfrc_passive, J, -data.efc_aref[rows] - pull])
    M, h, J, c = (np.array(column) for column in zip(*parts, strict=True))
    return solve(M, h, states["f"].T, J, c)


def lengths(vectors: Array) -> Array:
    """Return the Euclidean length of each row."""
    return np.linalg.norm(vectors, axis=1)


def worst(difference: Array, size: Array) -> float:
    """Return the largest length of a row of `difference` relative to its size."""
    return float(np.max(lengths(difference) / np.maximum(size, np.finfo(float).tiny)))


def acceleration_scale(motion: Motion) -> Array:
    """Return at each state the larger of |a| and of the acceleration without constraints."""
    if np.linalg.cond(motion.M).max() > 1e12:  # semidefinite
        return lengths(motion.a)
    free = np.linalg.solve(motion.M, (motion.f - motion.h)[:, :, None])[:, :, 0]
    return np.maximum(lengths(motion.a), lengths(free))


def force_scale(motion: Motion) -> Array:
    """Return at each state the larger of |f_c| and of the force without constraints."""
    return np.maximum(lengths(motion.f_c), lengths(motion.f - motion.h))


def multiplier_scale(motion: Motion) -> Array:
    """Return at each state the length of the multipliers of a force of `force_scale`."""
    return np.linalg.norm(pinv(motion.A), ord=2, axis=(1, 2)) * force_scale(motion)


def rounding_of_least_squares(motion: Motion) -> Array:
    """Return how far one rounding of A moves `A⁺ c` at each state.

    `ε (κ |A⁺ c| + κ² |c - A A⁺ c| / |A|)` with the condition κ of A (Wedin's bound): rows that
    contradict each other near a singular pose lose digits in every method.
    """
    A_pinv = pinv(motion.A)
    across = times(A_pinv, motion.c)
    gap = lengths(motion.c - times(motion.A, across))
    size = np.linalg.norm(motion.A, ord=2, axis=(1, 2))
    condition = size * np.linalg.norm(A_pinv, ord=2, axis=(1, 2))
    amount = condition * lengths(across) + condition**2 * gap / np.maximum(size, SINGULAR)
    return np.finfo(float).eps * amount
