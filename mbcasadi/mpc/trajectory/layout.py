"""State and options of a problem with unknown durations, `X = (q, v, T, [u_before], [start])`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import bounds, require_numbers
from mbcasadi.system import System


@dataclass(frozen=True)
class TrajectoryLayout:
    """The layout of X.

    Attributes:
        nq, nv, nu, phases: sizes.
        has_rates: whether the control before is part of X.
        periodic: whether the start is part of X.
    """

    nq: int
    nv: int
    nu: int
    phases: int
    has_rates: bool
    periodic: bool

    @property
    def nx(self) -> int:
        """Size of (q, v)."""
        return self.nq + self.nv

    @property
    def durations(self) -> slice:
        """T in X."""
        return slice(self.nx, self.nx + self.phases)

    @property
    def before(self) -> slice:
        """The control before in X."""
        first = self.durations.stop
        return slice(first, first + self.nu * self.has_rates)

    @property
    def start(self) -> slice:
        """The start (q, v, [u_before]) in X."""
        first = self.before.stop
        return slice(first, first + self.periodic * (self.nx + self.nu * self.has_rates))

    @property
    def size(self) -> int:
        """Size of X."""
        return int(self.start.stop)

    def periodic_part(self, X: Sym) -> Sym:
        """Return the part of X that `start` copies."""
        return ca.vertcat(X[: self.nx], X[self.before])


@final
@dataclass(frozen=True)
class TimeCost:
    """The cost of the duration.

    Attributes:
        weight: cost of a second.
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_numbers(weight=self.weight)


@final
@readable_fields
@dataclass(frozen=True)
class ControlRate:
    """Rates of the control; u_0 is free but for a periodic motion.

    Attributes:
        bounds: (nu, 2) of du/dt, 1/s.
        weight: of `½ |du/dt|²`, per second.
    """

    bounds: ArrayLike | None = None
    weight: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_numbers(weight=self.weight)


TrajectoryPart = TimeCost | ControlRate
"""A part of trajectories alone."""


@dataclass(frozen=True)
class Pace:
    """What time and rates of the control cost.

    Attributes:
        time_weight, rate_weight: of a second, and of `½ |du/dt|²`.
        rates: (nu, 2) bounds of du/dt, or None.
    """

    time_weight: float = 0.0
    rate_weight: float = 0.0
    rates: Array | None = None

    @classmethod
    def of(cls, parts: Sequence[TrajectoryPart], system: System) -> "Pace":
        """Return that of parts, one of each kind at most.

        Raises:
            ProblemError: two parts of a kind.
        """
        kinds = [type(part) for part in parts]
        twice = next((kind for kind in kinds if kinds.count(kind) > 1), None)
        if twice is not None:
            raise ProblemError(f"two parts are a {twice.__name__}; expected one")
        pace = cls()
        for part in parts:
            if isinstance(part, TimeCost):
                pace = replace(pace, time_weight=part.weight)
            elif isinstance(part, ControlRate):
                rates = None if part.bounds is None else bounds("rate", part.bounds, system.nu)
                pace = replace(pace, rate_weight=part.weight, rates=rates)
        return pace

    @property
    def costs(self) -> bool:
        """Whether there is a cost."""
        return self.time_weight > 0 or self.rate_weight > 0

    @property
    def has_rates(self) -> bool:
        """Whether rates of the control enter."""
        return self.rates is not None or self.rate_weight > 0


@dataclass(frozen=True)
class TrajectoryOptions:
    """Options of a trajectory beside its base problem.

    Attributes:
        counts: number of intervals of each phase.
        spans: (phases, 2) bounds of durations.
        pace: cost of time and rates.
        growth: (nq,) of a period, or None.
        points: of Gauss in an interval, 0 for steps of Runge and Kutta.
    """

    counts: tuple[int, ...]
    spans: Array
    pace: Pace
    growth: Array | None
    points: int = 0
