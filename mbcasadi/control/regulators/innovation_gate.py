"""The gate of an estimator: a measurement that its noise cannot explain is rejected at first.

    e = y - C x                       innovation, of covariance S = C P Cᵀ + V
    d(e) = sqrt(eᵀ S⁻¹ e)             its size, in standard deviations

    inside        d(e) <= k           k² is the quantile of χ² with ny numbers
    consistent    d(e - e_last) <= k + ½ d(e_last)

While samples are rejected, a step of the plant leaves innovations that agree from sample to sample;
outliers agree with nothing. A constant error of all sensors agrees with itself, so it looks
like a step: only `Gate.largest_step` tells it from one.
"""

from dataclasses import dataclass
from typing import Generic

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.symbols import Sym
from mbcasadi.qp.input_guard import LARGEST_INPUT, is_bounded

DOUBTED_AFTER = 2
"""Samples outside the gate, one after another, from which the status is not 0."""

GROWTH = 0.5
"""Share by which the innovation of a true step may change from one sample to the next."""


@dataclass(frozen=True)
class Gate:
    """When a measurement is rejected, and when it is accepted after all.

    One sample outside is rejected with the flag `GATED` and status 0. From the second one in a row
    to the first one inside, the status says that the estimate is doubted. `accept_after`
    consistent ones in a row are a step of the plant: the last of them is used, and what comes until
    a sample is inside, at most `fail_after` samples. After `fail_after` in a row that are no step
    the status is 3, with the safe output, until a sample is inside or a step is recognised. At its
    start, and after a broken state, the estimator accepts samples as after a step.

    Attributes:
        false_alarm: share of good samples that are outside, by the noise model.
        accept_after: samples; 1 for no rejection of consistent samples.
        fail_after: samples, at least `accept_after`.
        largest_step: standard deviations beyond which no step is accepted.
    """

    false_alarm: float = 1e-6
    accept_after: int = 3
    fail_after: int = 6
    largest_step: float = np.inf

    def __post_init__(self) -> None:
        require_fields(self)
        if not 0 < self.false_alarm < 1:
            raise ProblemError(f"false_alarm = {self.false_alarm}; expected a share in (0, 1)")
        counts = (self.accept_after, self.fail_after)
        if not all(isinstance(n, int | np.integer) for n in counts) or not (
            1 <= self.accept_after <= self.fail_after
        ):
            raise ProblemError(
                f"accept_after = {self.accept_after}, fail_after = {self.fail_after}; expected "
                "whole numbers with 1 <= accept_after <= fail_after"
            )
        if not self.largest_step > 0:
            raise ProblemError(f"largest_step = {self.largest_step}; expected a positive number")


DEFAULT_GATE = Gate()
"""The gate of an estimator unless another one, or None, is given."""


@dataclass(frozen=True)
class Decision(Generic[Sym]):
    """What becomes of one sample; each is one or zero.

    Attributes:
        used: the sample corrects the estimate.
        doubted: measurement and estimate have contradicted each other for several samples.
        failed: for so long that the sensor, or the model, counts as wrong.
        memory: (2 + ny,) of the gate for the next sample.
    """

    used: Sym
    doubted: Sym
    failed: Sym
    memory: Sym


@dataclass(frozen=True)
class InnovationGate:
    """A gate with the numbers of its filter.

    Attributes:
        gate: its options.
        whiten: (ny, ny) W with `WᵀW = S⁻¹`, so `d(e) = |W e|`.
    """

    gate: Gate
    whiten: Array

    @property
    def limit(self) -> float:
        """k, standard deviations."""
        from scipy.special import chdtri  # heavy, and needed when a gate is made only

        return float(np.sqrt(chdtri(len(self.whiten), self.gate.false_alarm)))

    @property
    def start(self) -> Array:
        """(2 + ny,) memory of an estimator that knows nothing yet."""
        return np.concatenate([[-self.gate.fail_after, 0.0], np.zeros(len(self.whiten))])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of the memory."""
        return ("outside", "consistent", *(f"last{i}" for i in range(len(self.whiten))))

    def decide(self, e: Sym, memory: Sym) -> Decision[Sym]:
        """Return what becomes of a sample.

        The memory is the number of samples outside in a row, negative while all are accepted; the
        number of consistent ones among them, from the last; and e_last. Any content is bounded.

        Args:
            e: (ny,) finite innovation.
            memory: (2 + ny,).
        """
        gate, W, k = self.gate, ca.DM(self.whiten), self.limit
        sound = is_bounded(memory)
        memory = ca.if_else(sound, memory, ca.DM(self.start))
        count = ca.fmin(ca.fmax(ca.floor(memory[0]), -gate.fail_after), gate.fail_after)
        agreed = ca.fmin(ca.fmax(ca.floor(memory[1]), 0), gate.accept_after)
        last, size = memory[2:, 0], _size(W @ e)
        outside, accepting = ca.logic_not(size <= k), count < 0
        consistent = _size(W @ (e - last)) <= k + GROWTH * _size(W @ last)
        agreed = ca.if_else(accepting, agreed, ca.if_else(consistent, agreed, 0) + 1)
        step = ca.logic_and(agreed >= gate.accept_after, size <= gate.largest_step)
        step = ca.logic_and(step, ca.logic_not(accepting))
        used = ca.logic_or(ca.logic_not(outside), ca.logic_or(accepting, step))
        count = ca.if_else(step, -gate.fail_after, ca.fmin(count + 1, gate.fail_after))
        doubted = ca.logic_or(count >= DOUBTED_AFTER, agreed >= gate.accept_after)
        agreed = ca.fmin(agreed, gate.accept_after) * (count != 0)
        failed = ca.logic_and(ca.logic_not(used), count >= gate.fail_after)
        doubted, failed = (ca.logic_and(outside, part) for part in (doubted, failed))
        return Decision(used, doubted, failed, outside * ca.vertcat(count, agreed, e))


def innovation_gate(gate: Gate | None, S: Array) -> InnovationGate | None:
    """Return the gate of a filter, or None where there are no options.

    Args:
        gate: options, or None for a filter that accepts every sample.
        S: (ny, ny) covariance of the innovation, positive definite.
    """
    return None if gate is None else InnovationGate(gate, np.linalg.inv(np.linalg.cholesky(S)))


def wrap_angles(e: Sym, rows: tuple[int, ...]) -> Sym:
    """Return e, with 2 π added or subtracted in these rows until they lie in [-π, π].

    NaN and numbers beyond `LARGEST_INPUT` stay as they are, for the guard.
    """
    entries = ca.vertsplit(e)
    for row in rows:
        turns = ca.floor(entries[row] / (2 * np.pi) + 0.5)
        small = ca.fabs(entries[row]) <= LARGEST_INPUT
        entries[row] = entries[row] - 2 * np.pi * ca.if_else(small, turns, 0)
    return ca.vertcat(*entries)


def require_rows(rows: object, size: int) -> tuple[int, ...]:
    """Return the rows of a measurement that wrap.

    Raises:
        ProblemError: no such row, or a row that is named twice.
    """
    chosen = tuple(rows) if isinstance(rows, list | tuple) else (rows,)
    known = all(isinstance(row, int | np.integer) and 0 <= row < size for row in chosen)
    if not known or len(set(chosen)) < len(chosen):
        raise ProblemError(
            f"wrap = {rows}; expected different rows of the measurement, from 0 to {size - 1}"
        )
    return tuple(int(row) for row in chosen)


def _size(column: Sym) -> Sym:
    return ca.sqrt(ca.sumsqr(column))
