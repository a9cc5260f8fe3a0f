"""Violated rows of a solution, with amount and time, which a status of zero does not show.

Soft rows are violated with slack where necessary. Where hard rows contradict each other there is
no plan; then the nearest one is computed, by a linear program over moves and slacks,

    min Σ e   subject to   lower - e <= C y + D θ + c_0 <= upper + e,   e >= 0,

in which the bounds of the controls and the signs of slacks are unchanged.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description import Controller
from mbcasadi.mpc.linear.condensing import CondensedForm
from mbcasadi.mpc.linear.problem import LinearProblem

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-6
"""Excess, relative to one and the bound, that counts as zero."""


@dataclass(frozen=True)
class Violation:
    """One bound that a plan violates.

    Attributes:
        row: name of the row.
        above: the upper bound is exceeded, else the lower one.
        bound: the bound, of a mechanism's row as a deviation from its equilibrium.
        samples: those at which it happens; zero is the moment at which u acts.
        excess: amount of the violation, one number for each sample.
        soft: whether the row is soft; no plan satisfies a violated hard row.
    """

    row: str
    above: bool
    bound: float
    samples: tuple[int, ...]
    excess: tuple[float, ...]
    soft: bool

    @property
    def in_words(self) -> str:
        """`crank_speed is above 3 by up to 0.12, at samples 4 to 9`."""
        side = "above" if self.above else "below"
        many = "s" if len(self.samples) > 1 else ""
        excess_text = f"'{self.row}' is {side} {self.bound:.6g} by up to {max(self.excess):.3g}"
        sample_text = f"at sample{many} {_ranges(self.samples)}"
        return f"{excess_text}, {sample_text}" + (
            "" if self.soft else ": no plan keeps all hard rows"
        )


def soft_violations(
    controller: Controller, problem: LinearProblem, inputs: Sequence[ArrayLike]
) -> tuple[Violation, ...] | None:
    """Return the bounds that the plan of a solution exceeds, or None where there is no plan.

    Args:
        controller: with its prediction and limits.
        problem: the problem that it solves.
        inputs: of the controller, in its order.
    """
    plan, limits = controller.prediction, controller.limits
    assert plan is not None
    x, u = (np.array(part) for part in plan(*inputs))
    if np.any(np.isnan(x)):
        return None
    if limits is None:
        return ()
    last = u[:, [0, *range(u.shape[1])]]  # no rate at the start, where the past is not the plan's
    now = np.column_stack([u, u[:, -1]])
    names = limits.value.name_in()[:-2]
    ends = np.cumsum([limits.value.numel_in(name) for name in names])[:-1]
    value = limits.value.map(x.shape[1])(*np.split(x, ends), now, last)
    has_control = {row: bool(np.any(output.D)) for output in problem.outputs for row in output.rows}
    violations = []
    for i, row in enumerate(limits.signal.components):
        steps = range(x.shape[1] - 1) if has_control.get(row, True) else range(1, x.shape[1])
        values = np.array(value)[i, steps]
        pairs = ((limits.upper[i], 1.0), (limits.lower[i], -1.0))
        violations += [
            _violation(row, sign, bound, steps, values, limits.soft[i]) for bound, sign in pairs
        ]
    return tuple(violation for violation in violations if violation is not None)


def hard_violations(condensed: CondensedForm, theta: Array) -> tuple[Violation, ...]:
    """Return the bounds that the plan with the least violation of hard rows exceeds.

    Args:
        condensed: the QP.
        theta: (nθ,) its parameters.
    """
    (m, n), shift = condensed.C.shape, condensed.D @ theta + condensed.c_0
    is_firm = np.array([row.firm for row in condensed.rows], dtype=bool)
    slacks = np.eye(m)[:, ~is_firm]
    up, down = np.isfinite(condensed.upper), np.isfinite(condensed.lower)
    A = np.vstack([np.hstack([condensed.C, -slacks])[up], np.hstack([-condensed.C, -slacks])[down]])
    b = np.concatenate([(condensed.upper - shift)[up], (shift - condensed.lower)[down]])
    price = np.concatenate([np.zeros(n), np.ones(slacks.shape[1])])
    free = [(None, None)] * n + [(0, None)] * slacks.shape[1]
    solution = scipy.optimize.linprog(price, A_ub=A, b_ub=b, bounds=free, method="highs")
    if solution.status:
        return ()
    value = condensed.C @ solution.x[:n] + shift
    excesses: dict[tuple[str, float, float], list[tuple[int, float]]] = {}
    ends = condensed.lower, condensed.upper
    for (row, k, _), y, low, high in zip(condensed.rows, value, *ends, strict=True):
        for sign, end in ((1.0, high), (-1.0, low)):
            over = sign * (y - end) if np.isfinite(end) else 0.0
            if over > NEGLIGIBLE * (1 + abs(end)):
                excesses.setdefault((row, sign, end), []).append((k, over))
    return tuple(
        Violation(row, sign > 0, float(end), *_columns(pairs), soft=False)
        for (row, sign, end), pairs in excesses.items()
    )


def _violation(
    row: str, sign: float, end: float, steps: Iterable[int], values: Array, soft: bool
) -> Violation | None:
    if not np.isfinite(end):
        return None
    over = sign * (values - end)
    at = [(k, x) for k, x in zip(steps, over, strict=True) if x > NEGLIGIBLE * (1 + abs(end))]
    return Violation(row, sign > 0, float(end), *_columns(at), soft=soft) if at else None


def _columns(at: Sequence[tuple[int, float]]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    return tuple(k for k, _ in at), tuple(float(x) for _, x in at)


def _ranges(samples: Sequence[int]) -> str:
    """Return `1, 3 to 5`."""
    ranges = []
    for _, group in itertools.groupby(enumerate(samples), lambda pair: pair[1] - pair[0]):
        run = [k for _, k in group]
        ranges.append(f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}")
    return ", ".join(ranges)
