"""A gait as data: which feet are on the ground at each time, and the path of a swinging foot.

Foot i has the phase `(t - start) / period + offset_i` mod 1; it is on the ground while the phase is
below `duty`, and swings for the rest of the period. A swing that begins before the walk does, or
after its end, does not take place.
"""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.symbols import Sym
from mbcasadi.shapes import require_positive, require_scale, require_whole


@dataclass(frozen=True)
class Gait:
    """Periodic contact of the feet.

    Attributes:
        period: of one stride, s.
        duty: share of it that a foot is on the ground, at most 1.
        offsets: for each foot, the share of a period by which it is ahead.
        start: all feet stand before this time, s.
    """

    period: float
    duty: float
    offsets: tuple[float, ...]
    start: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(period=self.period, duty=self.duty)
        if self.duty > 1:
            raise ProblemError(f"duty = {self.duty}; expected a share of the period, at most 1")
        if not self.offsets or not np.all(np.isfinite((*self.offsets, self.start))):
            raise ProblemError(
                f"offsets = {self.offsets}, start = {self.start}; expected finite numbers, an "
                "offset for each foot"
            )

    @property
    def stance(self) -> float:
        """Time for which a foot stands, s."""
        return self.duty * self.period

    @property
    def flight(self) -> float:
        """Time for which a foot swings, s."""
        return self.period - self.stance

    @checked
    def on_ground(self, t: Sym | float) -> Sym:
        """Return 1 for each foot on the ground at time t, else 0; numbers or symbols."""
        on: Sym = Walk(self, self.start, None).on_ground(t)
        return on

    @checked
    def swing_share(self, t: Sym | float) -> Sym | ca.DM:
        """Return the share of its swing that each foot has completed; 0 on the ground."""
        share: Sym | ca.DM = Walk(self, self.start, None).swing_share(t)
        return share

    @checked
    def schedule(self, t: Sym | float, horizon: int, period: float) -> Sym:
        """Return which feet are on the ground in the middle of each interval, one after another.

        Args:
            t: beginning of the first interval, s.
            horizon: number of intervals.
            period: length of one, s.
        """
        require_whole(1, horizon=horizon)
        require_positive(period=period)
        return ca.vertcat(*(self.on_ground(t + (k + 0.5) * period) for k in range(horizon)))


class Walk(NamedTuple):
    """A gait from one time to another; numbers or symbols, s.

    Attributes:
        gait: of the feet.
        begin: before it all feet stand.
        end: swings that begin later do not take place; None for no end.
    """

    gait: Gait
    begin: Any
    end: Any

    def on_ground(self, t: Any) -> Any:
        """Return 1 for each foot on the ground at time t, else 0."""
        feet = self._feet(t)
        return ca.vertcat(*(ca.logic_or(rests, p < self.gait.duty) for p, rests in feet))

    def swing_share(self, t: Any) -> Any:
        """Return the share of its swing that each foot has completed; 0 on the ground."""
        duty = self.gait.duty
        if duty >= 1:
            return ca.DM.zeros(len(self.gait.offsets))
        shares = ((ca.fmax((p - duty) / (1 - duty), 0), rests) for p, rests in self._feet(t))
        return ca.vertcat(*(ca.if_else(rests, 0, share) for share, rests in shares))

    def _feet(self, t: Any) -> list[tuple[Any, Any]]:
        """Return for each foot its phase, and whether the swing of this stride has no place."""
        require_scale("t", t, 1)
        gait, feet = self.gait, []
        for offset in gait.offsets:
            stride = (t - self.begin) / gait.period + offset
            whole = ca.floor(stride)
            lifts = whole + gait.duty - offset  # in periods behind the beginning
            rests = lifts < -ROUNDING
            if self.end is not None:
                late = lifts >= (self.end - self.begin) / gait.period - ROUNDING
                rests = ca.logic_or(rests, late)
            feet.append((stride - whole, rests))
        return feet


ROUNDING = 1e-9
"""Share of a period by which a swing may begin before the walk."""


@checked
def trot(period: float, duty: float = 0.5, start: float = 0.0) -> Gait:
    """Return the gait of front left, front right, rear left and rear right foot in two pairs."""
    return Gait(period, duty, (0.0, 0.5, 0.5, 0.0), start)


@checked
def walk(period: float, duty: float = 0.8, start: float = 0.0) -> Gait:
    """Return the gait of one foot at a time: rear left, front left, rear right, front right.

    From a duty of 0.75 on, three feet or all stand.
    """
    return Gait(period, duty, (0.75, 0.25, 0.0, 0.5), start)


@checked
def pace(period: float, duty: float = 0.5, start: float = 0.0) -> Gait:
    """Return the gait of both left feet, then both right ones."""
    return Gait(period, duty, (0.0, 0.5, 0.0, 0.5), start)


@checked
def bound(period: float, duty: float = 0.5, start: float = 0.0) -> Gait:
    """Return the gait of both front feet, then both rear ones."""
    return Gait(period, duty, (0.0, 0.0, 0.5, 0.5), start)


@checked
def pronk(period: float, duty: float = 0.5, start: float = 0.0) -> Gait:
    """Return the gait of all four feet at once."""
    return Gait(period, duty, (0.0, 0.0, 0.0, 0.0), start)


class Path(NamedTuple, Generic[Sym]):
    """Position, velocity and acceleration of a foot: each (3,)."""

    position: Sym
    velocity: Sym
    acceleration: Sym


def swing_path(share: Sym, takeoff: Sym, target: Sym, height: float, duration: float) -> Path[Sym]:
    """Return `p_0 + (p_1 - p_0) (10 s³ - 15 s⁴ + 6 s⁵) + 64 h s³ (1 - s)³ e_z` and its rates.

    Speed and acceleration vanish at both ends, if neither end moves.

    Args:
        share: s, from 0 to 1.
        takeoff, target: (3,) p_0 and p_1, m.
        height: h, m, of the middle above the straight line.
        duration: s, of the whole swing.
    """
    s, up, way = share, ca.DM([0, 0, 64 * height]), target - takeoff
    along = s**3 * (10 - 15 * s + 6 * s**2)
    bump = s**3 * (1 - s) ** 3
    along_1, bump_1 = 30 * s**2 * (1 - s) ** 2, 3 * s**2 * (1 - s) ** 2 * (1 - 2 * s)
    along_2 = 60 * s * (1 - s) * (1 - 2 * s)
    bump_2 = 6 * s * (1 - s) * (1 - 5 * s + 5 * s**2)
    return Path(
        takeoff + way * along + up * bump,
        (way * along_1 + up * bump_1) / duration,
        (way * along_2 + up * bump_2) / duration**2,
    )
