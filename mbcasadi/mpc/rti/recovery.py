"""The way back of a real-time iteration from a guess that no QP solves.

A guess is a motion where its gaps `F(x_k, u_k) - x_{k+1}` are small beside its steps. A motion that
meets infeasible rows is followed to its end. Everything else, whatever its origin, is replaced:

    x_k = x_0, u_k = the last control of the first guess        a rest at the measured state,

or by the first guess itself where the measured state is within one of its steps.
"""

import casadi as ca
import numpy as np

from mbcasadi.description.tolerance import tolerance
from mbcasadi.mpc.ocp.problem import Array

GAP_SHARE = 0.2
"""Sum of the gaps, relative to that of the steps, up to which a guess is a motion."""

GAP_FLOOR = tolerance(1e-6)
"""The same relative to the size of the states: a guess at rest has no steps."""


def is_motion(X: ca.MX, gaps: ca.MX) -> ca.MX:
    """Return whether the states follow from each other; false for NaN.

    Args:
        X: (nx, N + 1) states of the guess.
        gaps: (nx, N).
    """
    steps = _sum(X[:, 1:] - X[:, :-1])
    return _sum(gaps) <= GAP_SHARE * steps + GAP_FLOOR * (1 + _sum(X))


def fresh_guess(first: tuple[Array, Array], x0: ca.MX) -> tuple[ca.MX, ca.MX]:
    """Return states and controls to begin with at a measured state.

    Args:
        first: (nx, N + 1) states and (nu, N) controls of the first guess.
        x0: (nx,) measured state.
    """
    X, U = first
    nearby = float(np.linalg.norm(np.diff(X, axis=1), axis=0).max())
    is_near = ca.norm_2(x0 - ca.DM(X[:, 0])) <= nearby
    at_rest = ca.repmat(x0, 1, X.shape[1]), ca.repmat(ca.DM(U[:, -1]), 1, U.shape[1])
    return ca.if_else(is_near, ca.DM(X), at_rest[0]), ca.if_else(is_near, ca.DM(U), at_rest[1])


def _sum(columns: ca.MX) -> ca.MX:
    """Return the sum of the lengths of the columns."""
    return ca.sum2(ca.sqrt(ca.sum1(ca.densify(columns) ** 2)))
