"""A linear model with a constant disturbance: its estimator and its steady states."""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from mbcasadi.control.guard import LARGEST_INPUT
from mbcasadi.control.linear.riccati import stationary_filter
from mbcasadi.control.mpc.linear.model import Array, LinearModel
from mbcasadi.control.mpc.linear.problem import LinearProblem
from mbcasadi.errors import ProblemError, ShapeError

RANK_TOL = 1e-9
"""Singular value, relative to the largest, below which a matrix has lost a rank."""


@dataclass(frozen=True)
class Disturbed:
    """A model with its disturbance, estimator and target, in numbers.

    Attributes:
        model: of the state (x, d).
        C: (ny, nx + nd) measurement `y = C (x, d)`.
        L: (nx + nd, ny) gain of the correction.
        target, target_0: `(x_s, u_s) = target (r, s, d) + target_0`.
    """

    model: LinearModel
    C: Array
    L: Array
    target: Array
    target_0: Array


def disturbed(
    problem: LinearProblem, B_d: Array, C: Array, H: Array, noise: tuple[Array, Array, Array]
) -> Disturbed:
    """Return the model of (x, d), its estimator, and the target.

    Args:
        problem: without disturbances.
        B_d, C, H: (nx, nd), (ny, nx), (nt, nx).
        noise: covariances of x and d in one sample, and of y.

    Raises:
        ProblemError: an unobservable disturbance; no steady state has every tracked value.
    """
    A, B, drift = problem.model.interval(0)
    (nx, nu), nd = B.shape, B_d.shape[1]
    steady = np.block([[A - np.eye(nx), B_d], [C, np.zeros((C.shape[0], nd))]])
    if nd and np.linalg.matrix_rank(steady, _tolerance(steady)) < nx + nd:
        raise ProblemError(
            f"{nd} disturbances and {C.shape[0]} measured numbers: a disturbance, or a state that "
            "integrates, leaves no trace of its own; expected at most one disturbance for each "
            "measured number, in `disturbances`"
        )
    model = LinearModel.of(
        np.block([[A, B_d], [np.zeros((nd, nx)), np.eye(nd)]]),
        np.vstack([B, np.zeros((nd, nu))]),
        problem.model.period,
        np.concatenate([drift, np.zeros(nd)]),
    )
    C_all = np.hstack([C, np.zeros((C.shape[0], nd))])
    gains = stationary_filter(model.A, C_all, beside(noise[0], noise[1]), noise[2])
    return Disturbed(model, C_all, gains.L, *_target(problem, B_d, H))


def estimates(parts: Disturbed, y: Any, before: Any) -> tuple[Any, Any]:
    """Return the corrected (x, d), infinite where an input is bad, and the one that is kept."""
    known = ca.sum1(ca.fabs(before)) <= LARGEST_INPUT
    seen = ca.sum1(ca.fabs(y)) <= LARGEST_INPUT
    start = ca.if_else(known, before, 0)
    missed = ca.if_else(seen, y - ca.DM(parts.C) @ start, 0)
    coasted = start + ca.DM(parts.L) @ missed
    return ca.if_else(ca.logic_and(known, seen), coasted, np.inf), coasted


def _target(problem: LinearProblem, B_d: Array, H: Array) -> tuple[Array, Array]:
    """Return the map of (r, s, d) to the steady state nearest to (r, s) that tracks.

    min ½ |x_s - r|²_Q + ½ |u_s - s|²_R   subject to   E (x_s, u_s) = e

    solved through the null space N of E.
    """
    A, B, drift = problem.model.interval(0)
    (nx, nu), nd = B.shape, B_d.shape[1]
    E = np.block([[A - np.eye(nx), B], [H, np.zeros((H.shape[0], nu))]])
    if np.linalg.matrix_rank(E, _tolerance(E)) < E.shape[0]:
        raise ProblemError(
            f"{H.shape[0]} tracked rows and {nu} controls: no steady state has every tracked "
            "value; expected at most one row for each control, of which no two say the same, and "
            "none of a speed"
        )
    wanted = np.zeros((E.shape[0], nx + nu + nd))
    wanted[:nx, nx + nu :] = -B_d
    wanted[nx:, :nx] = H
    W, inverse = beside(problem.Q, problem.R), np.linalg.pinv(E)
    N = np.linalg.svd(E)[2][E.shape[0] :].T
    to_near = N @ np.linalg.pinv(N.T @ W @ N) @ N.T @ W
    near = np.hstack([np.eye(nx + nu), np.zeros((nx + nu, nd))])
    steady = (np.eye(nx + nu) - to_near) @ inverse
    rest = steady @ np.concatenate([-drift, np.zeros(H.shape[0])])
    return steady @ wanted + to_near @ near, rest


def beside(first: Array, second: Array) -> Array:
    """Return one matrix with both on its diagonal."""
    return np.asarray(block_diag(first, second))


def _tolerance(matrix: Array) -> float:
    return RANK_TOL * float(np.linalg.norm(matrix, 2))


def matrix(
    name: str,
    value: ArrayLike | None,
    default: Array | None,
    *,
    rows: int | None = None,
    columns: int | None = None,
) -> Array:
    """Return a finite matrix of the given size.

    Args:
        name: for messages.
        value: (rows, columns), or None for the default.
        default: used where there is no value.
        rows, columns: expected size; None for any.

    Raises:
        ShapeError: another shape, or NaN.
    """
    given = np.atleast_2d(np.asarray(default if value is None else value, dtype=float))
    fits = given.ndim == 2 and all(
        wanted in (None, size) for wanted, size in zip((rows, columns), given.shape, strict=True)
    )
    if not fits or not np.all(np.isfinite(given)):
        wanted = f"({rows or 'any'}, {columns or 'any'})"
        raise ShapeError(f"{name} has shape {given.shape}, expected {wanted}, without NaN")
    return given
