"""How wrong gains, phase and delay of a loop may be before it is unstable.

The loop is a linear plant under exact hold and a sampled controller. Its controls are
multiplied by a factor, turned by a phase, or come later by any time: the closed loop is formed for
each and its eigenvalues decide, so no frequency is missed. Once for each control with the others
as they are, once for all together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.short_text import summarised

Array = NDArray[np.float64]

STABLE = 1 - 1e-9
"""Eigenvalues of a stable loop are below."""

LARGEST_FACTOR, LEAST_FACTOR = 1e3, 1e-3
"""Factors that count as infinite, and as zero."""

STEPS_PER_DECADE = 24
STEPS_OF_PHASE = 90
STEPS_OF_DELAY = 60
LONGEST_DELAY = 60.0
"""Delays are sought up to this many periods; a loop that tolerates more is reported with this."""

FINE = 40
"""Bisections of a border."""


@dataclass(frozen=True)
class LoopMargin:
    """What a loop tolerates at one control, or at all together.

    Attributes:
        name: of the control; "all controls".
        weakest, strongest: factors between which the loop is stable; 0 and inf for no border.
        phase: rad, that the control may be turned by either way; π for any.
        delay: s, that the control may come later; the search ends at `LONGEST_DELAY` periods.
        searched: s, where the search ended.
    """

    name: str
    weakest: float
    strongest: float
    phase: float
    delay: float
    searched: float

    def __str__(self) -> str:
        """Return the margin in words."""
        low = f"{self.weakest:.2g}" if self.weakest > 0 else "0"
        high = f"{self.strongest:.2g}" if np.isfinite(self.strongest) else "any number of"
        beyond = "more than " if self.delay >= self.searched else ""
        return (
            f"{self.name}: stable with {low} to {high} times the gain, "
            f"{np.rad2deg(self.phase):.0f}° of phase, or {beyond}{1e3 * self.delay:.3g} ms delay"
        )


@summarised
@dataclass(frozen=True)
class Margins:
    """Margins of a sampled loop.

    Attributes:
        each: of each control, the others as they are.
        together: of all controls at once.
        period: s.
        delay: ticks from a measurement to the moment at which its control acts, as designed for.
    """

    each: tuple[LoopMargin, ...]
    together: LoopMargin
    period: float
    delay: int

    def __str__(self) -> str:
        """Return the margins in words, the least first."""
        order = sorted(self.each, key=lambda one: one.delay)
        head = f"period {1e3 * self.period:g} ms, {self.delay} ticks from measurement to control"
        together = [self.together] if len(order) > 1 else []
        return "\n  ".join([head, *map(str, [*order, *together])])


@dataclass(frozen=True)
class Loop:
    """`dx/dt = A x + B u`, and `u = -(C_c x_c + D_c x)`, `x_c ← A_c x_c + B_c x` at each period.

    Attributes:
        A, B: of the plant, continuous.
        controller: A_c, B_c, C_c, D_c.
        period: s.
        delay: ticks that a control waits.
        names: of the controls.
    """

    A: Array
    B: Array
    controller: tuple[Array, Array, Array, Array]
    period: float
    delay: int
    names: tuple[str, ...]

    def radius(self, factors: NDArray[np.complex128], late: Array) -> float:
        """Return the largest absolute eigenvalue of the closed loop.

        Args:
            factors: (nu,) of each control.
            late: (nu,) s, by which each comes later than after `delay` ticks.
        """
        h, nx = self.period, self.A.shape[0]
        A_c, B_c, C_c, D_c = self.controller
        waits = self.delay + np.floor(late / h).astype(int)
        rest = late - (waits - self.delay) * h
        places = np.concatenate([[0], np.cumsum(waits + 1)]) + nx
        n, n_c = int(places[-1]), A_c.shape[0]
        whole = np.zeros((n + n_c, n + n_c), dtype=complex)
        whole[:nx, :nx] = self._periods[0][0]
        for i, (wait, first) in enumerate(zip(waits, places[:-1], strict=True)):
            old, new = self._two_holds(i, rest[i])
            line = np.zeros(n + n_c, dtype=complex)  # the control of this tick
            line[:nx], line[n:] = -factors[i] * D_c[i], -factors[i] * C_c[i]
            held = [line, *np.eye(n + n_c, dtype=complex)[first : first + wait + 1]]
            whole[:nx] += np.outer(new, held[wait]) + np.outer(old, held[wait + 1])
            for k in range(wait + 1):
                whole[first + k] = held[k]
        whole[n:, :nx], whole[n:, n:] = B_c, A_c
        return float(np.abs(np.linalg.eigvals(whole)).max(initial=0.0))

    def _two_holds(self, i: int, rest: float) -> tuple[Array, Array]:
        """Return the effect of the control before and behind its change, `rest` s into a period."""
        if rest == 0:
            new = self._periods[i][1]
            return 0 * new, new
        flow, new = self._hold(i, self.period - rest)
        return flow @ self._hold(i, rest)[1], new

    @cached_property
    def _periods(self) -> list[tuple[Array, Array]]:
        """`_hold` of each control over one period."""
        return [self._hold(i, self.period) for i in range(len(self.names))]

    def _hold(self, i: int, time: float) -> tuple[Array, Array]:
        """Return the flow of the plant over a time, s, and the effect of a held control."""
        nx = self.A.shape[0]
        block = np.zeros((nx + 1, nx + 1))
        block[:nx] = np.column_stack([self.A, self.B[:, i]])
        whole = scipy.linalg.expm(block * time)
        return whole[:nx, :nx], whole[:nx, nx]


def is_stable(loop: Loop) -> bool:
    """Return whether the loop is stable as it is."""
    nu = len(loop.names)
    return loop.radius(np.ones(nu, dtype=complex), np.zeros(nu)) < STABLE


def loop_margins(loop: Loop) -> Margins | None:
    """Return the margins; None where the loop is unstable as it is."""
    nu = len(loop.names)
    if not is_stable(loop):
        return None
    each = tuple(_margin(loop, name, np.eye(nu)[i]) for i, name in enumerate(loop.names))
    together = each[0] if nu == 1 else _margin(loop, "all controls", np.ones(nu))
    return Margins(each, together, loop.period, loop.delay)


def _margin(loop: Loop, name: str, which: Array) -> LoopMargin:
    """Return the margin at the controls that are one in `which`."""
    none = np.zeros(len(which))

    def scaled(exponent: float) -> float:
        return loop.radius((1 + which * (10.0**exponent - 1)).astype(complex), none)

    def turned(angle: float) -> float:
        return loop.radius(np.where(which > 0, np.exp(1j * angle), 1.0), none)

    def delayed(periods: float) -> float:
        return loop.radius(np.ones(len(which), dtype=complex), which * periods * loop.period)

    ends = np.log10(LARGEST_FACTOR), -np.log10(LEAST_FACTOR)
    up = _border(scaled, ends[0], int(ends[0] * STEPS_PER_DECADE))
    down = _border(lambda e: scaled(-e), ends[1], int(ends[1] * STEPS_PER_DECADE))
    phase = _border(turned, np.pi, STEPS_OF_PHASE)
    late = _border(lambda s: delayed(LONGEST_DELAY * s**2), 1.0, STEPS_OF_DELAY)
    return LoopMargin(
        name,
        weakest=0.0 if down is None else 10.0**-down,
        strongest=np.inf if up is None else 10.0**up,
        phase=np.pi if phase is None else phase,
        delay=LONGEST_DELAY * loop.period * (1.0 if late is None else late**2),
        searched=LONGEST_DELAY * loop.period,
    )


def _border(radius: Callable[[float], float], end: float, steps: int) -> float | None:
    """Return the first argument from zero on at which a loop is unstable; None for none."""
    last = 0.0
    for x in np.linspace(0, end, steps + 1)[1:]:
        if radius(float(x)) >= STABLE:
            break
        last = float(x)
    else:
        return None
    beyond = float(x)
    for _ in range(FINE):
        middle = (last + beyond) / 2
        last, beyond = (last, middle) if radius(middle) >= STABLE else (middle, beyond)
    return last
