"""Adaptive steps along a smooth piece of motion."""

from dataclasses import dataclass

import numpy as np

from mbcasadi.errors import SimulationError
from mbcasadi.simulation import tableau
from mbcasadi.simulation.call import Array
from mbcasadi.simulation.flow import Flow
from mbcasadi.simulation.manifold import OffManifoldError
from mbcasadi.system import System

SHORTEST = 16 * np.finfo(float).eps
"""Share of the time that a step must exceed: below it, time does not advance cleanly."""

STALL_STEPS, STALL_SHARE = 2000, 1e-6
"""A run that needs this many trials for this share of its time will not end."""

AFTER_FAILURE = 0.25
"""What is left of a step in which a stage found no state of the mechanism."""


@dataclass(frozen=True)
class Now:
    """The state of a run between two steps: time, configuration, velocity, activations."""

    t: float
    q: Array
    v: Array
    act: Array


@dataclass(frozen=True)
class Accuracy:
    """Tolerances of one step, and its limits.

    Attributes:
        rtol, atol: relative and absolute tolerance; angles of ball and free joints count as one.
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

    def __init__(self, system: System, flow: Flow, accuracy: Accuracy, project: str) -> None:
        self.accepted = self.rejected = 0
        self._flow, self._accuracy = flow, accuracy
        self._nv = system.nv
        self._size_of = _Sizes(system)
        # Projection after the step changes the state at which the last rate was taken.
        self._last_is_first = project != "step"
        self._first: Array | None = None
        self._h = 0.0
        self._milestone = (-np.inf, 0)  # time, and trials until then

    def restart(self) -> None:
        """Forget the last rate: forces may have jumped."""
        self._first = None

    def step(self, now: Now, stop: float) -> tuple[Now, tableau.Step]:
        """Return the next state, at `stop` or before it, and the step that led there.

        Raises:
            SimulationError: the step size collapsed, or there were too many steps.
        """
        flow = self._flow
        flow.base = now.q
        y = flow.local(now.v, now.act)
        if self._first is None:
            self._start(now, y, stop)
        assert self._first is not None
        retried = False
        while True:
            h = self._trial_size(now.t, stop)
            reason = f"the error estimate of a step of {h:.1e} s stays too large"
            try:
                step = tableau.trial(flow.rate, now.t, y, self._first, h)
                error = tableau.error_norm(step, self._scale(now.q, y, step.y_next))
                if error <= 1.0:
                    after = Now(_end(now.t, h, stop), *flow.state(now.t + h, step.y_next))
                    self._done(after, step, error, retried)
                    return after, step
                if not np.isfinite(error):
                    reason = "the equations of motion answer with NaN or infinity"
                shorter = tableau.next_size(h, error, rejected=True)
                self._h = shorter if np.isfinite(error) else AFTER_FAILURE * h
            except OffManifoldError as failure:
                reason = str(failure)
                self._h = AFTER_FAILURE * h
            retried = True
            self._reject(now.t, reason)

    def _start(self, now: Now, y: Array, stop: float) -> None:
        self._flow.spacing = self._h or min(self._accuracy.max_step, stop - now.t)
        self._first = self._flow.rate(now.t, y)
        if not np.all(np.isfinite(self._first)):
            raise SimulationError(f"the acceleration at t = {now.t:g} s is NaN or infinite")
        if self._h == 0.0:
            scale = self._scale(now.q, y, y)
            y_size = np.concatenate([self._size_of(now.q), y[self._nv :]])
            longest = min(self._accuracy.max_step, stop - now.t)
            self._h = tableau.first_size(y_size, self._first, scale, longest)

    def _trial_size(self, t: float, stop: float) -> float:
        h = min(self._h, self._accuracy.max_step)
        left = stop - t
        # no sliver of a step before a stop
        h = left if h >= left * (1 - SHORTEST) else min(h, max(left / 2, 0.9 * h))
        self._flow.spacing = h
        return h

    def _done(self, after: Now, step: tableau.Step, error: float, retried: bool) -> None:
        proposed = tableau.next_size(step.h, error, rejected=retried)
        cut_short = step.h < self._h
        self._h = max(self._h, proposed) if cut_short else proposed
        self.accepted += 1
        last = step.K[-1][self._nv :]
        self._first = np.concatenate([after.v, last]) if self._last_is_first else None

    def _reject(self, t: float, reason: str) -> None:
        self.rejected += 1
        trials = self.accepted + self.rejected
        if t > self._milestone[0] + STALL_SHARE * self._accuracy.span:
            self._milestone = (t, trials)
        stalled = trials - self._milestone[1] > STALL_STEPS
        if stalled or self._h <= SHORTEST * max(1.0, abs(t)):
            raise SimulationError(f"the step size collapsed at t = {t:.9g} s: {reason}")
        if trials > self._accuracy.max_steps:
            raise SimulationError(
                f"t = {t:.9g} s was reached in max_steps = {self._accuracy.max_steps} steps: "
                f"{reason}; give a larger max_steps or looser tolerances"
            )

    def _scale(self, q: Array, y: Array, y_next: Array) -> Array:
        nv = self._nv
        size = np.maximum(np.abs(y), np.abs(y_next))
        size[:nv] = self._size_of(q) + np.abs(y_next[:nv])
        return self._accuracy.atol + self._accuracy.rtol * size


def _end(t: float, h: float, stop: float) -> float:
    return stop if h == stop - t else t + h


class _Sizes:
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
