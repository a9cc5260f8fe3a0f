"""Predicted states and controls as affine maps of the unknowns y and the parameters θ of a tick.

x_k = of_y[k] y + of_theta[k] θ + rest[k],   θ = (x_0, r, s, u_{-1})
"""

import itertools
from dataclasses import dataclass

import numpy as np

from mbcasadi.mpc.linear.prediction_model import Array, Output
from mbcasadi.mpc.linear.problem import LinearProblem


@dataclass(frozen=True)
class Prediction:
    """`x_k = of_y[k] y + of_theta[k] θ + rest[k]`, `u_k` likewise; slacks are columns of y.

    The states of θ enter as `lift x` where the prediction has other coordinates than the model.
    """

    x: list[tuple[Array, Array, Array]]
    u: list[tuple[Array, Array, Array]]
    lift: Array


@dataclass(frozen=True)
class Parameters:
    """The slices of θ."""

    x0: slice
    r: slice
    s: slice
    last: slice
    size: int


def parameters_of(problem: LinearProblem) -> Parameters:
    """Return the slices of θ: x_0, r (one or N states), s, u_{-1} (where rates enter)."""
    nx, nu = problem.model.nx, problem.model.nu
    sizes = [
        nx,
        nx * (problem.horizon if problem.preview else 1),
        nu,
        nu if problem.has_rates else 0,
    ]
    ends = np.cumsum([0, *sizes]).tolist()
    x0, r, s, last = (slice(a, b) for a, b in itertools.pairwise(ends))
    return Parameters(x0, r, s, last, ends[-1])


def samples_of(output: Output, horizon: int) -> range:
    """Return the samples at which an output is bounded."""
    return range(horizon) if np.any(output.D) else range(1, horizon + 1)


def predict(problem: LinearProblem, places: Parameters, n: int) -> Prediction:
    """Return every x_k and u_k as affine maps of y and θ."""
    nx, nu = problem.model.nx, problem.model.nu
    of_theta = np.zeros((nx, places.size))
    of_theta[:, places.x0] = np.eye(nx)
    x = [(np.zeros((nx, n)), of_theta, np.zeros(nx))]
    u = []
    for k, move in enumerate(problem.blocks):
        pick = np.zeros((nu, n))
        pick[:, move * nu : (move + 1) * nu] = np.eye(nu)
        u.append((pick, np.zeros((nu, places.size)), np.zeros(nu)))
        A, B, drift = problem.model.interval(k)
        y, theta, rest = x[-1]
        x.append((A @ y + B @ pick, A @ theta, A @ rest + drift))
    return Prediction(x, u, np.eye(nx))


def change(prediction: Prediction, places: Parameters, k: int) -> tuple[Array, Array, Array]:
    """Return `u_k - u_{k-1}` as an affine map."""
    y, theta, rest = prediction.u[k]
    if k:
        before = prediction.u[k - 1]
        return y - before[0], theta - before[1], rest - before[2]
    last = np.array(theta)
    last[:, places.last] -= np.eye(theta.shape[0])
    return y, last, rest
