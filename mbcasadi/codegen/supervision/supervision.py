"""What is supervised, as the user says it: plausible inputs, limits of rate, a watchdog, a fade."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.errors import ProblemError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_kind
from mbcasadi.short_text import summarised

Numbers: TypeAlias = ArrayLike | Mapping[str, float]
"""One number for all components, one for each, or some by the component's name."""


class TickEvent(IntFlag):
    """What happened in a supervised tick.

    `NOT_FINITE`, `OUT_OF_RANGE`, `JUMP`: an input is NaN or infinite, outside its limits, or
    changed faster than it can. `STALE`: the same sample for too many ticks. `FAILED_TICK`: one of
    these, or the law's status is one of the safe output. `TRIPPED`: so many of these in a row that
    the safe law acts from the next tick on. `SAFE`: it acts. `RECOVERED`: the controller itself
    acts from the next tick on. `FADING`: the control is on its way from one source to another.
    `RATE_LIMITED`: the control changed by as much as it may.
    """

    NOT_FINITE = 1
    OUT_OF_RANGE = 2
    JUMP = 4
    STALE = 8
    FAILED_TICK = 16
    TRIPPED = 32
    SAFE = 64
    RECOVERED = 128
    FADING = 256
    RATE_LIMITED = 512

    def __str__(self) -> str:
        return ", ".join(str(event.name) for event in TickEvent if event in self) or "none"


EVENT_TEXTS = {
    TickEvent.NOT_FINITE: "an input is NaN or infinite",
    TickEvent.OUT_OF_RANGE: "an input is outside its limits, or a quaternion is none",
    TickEvent.JUMP: "an input changed by more than it can",
    TickEvent.STALE: "the same sample for too many ticks",
    TickEvent.FAILED_TICK: "the watchdog counts this tick",
    TickEvent.TRIPPED: "from the next tick on the safe law acts",
    TickEvent.SAFE: "the safe law acts; the status is that of a law without its reference",
    TickEvent.RECOVERED: "from the next tick on the controller acts",
    TickEvent.FADING: "the control is on its way from one source to another",
    TickEvent.RATE_LIMITED: "the control changes as fast as it may",
}

MOST_TICKS = 2**31
"""Of every count: the C has 32 bits for it."""

IMPLAUSIBLE = TickEvent.NOT_FINITE | TickEvent.OUT_OF_RANGE | TickEvent.JUMP | TickEvent.STALE
"""Events of inputs that no law should be computed from."""


@readable_fields
@summarised
@dataclass(frozen=True)
class InputLimits:
    """Plausible values of one input.

    Attributes:
        lower, upper: in the input's unit; a number for all components, one for each, or some by
            name, the others without limit.
        jump: largest change in one control period. After k periods without an accepted value k
            times as much is accepted, so that a sensor that comes back is.
            A quaternion may change its sign; one that is far from unit length is out of range.
    """

    lower: Numbers = -np.inf
    upper: Numbers = np.inf
    jump: Numbers = np.inf


@readable_fields
@summarised
@dataclass(frozen=True)
class Supervision:
    """What an export does around its controller; see the guide on supervision.

    Attributes:
        inputs: limits by name of the input; any but z. NaN is looked for in all of them.
        stale_after: ticks that one measured sample may last beyond its first one, so that 0 wants
            a new one in each tick; None: the number of samples is not looked at. Values that
            freeze while the number goes on are not seen.
        rate: largest change of u in one second, in its unit; a number, one for each component, or
            some by name.
        trip_after: failed ticks in a row after which the safe law acts; by default as many as 10 ms
            hold, in which a controller repeats its last command, and at least 3.
        recover_after: ticks of plausible inputs in a row after which the controller acts again;
            None: not before `<name>_supervised_reset`.
        fade_time: s from one source of u to another one.
        safe_law: (any inputs of the controller by name) → (u); by default the safe output of the
            controller itself. It is used on plausible inputs only.

    Raises:
        ProblemError: a number of ticks or a time is out of range, or what should be a law is none.
    """

    inputs: Mapping[str, InputLimits] = field(default_factory=dict)
    stale_after: int | None = None
    rate: Numbers = np.inf
    trip_after: int | None = None
    recover_after: int | None = None
    fade_time: float = 0.1
    safe_law: ca.Function | None = None

    def __post_init__(self) -> None:
        require_kind("inputs", self.inputs, Mapping, "{'q': InputLimits(...)}")
        for name, limits in self.inputs.items():
            require_kind(f"inputs[{name!r}]", limits, InputLimits)
        for name, least in (("stale_after", 0), ("trip_after", 1), ("recover_after", 1)):
            _require_ticks(name, getattr(self, name), least)
        is_time = isinstance(self.fade_time, (int, float)) and 0.0 <= self.fade_time < np.inf
        if not is_time:
            raise ProblemError(f"fade_time is {self.fade_time!r} s, expected a time from 0 on")
        if self.safe_law is not None:
            require_kind("safe_law", self.safe_law, ca.Function)


def _require_ticks(name: str, ticks: object, least: int) -> None:
    if ticks is None:
        return
    is_count = isinstance(ticks, (int, np.integer)) and not isinstance(ticks, bool)
    if not is_count or not least <= int(ticks) < MOST_TICKS:  # type: ignore[call-overload]
        raise ProblemError(
            f"{name} is {ticks!r}, expected a whole number of ticks from {least} to "
            f"{MOST_TICKS - 1}, or None"
        )
