"""A linear MPC problem without its states: a small QP whose matrices are constant.

    min ½ yᵀ H y + (G θ + g_0)ᵀ y,   lower <= C y + D θ + c_0 <= upper

y are the moves and the slacks, θ = (x_0, r, s, u_{-1}) is what changes from tick to tick. Only
products with θ are left for run time: H is factored when the controller is built.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from mbcasadi.control.mpc.linear_model import Array, Output
from mbcasadi.control.mpc.linear_problem import LinearProblem

SLACK_CURVATURE = 1e-6
"""Least ρ₂ of a soft row, relative to the largest entry of H: the QP must be strictly convex."""


@dataclass(frozen=True)
class CondensedProblem:
    """The QP; see the head of this file.

    Attributes:
        H, G, g_0: (n, n), (n, nθ), (n,).
        C, D, c_0, lower, upper: (m, n), (m, nθ), (m,).
        names: of the rows.
        later: (m,) row of the next sample that says the same, or itself at the end: how an active
            set is shifted.
        slacks: number of unknowns behind the moves.
    """

    H: Array
    G: Array
    g_0: Array
    C: Array
    D: Array
    c_0: Array
    lower: Array
    upper: Array
    names: tuple[str, ...]
    later: tuple[int, ...]
    slacks: int


@dataclass(frozen=True)
class Prediction:
    """`x_k = of_y[k] y + of_theta[k] θ + rest[k]`, `u_k` likewise; slacks are columns of y."""

    x: list[tuple[Array, Array, Array]]
    u: list[tuple[Array, Array, Array]]


@dataclass(frozen=True)
class Parameters:
    """Where θ holds what."""

    x0: slice
    r: slice
    s: slice
    last: slice
    size: int


def parameters_of(problem: LinearProblem) -> Parameters:
    """Return the slices of θ: x_0, r (one or N states), s, u_{-1} (where rates count)."""
    nx, nu = problem.model.nx, problem.model.nu
    sizes = [
        nx,
        nx * (problem.horizon if problem.preview else 1),
        nu,
        nu if problem.rated else 0,
    ]
    ends = np.cumsum([0, *sizes]).tolist()
    x0, r, s, last = (slice(a, b) for a, b in itertools.pairwise(ends))
    return Parameters(x0, r, s, last, ends[-1])


def condense_problem(problem: LinearProblem) -> CondensedProblem:
    """Return the QP in moves and slacks, which has the solution of the problem with states."""
    places = parameters_of(problem)
    slack_rows = [
        (output, k)
        for output in problem.outputs
        if output.soft
        for k in samples_of(output, problem.horizon)
    ]
    slacks = sum(output.C.shape[0] for output, _ in slack_rows)
    n = problem.moves * problem.model.nu + slacks
    predicted = predict(problem, places, n)
    H, G, g_0 = _cost(problem, places, predicted, n)
    rows = _Rows(n, places.size)
    _bound_controls(problem, places, predicted, rows)
    first = problem.moves * problem.model.nu
    for output in problem.outputs:
        first = _bound_output(problem, output, predicted, rows, first)
    _price_slacks(slack_rows, H, g_0, problem.moves * problem.model.nu)
    return CondensedProblem(H, G, g_0, *rows.stacked(), rows.names, rows.later(), slacks)


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
    return Prediction(x, u)


def _cost(
    problem: LinearProblem, places: Parameters, predicted: Prediction, n: int
) -> tuple[Array, Array, Array]:
    H, G, g_0 = np.zeros((n, n)), np.zeros((n, places.size)), np.zeros(n)
    nx = problem.model.nx

    def add(weight: Array, y: Array, theta: Array, rest: Array) -> None:
        nonlocal H, G, g_0
        H += y.T @ weight @ y
        G += y.T @ weight @ theta
        g_0 += y.T @ weight @ rest

    for k in range(1, problem.horizon + 1):
        y, theta, rest = predicted.x[k]
        wanted = np.zeros((nx, places.size))
        first = places.r.start + (nx * (k - 1) if problem.preview else 0)
        wanted[:, first : first + nx] = np.eye(nx)
        add(problem.P if k == problem.horizon else problem.Q, y, theta - wanted, rest)
    for k in range(problem.horizon):
        y, theta, rest = predicted.u[k]
        wanted = np.zeros_like(theta)
        wanted[:, places.s] = np.eye(problem.model.nu)
        add(problem.R, y, theta - wanted, rest)
        if np.any(problem.S):
            add(problem.S, *_change(predicted, places, k))
    return (H + H.T) / 2, G, g_0


def _change(predicted: Prediction, places: Parameters, k: int) -> tuple[Array, Array, Array]:
    """Return `u_k - u_{k-1}` as an affine map."""
    y, theta, rest = predicted.u[k]
    if k:
        before = predicted.u[k - 1]
        return y - before[0], theta - before[1], rest - before[2]
    last = np.array(theta)
    last[:, places.last] -= np.eye(theta.shape[0])
    return y, last, rest


class _Rows:
    """Rows of the QP as they are collected."""

    def __init__(self, n: int, size: int) -> None:
        self.n, self.size = n, size
        self.parts: list[tuple[Array, Array, float, float, float]] = []
        self.keys: list[tuple[str, int]] = []

    def add(
        self,
        key: tuple[str, int],
        row: tuple[Array, Array, float],
        lower: float,
        upper: float,
    ) -> None:
        if np.isfinite(lower) or np.isfinite(upper):
            self.parts.append((*row, lower, upper))
            self.keys.append(key)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{name}[{k}]" for name, k in self.keys)

    def later(self) -> tuple[int, ...]:
        place = {key: i for i, key in enumerate(self.keys)}
        return tuple(place.get((name, k + 1), i) for i, (name, k) in enumerate(self.keys))

    def stacked(self) -> tuple[Array, Array, Array, Array, Array]:
        if not self.parts:
            none = np.zeros(0)
            return np.zeros((0, self.n)), np.zeros((0, self.size)), none, none, none
        C, D, c, lower, upper = (np.array(part) for part in zip(*self.parts, strict=True))
        return C, D, c, lower, upper


def _bound_controls(
    problem: LinearProblem, places: Parameters, predicted: Prediction, rows: _Rows
) -> None:
    """Bound each move once, and its change where it may change."""
    moved: set[int] = set()
    for k, move in enumerate(problem.blocks):
        if move in moved:
            continue
        moved.add(move)
        for bounds, what, (y, theta, rest) in (
            (problem.u_bounds, "u", predicted.u[k]),
            (
                problem.du_bounds,
                "du",
                _change(predicted, places, k) if problem.rated else predicted.u[k],
            ),
        ):
            for i, (low, high) in enumerate(bounds):
                rows.add((f"{what}{i}", move), (y[i], theta[i], rest[i]), low, high)


def _bound_output(
    problem: LinearProblem, output: Output, predicted: Prediction, rows: _Rows, first: int
) -> int:
    """Bound an output at each sample; returns where the next slack stands."""
    for k in samples_of(output, problem.horizon):
        parts = [output.C @ part for part in predicted.x[k]]
        if np.any(output.D):
            parts = [x + output.D @ part for x, part in zip(parts, predicted.u[k], strict=True)]
        y, theta, rest = parts
        for i in range(output.C.shape[0]):
            key, row = f"{output.name}{i}", (y[i], theta[i], float(rest[i]))
            if not output.soft:
                rows.add((key, k), row, output.lower[i], output.upper[i])
                continue
            slack = np.zeros(rows.n)
            slack[first] = 1.0
            first += 1
            above, below = (y[i] - slack, theta[i], float(rest[i])), (y[i] + slack, *row[1:])
            rows.add((f"{key}.upper", k), above, -np.inf, output.upper[i])
            rows.add((f"{key}.lower", k), below, output.lower[i], np.inf)
            rows.add((f"{key}.slack", k), (slack, 0 * theta[i], 0.0), 0.0, np.inf)
    return first


def _price_slacks(slack_rows: list[tuple[Output, int]], H: Array, g_0: Array, first: int) -> None:
    least = SLACK_CURVATURE * float(np.abs(H).max(initial=1.0))
    for output, _ in slack_rows:
        for _ in range(output.C.shape[0]):
            H[first, first] = max(output.quadratic_penalty, least)
            g_0[first] = output.linear_penalty
            first += 1
