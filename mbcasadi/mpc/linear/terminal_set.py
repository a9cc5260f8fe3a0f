"""Terminal set: the largest invariant polytope of the regulator without bounds, for x_N.

    x_next = A x,    E x <= 1 at all times    is    F x <= 1

Rows `E Aᵗ` are added until the next ones are redundant; each decision is a linear program. With a
stable A and zero inside all bounds this ends after finitely many steps [E. G. Gilbert,
K. T. Tan, IEEE Trans. Automatic Control 36 (1991), 1008-1020, algorithm 3.2].

A plan that ends in this set can be continued by the regulator, so at the next sample, if the model
is right, there is a plan again.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.model import Array, LinearModel, Output
from mbcasadi.shapes import column

NEW = 1e-9
"""Excess of a row over its bound of one, on the set so far, above which it counts as new."""

MOST_STEPS = 1000
"""Largest number of samples."""

SHORT = 1e-12
"""Entries of a row, relative to its bound, that count as zero."""


@dataclass(frozen=True)
class TerminalSet:
    """`of_x x_N + of_u u_{N-1} <= 1`.

    Attributes:
        of_x: (m, nx).
        of_u: (m, nu), zero where no rate is bounded.
        K: (nu, nx) the regulator `u = -K x` that stays inside.
        steps: number of samples after which no row was new.
    """

    of_x: Array
    of_u: Array
    K: Array
    steps: int

    @checked
    def contains(self, x: Array, u: Array) -> bool:
        """Return whether (x_N, u_{N-1}) lies in the set."""
        x = column("x", x, self.of_x.shape[1])
        u = column("u", u, self.of_u.shape[1])
        return bool(np.all(self.of_x @ x + self.of_u @ u <= 1 + NEW))


def invariant_set(
    model: LinearModel,
    K: Array,
    u_bounds: Array,
    du_bounds: Array,
    outputs: tuple[Output, ...],
) -> TerminalSet:
    """Return the largest set in which `u = -K x` satisfies all hard bounds at all times.

    Args:
        model: constant, at rest in zero.
        K: (nu, nx) a stabilising gain.
        u_bounds, du_bounds: (nu, 2).
        outputs: rows of states and controls.

    Raises:
        ProblemError: a model that varies or drifts; a bound without zero inside; a set
            that is not found in `MOST_STEPS` samples.
    """
    if model.varies or np.any(model.drift):
        raise ProblemError(
            "a terminal set lies around a rest at zero; expected a constant model without drift: "
            "count x and u from a steady state"
        )
    A, B, _ = model.interval(0)
    nx, nu = B.shape
    E = _bound_rows(K, u_bounds, du_bounds, outputs)
    closed_loop = np.block([[A - B @ K, np.zeros((nx, nu))], [-K, np.zeros((nu, nu))]])
    F, steps = _invariant(closed_loop, E)
    return TerminalSet(F[:, :nx], F[:, nx:], K, steps)


def _bound_rows(K: Array, u_bounds: Array, du_bounds: Array, outputs: tuple[Output, ...]) -> Array:
    """Return rows `E (x, u_last) <= 1` of the regulated system."""
    nu, nx = K.shape
    sides = [(f"u{i}", -K[i], np.zeros(nu), *u_bounds[i]) for i in range(nu)]
    sides += [(f"du{i}", -K[i], -np.eye(nu)[i], *du_bounds[i]) for i in range(nu)]
    for output in outputs:
        if output.soft:
            continue
        C = output.C - output.D @ K
        output_rows = zip(output.rows, C, output.lower, output.upper, strict=True)
        sides += [(name, row, np.zeros(nu), low, high) for name, row, low, high in output_rows]
    rows: list[Array] = []
    for name, of_x, of_u, low, high in sides:
        for sign, end in ((1.0, high), (-1.0, -low)):
            if not np.isfinite(end):
                continue
            if not end > 0:
                raise ProblemError(
                    f"'{name}' is bounded by {sign * end:g}, which leaves no margin around zero; a "
                    "terminal set needs a steady state strictly inside all bounds"
                )
            rows.append(sign * np.concatenate([of_x, of_u]) / end)
    return np.array(rows).reshape(-1, nx + nu)


def _invariant(A: Array, E: Array) -> tuple[Array, int]:
    """Return F of the largest set with `E Aᵗ x <= 1` for all t, without redundant rows."""
    F = E[np.abs(E).max(axis=1, initial=0) > SHORT]
    power = np.eye(len(A))
    for steps in range(MOST_STEPS):
        power = power @ A
        rows_ahead = E @ power
        new_rows = [
            row for row in rows_ahead if np.abs(row).max() > SHORT and _reach(F, row) > 1 + NEW
        ]
        if not new_rows:
            return _without_redundant_rows(F), steps
        F = np.vstack([F, *new_rows])
    raise ProblemError(
        f"no terminal set within {MOST_STEPS} samples: the regulator is too slow for the sample "
        "time; give it more weight, or a longer period"
    )


def _without_redundant_rows(F: Array) -> Array:
    """Return the rows without those that the others imply."""
    required = list(range(len(F)))
    for i in range(len(F)):
        others = [j for j in required if j != i]
        if _reach(F[others], F[i]) <= 1 + NEW:
            required = others
    return F[required]


def _reach(F: Array, row: Array) -> float:
    """Return `max row x, F x <= 1`: infinite where F does not bound it."""
    if not len(F):
        return float(np.inf)
    solution = scipy.optimize.linprog(
        -row, A_ub=F, b_ub=np.ones(len(F)), bounds=(None, None), method="highs"
    )
    return float(-solution.fun) if solution.status == 0 else float(np.inf)
