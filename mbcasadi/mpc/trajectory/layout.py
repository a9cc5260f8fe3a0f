"""State and options of a problem with unknown durations, `X = (q, v, T, [u_before], [start])`."""

from dataclasses import dataclass

import casadi as ca

from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.ocp.problem import Array


@dataclass(frozen=True)
class Layout:
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


@dataclass(frozen=True)
class TrajectoryOptions:
    """Options of a trajectory beside its base problem.

    Attributes:
        counts: number of intervals of each phase.
        spans: (phases, 2) bounds of durations.
        time_weight, rate_weight: of a second, and of `½ |du/dt|²`.
        rates: (nu, 2) bounds of du/dt, or None.
        growth: (nq,) of a period, or None.
        points: of Gauss in an interval, 0 for steps of Runge and Kutta.
    """

    counts: tuple[int, ...]
    spans: Array
    time_weight: float
    rate_weight: float
    rates: Array | None
    growth: Array | None
    points: int = 0
