"""Observer of the force that the model lacks, from the motion that it did not expect."""

from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np

from mbcasadi import linalg
from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Outcome, Part
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.symbols import Sym
from mbcasadi.qp.kkt_residuals import length
from mbcasadi.shapes import require_positive
from mbcasadi.system.coordinates import generalised_forces, rates

LARGEST_GAIN = 0.5
"""Largest `γ (2 delay + 3)`. The estimate is unstable from `γ = 2 sin(π/(4 delay + 6))` on, for the
exact inertia: that is six times as much."""

NAME = "observer"

NOTHING = 1e-150
"""Stands for zero in a denominator."""


@final
@dataclass(frozen=True)
class DisturbanceObserver(Part):
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

    def bind(self, design: Design) -> Bound:
        """Return the learned force and what is remembered to learn it.

        That is d, the velocity of the last tick, the accelerations of the last ticks, the latest
        first, and how many ticks in succession had a solution.

        Raises:
            ProblemError: the bandwidth is too large for the period and the delay.
        """
        nv, delay, period = design.system.nv, design.delay_ticks, design.period
        gain = learning_gain(self, period, delay)

        def remember(tick: Outcome) -> ca.SX:
            before, M, v = (tick.known[key] for key in ("memory", "M", "v"))
            last, history, ticks = before[nv : 2 * nv, 0], before[2 * nv : -1, 0], before[-1, 0]
            history = ca.reshape(history, nv, -1)
            ready = ca.logic_and(tick.measured, ticks >= delay + 1)
            missed = ca.if_else(ready, (v - last) / period - history[:, -1], 0)
            force = linalg.product(M, missed)
            size = ca.sqrt(ca.fmax(ca.dot(missed, force), 0))
            d = before[:nv, 0] + gain * limited(force, size, tick.strength)
            d = limited(d, length(d / ca.DM(tick.coordinates)), tick.strength)
            latest = ca.if_else(tick.solved, tick.a, 0)
            history = ca.horzcat(latest, history)[:, : delay + 1]
            counted = ca.if_else(tick.solved, ca.fmin(ticks, delay) + 1, 0)
            return ca.vertcat(d, v, ca.vec(history), counted)

        parts = ["disturbance", "last_v", *(f"a_{k}" for k in range(delay + 1))]
        names = [f"{part}.{rate}" for part in parts for rate in rates(design.system).components]
        return Bound(
            NAME,
            memory=(*names, "observed_ticks"),
            outputs=(replace(generalised_forces(design.system), name="disturbance"),),
            forces=lambda now: now.pushed(learned_force(now)),
            carry=lambda now: {"memory": now.memory[NAME], "v": now.v, "M": now.M},
            remember=remember,
        )


def learned_force(now: Instant) -> ca.SX:
    """Return d (nv,), N or N m; zero without an observer."""
    nv = now.v.numel()
    return now.memory[NAME][:nv, 0] if NAME in now.memory else ca.SX(nv, 1)


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


def limited(force: Sym, size: Sym, strength: float) -> Sym:
    """Return the force, shortened where its size is larger than the strength."""
    if not np.isfinite(strength):
        return force
    return force * ca.fmin(1, strength / (size + NOTHING))
