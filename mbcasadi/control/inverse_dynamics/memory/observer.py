"""Observer of the force that the model lacks, from the motion that it did not expect."""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi import linalg
from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.qp.kkt_residuals import length
from mbcasadi.shapes import require_positive

LARGEST_GAIN = 0.5
"""Largest `γ (2 delay + 3)`. The estimate is unstable from `γ = 2 sin(π/(4 delay + 6))` on, for the
exact inertia: that is six times as much."""

NOTHING = 1e-150
"""Stands for zero in a denominator."""


@dataclass(frozen=True)
class DisturbanceObserver:
    """How fast a law learns the force that its model lacks, from the motion it did not expect.

    Over a tick of length h the velocity changes by `h a`, with the acceleration a of the law's own
    solution. What it changes by beyond that is the work of a force that the model does not know, a
    mass, a load, friction, a push:

        e_k = v_k - v_{k-1} - h a_{k-1-delay},   d_{k+1} = d_k + γ M e_k / h

    with `γ = 1 - exp(-bandwidth h)`, and tick k solves `M a = f + d_k + ...`. As a was computed
    with d, the estimate converges at the bandwidth and leaves no steady error: it is a momentum
    observer (De Luca and Mattone 2003) in discrete time, with the predicted momentum in place of
    its integral. Constraint forces need no sensor: a obeys the active constraints, and so does `M⁻¹
    d`. A force that a constraint takes up moves nothing and is not seen.

    An estimate and its change are limited to what actuators and gravity can give, so that an impact
    does not drive them away. They pause for ticks without a solution.

    Args:
        bandwidth: 1/s, of the estimate: below that of the tasks, which is √kp.

    Raises:
        ProblemError: a bandwidth that is not positive.
    """

    bandwidth: float = 10.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(bandwidth=self.bandwidth)


def learning_gain(observer: DisturbanceObserver, period: float, delay: int) -> float:
    """Return γ for a period, s, and a delay, ticks.

    Raises:
        ProblemError: the bandwidth is too large for the period and the delay.
    """
    largest = LARGEST_GAIN / (2 * delay + 3)
    gain = float(-np.expm1(-observer.bandwidth * period))
    if gain > largest:
        bound = -np.log1p(-largest) / period
        raise ProblemError(
            f"an observer with a bandwidth of {observer.bandwidth:g} 1/s at a period of {period:g} "
            f"s and a delay of {delay} ticks; expected at most {bound:.3g} 1/s"
        )
    return gain


def observer_names(delay: int, rates: tuple[str, ...]) -> tuple[str, ...]:
    """Return the name of each entry of the state."""
    parts = ["disturbance", "last_v", *(f"a_{k}" for k in range(delay + 1))]
    return (*(f"{part}.{rate}" for part in parts for rate in rates), "observed_ticks")


class Observed(NamedTuple):
    """The state of the observer.

    Attributes:
        force: (nv,) d, N or N m.
        v: (nv,) velocity of the last tick.
        accelerations: (nv, delay + 1) of the last ticks, the latest first.
        ticks: how many ticks in succession had a solution, at most delay + 1.
    """

    force: ca.SX
    v: ca.SX
    accelerations: ca.SX
    ticks: ca.SX

    @property
    def delay(self) -> int:
        """Ticks from a measurement to the moment at which its control acts."""
        return int(self.accelerations.shape[1]) - 1

    def column(self) -> ca.SX:
        """Return the entries of the state."""
        return ca.vertcat(self.force, self.v, ca.vec(self.accelerations), self.ticks)


def observed(memory: ca.SX, nv: int) -> Observed:
    """Return the parts of a state of finite numbers."""
    history = ca.reshape(memory[2 * nv : -1, 0], nv, -1)
    return Observed(memory[:nv, 0], memory[nv : 2 * nv, 0], history, memory[-1, 0])


def learned_state(
    observer: DisturbanceObserver,
    before: Observed,
    motion: tuple[ca.SX, ca.SX, ca.SX],
    judged: tuple[ca.SX, ca.SX],
    sizes: tuple[ca.DM, float, float],
) -> ca.SX:
    """Return the state (n,) behind a tick; its force is that of the next tick.

    Args:
        observer: its bandwidth.
        before: the state before the tick.
        motion: M (nv, nv), v (nv,) of the tick, and a (nv,) of its solution, of any content where
            there is none.
        judged: whether v is an accepted measurement, and whether the tick has a solution.
        sizes: √ of each coordinate's inertia (nv,), the largest `(dᵀ M⁻¹ d)^½`, and the period, s.
    """
    (M, v, a), (accepted, solved), (roots, strength, period) = motion, judged, sizes
    ready = ca.logic_and(accepted, before.ticks >= before.delay + 1)
    missed = ca.if_else(ready, (v - before.v) / period - before.accelerations[:, -1], 0)
    force = linalg.product(M, missed)
    force = _limited(force, ca.sqrt(ca.fmax(ca.dot(missed, force), 0)), strength)
    d = before.force + learning_gain(observer, period, before.delay) * force
    latest = ca.if_else(solved, a, 0)
    history = ca.horzcat(latest, before.accelerations)[:, : before.delay + 1]
    ticks = ca.if_else(solved, ca.fmin(before.ticks, before.delay) + 1, 0)
    return Observed(_limited(d, length(d / roots), strength), v, history, ticks).column()


def _limited(force: ca.SX, size: ca.SX, strength: float) -> ca.SX:
    """Return the force, shortened where its size is larger than the strength."""
    if not np.isfinite(strength):
        return force
    return force * ca.fmin(1, strength / (size + NOTHING))
