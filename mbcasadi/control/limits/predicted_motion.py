"""Joints and distances with limits, predicted over a delay.

With a delay of d ticks the acceleration of a tick acts from `t + d h` on, h being its length. A
bound that keeps a limit has to hold from the state that is there then. It follows from the measured
one with the accelerations of the d ticks before, which z remembers:

    v += h a,   q += h v + c h² a   for each of these ticks, the oldest first.

A gap follows in the same way from its rate and `g̈ = J a + J̇ v`, with J and J̇ of the measured state:
what is remembered are accelerations of coordinates, not of pairs. A tick without a solution counts
as one without acceleration. c is ½, or what steps of MuJoCo make of it, see `ServoPlant`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import casadi as ca

from mbcasadi.control.tick.design import Design, Tick
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Outcome, Part
from mbcasadi.system.coordinates import rates

NAME = "plans"


@final
@dataclass(frozen=True)
class PlannedMotion(Part):
    """Accelerations that are planned but do not act yet, the oldest first.

    Attributes:
        dofs: indices in v of what is remembered.
    """

    dofs: tuple[int, ...]

    def bind(self, design: Design) -> Bound:
        """Return the entries of z."""
        names, dofs, nv = rates(design.system).components, list(self.dofs), design.system.nv
        k, delay = len(dofs), design.delay_ticks if self.dofs else 0

        def state(now: Instant) -> Instant:
            plans = []
            for tick in range(delay):
                a = ca.SX.zeros(nv)
                a[dofs] = now.memory[NAME][tick * k : (tick + 1) * k, 0]
                plans.append(a)
            return replace(now, plans=tuple(plans))

        def remember(tick: Outcome) -> ca.SX:
            latest = ca.if_else(tick.solved, tick.a[dofs, 0], 0)
            return ca.vertcat(tick.known["memory"][k:, 0], latest)

        return Bound(
            NAME,
            memory=tuple(
                f"planned.{names[dof]}.{tick}" for tick in range(delay, 0, -1) for dof in dofs
            ),
            state=state,
            carry=(lambda now: {"memory": now.memory[NAME]}) if delay else None,
            remember=remember if delay else None,
        )


def predicted(
    y: ca.SX, rate: ca.SX, accelerations: Sequence[ca.SX], tick: Tick
) -> tuple[ca.SX, ca.SX]:
    """Return coordinates and their rates after ticks with these accelerations."""
    h = tick.length
    for a in accelerations:
        y, rate = y + h * rate + tick.share * h**2 * a, rate + h * a
    return y, rate
