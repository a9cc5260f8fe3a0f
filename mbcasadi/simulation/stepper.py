"""Adaptive steps along a smooth piece of motion."""

from dataclasses import dataclass

import numpy as np

from mbcasadi.errors import SimulationError
from mbcasadi.simulation import dormand_prince
from mbcasadi.simulation.buffered_function import Array
from mbcasadi.simulation.manifold import OffManifoldError
from mbcasadi.simulation.right_hand_side import RightHandSide
from mbcasadi.system import System

SHORTEST = 16 * np.finfo(float).eps
"""Share of the time that a step must exceed: below it, time does not advance cleanly."""

STALL_STEPS, STALL_SHARE = 2000, 1e-6
"""A run that needs this many trials for this share of its time will not end."""

SHRINK_AFTER_FAILURE = 0.25
"""Share of a step that is tried next when a stage found no state of the mechanism."""


@dataclass(frozen=True)
class MotionState:
    """The state of a run between two steps: time, configuration, velocity, activations."""

    t: float
    q: Array
    v: Array
    act: Array


@dataclass(frozen=True)
class StepControl:
    """Tolerances of one step, and its limits.

    Attributes:
        rtol, atol: relative and absolute tolerance, the latter in the sizes of `System.scales`;
            angles of ball and free joints count as one.
        max_step: s.
        max_steps: accepted and rejected steps of one run.
        span: s, how long the run is.
    """

    rtol: float
    atol: float
    max_step: float
    max_steps: int
    span: float


class Stepper:
    """Takes accepted steps, one at a time.

    Attributes:
        accepted, rejected: how many steps so far.
    """

    def __init__(
        self, right_hand_side: RightHandSide, control: StepControl, *, keep_last_rate: bool
    ) -> None:
        """Start without any step.

        Args:
            right_hand_side: the motion.
            control: tolerances and limits.
            keep_last_rate: whether the last rate of a step is the first of the next; not where
                projection after the step changes the state at which it was taken.
        """
        self.accepted = self.rejected = 0
        self._right_hand_side, self._control = right_hand_side, control
        self._nv = right_hand_side.system.nv
        self._sizes = _CoordinateSizes(right_hand_side.system)
        self._time = 1.0 / right_hand_side.system.scales.rate
        coordinates, na = right_hand_side.system.scales.coordinates, right_hand_side.system.na
        self._absolute = np.concatenate([coordinates, coordinates / self._time, np.ones(na)])
        self._keep_last_rate = keep_last_rate
        self._first_rate: Array | None = None
        self._h = 0.0
        self._milestone = (-np.inf, 0)  # time, and trials until then

    def restart(self) -> None:
        """Discard the last rate: forces may have jumped."""
        self._first_rate = None

    def step(self, start: MotionState, stop: float) -> tuple[MotionState, dormand_prince.Step]:
        """Return the next state, at `stop` or before it, and the step that led there.

        Raises:
            SimulationError: the step size collapsed, or there were too many steps.
        """
        right_hand_side = self._right_hand_side
        right_hand_side.base = start.q
        y = right_hand_side.local_state(start.v, start.act)
        first_rate = self._rate_at_start(start, y, stop)
        retried = False
        while True:
            h = self._trial_size(start.t, stop)
            reason = f"the error estimate of a step of {h:.1e} s stays too large"
            try:
                step = dormand_prince.trial_step(right_hand_side.rate, start.t, y, first_rate, h)
                error = dormand_prince.error_norm(step, self._scale(start.q, y, step.y_next))
                if error <= 1.0:
                    end = stop if h == stop - start.t else start.t + h
                    after = MotionState(end, *right_hand_side.state(start.t + h, step.y_next))
                    self._accept(after, step, error, retried)
                    return after, step
                if not np.isfinite(error):
                    reason = "the equations of motion return NaN or infinity"
                shorter = dormand_prince.next_size(h, error, rejected=True)
                self._h = shorter if np.isfinite(error) else SHRINK_AFTER_FAILURE * h
            except OffManifoldError as failure:
                reason = str(failure)
                self._h = SHRINK_AFTER_FAILURE * h
            retried = True
            self._reject(start.t, reason)

    def _rate_at_start(self, start: MotionState, y: Array, stop: float) -> Array:
        """Return the first rate of a step; the first one of all also sets the step size."""
        if self._first_rate is not None:
            return self._first_rate
        longest = min(self._control.max_step, stop - start.t)
        self._right_hand_side.spacing = self._h or longest
        rate = self._right_hand_side.rate(start.t, y)
        if not np.all(np.isfinite(rate)):
            raise SimulationError(f"the acceleration at t = {start.t:g} s is NaN or infinite")
        if self._h == 0.0:
            scale = self._scale(start.q, y, y)
            y_size = np.concatenate([self._sizes(start.q), y[self._nv :]])
            self._h = dormand_prince.first_size(y_size, rate, scale, longest, self._time)
        self._first_rate = rate
        return rate

    def _trial_size(self, t: float, stop: float) -> float:
        h = min(self._h, self._control.max_step)
        remaining = stop - t
        # no sliver of a step before a stop
        ends = h >= remaining * (1 - SHORTEST)
        h = remaining if ends else min(h, max(remaining / 2, 0.9 * h))
        self._right_hand_side.spacing = h
        return h

    def _accept(
        self, after: MotionState, step: dormand_prince.Step, error: float, retried: bool
    ) -> None:
        proposed = dormand_prince.next_size(step.h, error, rejected=retried)
        shortened = step.h < self._h
        self._h = max(self._h, proposed) if shortened else proposed
        self.accepted += 1
        last = step.K[-1][self._nv :]
        self._first_rate = np.concatenate([after.v, last]) if self._keep_last_rate else None

    def _reject(self, t: float, reason: str) -> None:
        self.rejected += 1
        trials = self.accepted + self.rejected
        if t > self._milestone[0] + STALL_SHARE * self._control.span:
            self._milestone = (t, trials)
        stalled = trials - self._milestone[1] > STALL_STEPS
        if stalled or self._h <= SHORTEST * max(self._time, abs(t)):
            raise SimulationError(f"the step size collapsed at t = {t:.9g} s: {reason}")
        if trials > self._control.max_steps:
            raise SimulationError(
                f"t = {t:.9g} s was reached in max_steps = {self._control.max_steps} steps: "
                f"{reason}; give a larger max_steps or looser tolerances"
            )

    def _scale(self, q: Array, y: Array, y_next: Array) -> Array:
        nv = self._nv
        size = np.maximum(np.abs(y), np.abs(y_next))
        size[:nv] = self._sizes(q) + np.abs(y_next[:nv])
        return self._control.atol * self._absolute + self._control.rtol * size


class _CoordinateSizes:
    """Size of each local coordinate: `|q|` along slides and hinges, one radian for rotations."""

    def __init__(self, system: System) -> None:
        rows, columns = system.velocity_map.sparsity_out(0).get_triplet()
        of_column: list[list[int]] = [[] for _ in range(system.nv)]
        for row, j in zip(rows, columns, strict=True):
            of_column[j].append(row)
        self._plain = np.array([len(rows) == 1 for rows in of_column], dtype=bool)
        self._rows = np.array([rows[0] for rows in of_column], dtype=int)

    def __call__(self, q: Array) -> Array:
        return np.where(self._plain, np.abs(q[self._rows]), 1.0)
