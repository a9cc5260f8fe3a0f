"""Condensing: a linear MPC problem without its states, a small QP with constant matrices.

    min ½ yᵀ H y + (G θ + g_0)ᵀ y,   lower <= C y + D θ + c_0 <= upper

y are the moves and the slacks, θ = (x_0, r, s, u_{-1}) changes from tick to tick. H is factored
when the controller is built; a tick only computes products with θ.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from mbcasadi.mpc.linear.model import Array, Output
from mbcasadi.mpc.linear.prediction import (
    Parameters,
    Prediction,
    change,
    parameters_of,
    predict,
    samples_of,
)
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.short_text import summarised

SLACK_CURVATURE = 1e-6
"""Least ρ₂ of a soft row, relative to the largest entry of H: the QP must be strictly convex."""

SOFT_REACH = 100.0
"""Least ρ₂ of a soft row is ρ₁ divided by this, in the row's unit. The unconstrained slack is
`-ρ₁/ρ₂`, and rows hold to a fraction of that: without curvature there is no accuracy."""


@summarised
@dataclass(frozen=True)
class CondensedProblem:
    """The QP in the form of the module's docstring.

    Attributes:
        H, G, g_0: (n, n), (n, nθ), (n,).
        C, D, c_0, lower, upper: (m, n), (m, nθ), (m,).
        names: of the rows.
        later: (m,) index of the same row at the next sample, or its own at the end: the shift of
            an active set.
        slacks: number of unknowns after the moves.
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

    @property
    def resting(self) -> Array:
        """Return the active set (m,) in which all slacks are zero and no other row is active."""
        return np.array([-1.0 if ".slack[" in name else 0.0 for name in self.names])


def condense_problem(problem: LinearProblem) -> CondensedProblem:
    """Return the QP in moves and slacks, equivalent to the problem with states."""
    places = parameters_of(problem)
    return assemble_qp(problem, predict(problem, places, unknowns_of(problem)))


def unknowns_of(problem: LinearProblem) -> int:
    """Return the number of moves and slacks."""
    return problem.moves * problem.model.nu + sum(
        len(output.C) * len(samples_of(output, problem.horizon))
        for output in problem.outputs
        if output.soft
    )


def rows_of_states(problem: LinearProblem) -> Array:
    """Return C of the same rows over moves, slacks and x_0 … x_N: few entries in each row."""
    places, nx, nu = parameters_of(problem), problem.model.nx, problem.model.nu
    first = unknowns_of(problem)
    n = first + nx * (problem.horizon + 1)

    def pick(start: int, count: int) -> tuple[Array, Array, Array]:
        rows = np.zeros((count, n))
        rows[:, start : start + count] = np.eye(count)
        return rows, np.zeros((count, places.size)), np.zeros(count)

    states = [pick(first + k * nx, nx) for k in range(problem.horizon + 1)]
    controls = [pick(move * nu, nu) for move in problem.blocks]
    return assemble_qp(problem, Prediction(states, controls)).C


def assemble_qp(problem: LinearProblem, prediction: Prediction) -> CondensedProblem:
    """Return cost and rows over the unknowns of a prediction: moves, slacks, then any others."""
    places, first = parameters_of(problem), problem.moves * problem.model.nu
    n = prediction.u[0][0].shape[1]
    H, G, g_0 = _cost(problem, places, prediction, n)
    _price_slacks(problem, H, g_0, first, SLACK_CURVATURE * float(np.abs(H).max(initial=1.0)))
    rows = _Rows(n, places.size)
    _bound_controls(problem, places, prediction, rows)
    slack = first
    for output in problem.outputs:
        slack = _bound_output(problem, output, prediction, rows, slack)
    _bound_end(problem, prediction, rows)
    return CondensedProblem(H, G, g_0, *rows.matrices(), rows.names, rows.later(), slack - first)


def _cost(
    problem: LinearProblem, places: Parameters, prediction: Prediction, n: int
) -> tuple[Array, Array, Array]:
    H, G, g_0 = np.zeros((n, n)), np.zeros((n, places.size)), np.zeros(n)
    nx = problem.model.nx

    def add(weight: Array, y: Array, theta: Array, rest: Array) -> None:
        nonlocal H, G, g_0
        H += y.T @ weight @ y
        G += y.T @ weight @ theta
        g_0 += y.T @ weight @ rest

    for k in range(1, problem.horizon + 1):
        y, theta, rest = prediction.x[k]
        reference = np.zeros_like(theta)
        first = places.r.start + (nx * (k - 1) if problem.preview else 0)
        reference[:, first : first + nx] = np.eye(nx)
        add(problem.P if k == problem.horizon else problem.Q, y, theta - reference, rest)
    for k in range(problem.horizon):
        y, theta, rest = prediction.u[k]
        reference = np.zeros_like(theta)
        reference[:, places.s] = np.eye(problem.model.nu)
        add(problem.R, y, theta - reference, rest)
        if np.any(problem.S):
            add(problem.S, *change(prediction, places, k))
    return (H + H.T) / 2, G, g_0


