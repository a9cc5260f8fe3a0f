"""Events and switches of a simulation, and the record of what they did.

A change of topology is a new activity mask of the rows. Rows that close stop the motion across
them at once: the velocity is projected in the metric of the mass matrix, and kinetic energy is
dissipated as in an inelastic impact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.short_text import summarised
from mbcasadi.simulation.buffered_function import Array

StateAt = Callable[[float], tuple[Array, Array, Array]]

INNER_SAMPLES = 4
"""Times within one step, besides its ends, at which events are evaluated."""

EVENT_TIME_TOL = 4 * np.finfo(float).eps
"""Relative tolerance of the time of an event, the least that SciPy's root finder takes."""


@summarised
@readable_fields
@dataclass(frozen=True)
class Event:
    """A change when a quantity passes through zero.

    Attributes:
        name: label in the trajectory.
        when: (t, q, v) → number; a CasADi Function with these inputs serves too.
        direction: 1 for rising through zero, -1 for falling, 0 for both.
        mask: (nc,) activity of the rows from then on, one or zero; None leaves it. While the rows
            are so already, the event is not looked for: what latched does not latch again.
        hold: rows that close are held at the residual which they have then, instead of zero.
        stop: the simulation ends there.
    """

    name: str
    when: Callable[[float, Array, Array], ArrayLike]
    direction: int = 0
    mask: ArrayLike | None = None
    hold: bool = False
    stop: bool = False

    def __post_init__(self) -> None:
        require_fields(self)


@readable_fields
@dataclass(frozen=True)
class Switch:
    """A change of topology at a given time.

    Attributes:
        name: label in the trajectory.
        time: s.
        mask: (nc,) activity of the rows from then on, one or zero.
        hold: rows that close are held at the residual which they have then, instead of zero.
    """

    name: str
    time: float
    mask: ArrayLike
    hold: bool = False

    def __post_init__(self) -> None:
        require_fields(self)


@summarised
@dataclass(frozen=True)
class EventRecord:
    """What an event or a switch did.

    Attributes:
        name: of the event or switch.
        time: s.
        mask: (nc,) activity of the rows after it.
        v_before, v_after: (nv,) velocities.
        impulse: (nv,) of the closing rows, `M (v_after - v_before)`, N s or N m s.
        gap: largest residual of the rows that closed, before they did.
        energy_before, energy_after: kinetic and potential, J; NaN without a known potential.
        energy_loss: kinetic energy before minus after, J.
    """

    name: str
    time: float
    mask: Array
    v_before: Array
    v_after: Array
    impulse: Array
    gap: float
    energy_before: float
    energy_after: float
    energy_loss: float


class EventDetector:
    """Finds the first event within a step."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = tuple(events)
        self._signs: NDArray[np.float64] = np.zeros(len(self.events))
        self._armed = [True] * len(self.events)

    def restart(
        self, t: float, q: Array, v: Array, mask: Array, handled: Event | None = None
    ) -> None:
        """Note the signs at a new start.

        Args:
            t: s.
            q, v: (nq,), (nv,) state.
            mask: (nc,) active rows; events that would set just these are not looked for.
            handled: the event that happened here; its quantity counts as zero.
        """
        self._armed = [
            e.mask is None or not np.array_equal(np.asarray(e.mask).ravel(), mask)
            for e in self.events
        ]
        self._signs = np.array(
            [0.0 if e is handled else np.sign(_event_value(e, t, q, v)) for e in self.events]
        )

    def first_crossing(
        self, start: float, end: float, state: StateAt
    ) -> tuple[float, Event] | None:
        """Return time and event of the first passage through zero in `(start, end]`, or None.

        Args:
            start, end: s.
            state: t → (q, v, act) within the step.
        """
        if not any(self._armed):
            return None  # states within a step cost further rates
        times = np.linspace(start, end, INNER_SAMPLES + 2)
        states = [state(float(t)) for t in times[1:]]
        crossings: list[tuple[float, Event]] = []
        for i, event in enumerate(self.events):
            if not self._armed[i]:
                continue
            previous, place = self._signs[i], start
            for t, (q, v, _) in zip(times[1:], states, strict=True):
                sign = np.sign(_event_value(event, float(t), q, v))
                if previous * sign < 0 or (sign == 0 and previous != 0):
                    rising = previous < 0
                    if event.direction == 0 or rising == (event.direction > 0):
                        crossings.append((_crossing_time(event, place, float(t), state), event))
                        break
                previous, place = sign or previous, float(t)
            self._signs[i] = previous
        return min(crossings, key=lambda crossing: crossing[0]) if crossings else None


def _event_value(event: Event, t: float, q: Array, v: Array) -> float:
    return float(np.asarray(event.when(t, q, v)).reshape(()))


def _crossing_time(event: Event, start: float, end: float, state: StateAt) -> float:
    from scipy.optimize import brentq

    def value(t: float) -> float:
        return _event_value(event, t, *state(t)[:2])

    if value(start) * value(end) >= 0:  # it touches zero at the end
        return end
    tolerance = EVENT_TIME_TOL * (abs(start) + abs(end))
    return float(brentq(value, start, end, xtol=tolerance, rtol=EVENT_TIME_TOL))
