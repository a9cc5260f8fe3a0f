"""Functions of time as rows of numbers, one for each tick: what another process can be sent."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbcasadi.validation.closed_loop import Disturbance, Push, SwitchSchedule, TimeSignal
from mbcasadi.validation.closed_loop.push import scaled_push

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SampledSignal:
    """A signal at ticks: rows (nt, size) at multiples of a period, s."""

    period: float
    rows: Array

    def __call__(self, t: float) -> Array:
        """Return the row of the tick at time t."""
        return np.asarray(self.rows[round(t / self.period)])


@dataclass(frozen=True)
class SampledSwitches:
    """A schedule of switched constraints at ticks."""

    period: float
    rows: tuple[dict[str, bool], ...]

    def __call__(self, t: float) -> dict[str, bool]:
        """Return the switches of the tick at time t."""
        return self.rows[round(t / self.period)]


@dataclass(frozen=True)
class ScaledSignal:
    """A signal times a factor."""

    signal: SampledSignal
    factor: float

    def __call__(self, t: float) -> Array:
        """Return the value at time t."""
        return self.factor * self.signal(t)


def sample_signal(signal: TimeSignal, period: float, ticks: int) -> Array | SampledSignal | None:
    """Return a signal at ticks, as the loop would evaluate it; a constant one stays a vector."""
    if signal is None:
        return None
    if not callable(signal):
        return np.array(signal, dtype=float).ravel()
    times = [k * period for k in range(ticks)]
    rows = np.array([np.asarray(signal(t), dtype=float).ravel() for t in times])
    return SampledSignal(period, rows) if np.ptp(rows, axis=0).any() else rows[0]


def sample_switches(
    switch: SwitchSchedule | None, period: float, ticks: int
) -> SampledSwitches | None:
    """Return a schedule of switched constraints at ticks."""
    if switch is None:
        return None
    rows: list[Mapping[str, bool]] = [switch(k * period) for k in range(ticks)]
    return SampledSwitches(period, tuple(dict(row) for row in rows))


def scaled(
    disturbance: Array | SampledSignal | tuple[Push, ...] | None, factor: float
) -> Disturbance:
    """Return a disturbance times a factor."""
    if disturbance is None or factor == 1.0:
        return disturbance
    if isinstance(disturbance, tuple):
        return tuple(scaled_push(push, factor) for push in disturbance)
    if isinstance(disturbance, SampledSignal):
        return ScaledSignal(disturbance, factor)
    return factor * disturbance