class _Rows:
    """Rows of the QP as they are collected."""

    def __init__(self, n: int, size: int) -> None:
        self.n, self.size = n, size
        self.rows: list[tuple[Array, Array, float, float, float]] = []
        self.keys: list[tuple[str, int]] = []

    def add(
        self,
        key: tuple[str, int],
        row: tuple[Array, Array, float],
        lower: float,
        upper: float,
    ) -> None:
        if np.isfinite(lower) or np.isfinite(upper):
            self.rows.append((*row, lower, upper))
            self.keys.append(key)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{name}[{k}]" for name, k in self.keys)

    def later(self) -> tuple[int, ...]:
        place = {key: i for i, key in enumerate(self.keys)}
        return tuple(place.get((name, k + 1), i) for i, (name, k) in enumerate(self.keys))

    def matrices(self) -> tuple[Array, Array, Array, Array, Array]:
        if not self.rows:
            empty = np.zeros(0)
            return np.zeros((0, self.n)), np.zeros((0, self.size)), empty, empty, empty
        C, D, c, lower, upper = (np.array(part) for part in zip(*self.rows, strict=True))
        return C, D, c, lower, upper


def _bound_controls(
    problem: LinearProblem, places: Parameters, prediction: Prediction, rows: _Rows
) -> None:
    """Bound each move once, and its change at the start of each move."""
    bounded_moves: set[int] = set()
    for k, move in enumerate(problem.blocks):
        if move in bounded_moves:
            continue
        bounded_moves.add(move)
        for bounds, quantity, (y, theta, rest) in (
            (problem.u_bounds, "u", prediction.u[k]),
            (
                problem.du_bounds,
                "du",
                change(prediction, places, k) if problem.has_rates else prediction.u[k],
            ),
        ):
            for i, (low, high) in enumerate(bounds):
                rows.add((f"{quantity}{i}", move), (y[i], theta[i], rest[i]), low, high)


def _bound_output(
    problem: LinearProblem, output: Output, prediction: Prediction, rows: _Rows, first: int
) -> int:
    """Bound an output at each sample; returns the index of the next slack."""
    for k in samples_of(output, problem.horizon):
        maps = [output.C @ map_of_state for map_of_state in prediction.x[k]]
        if np.any(output.D):
            maps = [
                x + output.D @ map_of_state
                for x, map_of_state in zip(maps, prediction.u[k], strict=True)
            ]
        y, theta, rest = maps
        for i in range(output.C.shape[0]):
            key, row = output.rows[i], (y[i], theta[i], float(rest[i]))
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


def _bound_end(problem: LinearProblem, prediction: Prediction, rows: _Rows) -> None:
    """Bound the last state, and the last control where rates are bounded."""
    if problem.terminal is None:
        return
    last = zip(prediction.x[problem.horizon], prediction.u[problem.horizon - 1], strict=True)
    y, theta, rest = (problem.terminal.of_x @ x + problem.terminal.of_u @ u for x, u in last)
    for i in range(len(y)):
        rows.add((f"terminal{i}", problem.horizon), (y[i], theta[i], rest[i]), -np.inf, 1.0)


def _price_slacks(problem: LinearProblem, H: Array, g_0: Array, first: int, least: float) -> None:
    for output in problem.outputs:
        for _ in range(len(output.C) * len(samples_of(output, problem.horizon)) * output.soft):
            curvature = output.linear_penalty / SOFT_REACH
            H[first, first] = max(output.quadratic_penalty, curvature, least)
            g_0[first] = output.linear_penalty
            first += 1


@dataclass(frozen=True)
class LeastDistanceProblem:
    """`min ½ xᵀx, l_0 - E θ <= A x <= u_0 - E θ`;  `y = L_inv x - (K θ + k_0)`."""

    A: Array
    E: Array
    l_0: Array
    u_0: Array
    L_inv: Array
    K: Array
    k_0: Array


def least_distance_problem(condensed: CondensedProblem) -> LeastDistanceProblem:
    """Return the QP in the unknown in which its Hessian is the identity; `H = Lᵀ L`."""
    n = condensed.H.shape[0]
    L = scipy.linalg.cholesky(condensed.H[::-1, ::-1], lower=False)[::-1, ::-1]
    L_inv = scipy.linalg.solve_triangular(L, np.eye(n), lower=True)
    K, k_0 = L_inv @ (L_inv.T @ condensed.G), L_inv @ (L_inv.T @ condensed.g_0)
    shift = condensed.c_0 - condensed.C @ k_0
    return LeastDistanceProblem(
        A=condensed.C @ L_inv,
        E=condensed.D - condensed.C @ K,
        l_0=condensed.lower - shift,
        u_0=condensed.upper - shift,
        L_inv=L_inv,
        K=K,
        k_0=k_0,
    )
