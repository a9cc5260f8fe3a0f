"""Forces that are brought to their reference by measurement."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.parts.observer import LARGEST_GAIN
from mbcasadi.control.tick.design import Design, forces_on
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Outcome, Part
from mbcasadi.description import Signal
from mbcasadi.errors import ProblemError
from mbcasadi.qp.rows import Row
from mbcasadi.shapes import require_positive

NAME = "integrals"
MEASURED = "f_measured"


@final
@dataclass(frozen=True)
class ForceFeedback(Part):
    """How contact forces follow their reference by measurement.

    The cost `½ Σ r_i (f_i - f_ref,i)²` weighs planned forces of contacts and loops. What is planned
    is not what acts where mass, friction or the pose of the surface are wrong: a press with 30 N is
    off by what the model lacks. With a measured force f_m the reference becomes `f_ref + I`, with
    an integral in z,

        I_{k+1} = I_k + γ (f_ref - f_m),   γ = gain h,

    of the forces whose weight is positive. It leaves no steady error. I is zero while the contact
    is off and at most `limit`. It pauses for ticks without a solution, and does not grow while a
    limit of this force, or an actuator that can act on it, is at its bound.

    Args:
        limit: N, largest integral of a component: what the model may be wrong by.
        gain: 1/s, how fast an error fades.

    Raises:
        ProblemError: a number that is not positive.
    """

    limit: float
    gain: float = 5.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(limit=self.limit, gain=self.gain)

    def bind(self, design: Design) -> Bound:
        """Return the measured forces, the integral and the reference with it.

        Raises:
            ProblemError: no contacts, weight or reference; a gain too large for period and delay.
        """
        self._require_fit(design)
        forces = design.weighed_forces
        counts = ca.DM([float(each.weight > 0) for each in forces])

        def with_integral(now: Instant) -> Instant:
            on = forces_on(design, now.on, now.on_rows)
            held = on * ca.fmin(ca.fmax(now.memory[NAME], -self.limit), self.limit)
            error = on * counts * (now.f_ref - now.inputs[MEASURED])
            integral = {"force": held, "error": error, "on": on}
            return replace(now, f_ref=now.f_ref + held).knowing(NAME, integral)

        def remember(tick: Outcome) -> ca.SX:
            force, error = tick.known["force"], tick.known["error"]
            step = ca.fmin(ca.fmax(self.gain * design.period * error, -self.limit), self.limit)
            after = ca.fmin(ca.fmax(force + step, -self.limit), self.limit)
            grows = ca.fabs(after) > ca.fabs(force)
            learns = ca.logic_and(tick.valid, tick.solved)
            held = ca.logic_and(at_bounds(tick.active, tick.about, tick.acting), grows)
            return ca.if_else(ca.logic_or(ca.logic_not(learns), held), force, after)

        names, units = (tuple(getattr(f, key) for f in forces) for key in ("name", "unit"))
        return Bound(
            NAME,
            inputs=(Signal(MEASURED, names, units),),
            memory=tuple(f"force_integral.{name}" for name in names),
            forces=with_integral,
            carry=lambda now: now.known[NAME],
            remember=remember,
        )

    def _require_fit(self, design: Design) -> None:
        weights = np.array([each.weight for each in design.weighed_forces])
        if not design.force_reference or not np.any(weights > 0):
            raise ProblemError(
                "a feedback of forces without a reference; expected contacts with a positive "
                "force_weight, or loop_force_weights, and force_reference=True"
            )
        period, delay = design.period, design.delay_ticks
        largest = LARGEST_GAIN / (2 * delay + 3) / period
        if self.gain > largest:
            raise ProblemError(
                f"a feedback of forces with a gain of {self.gain:g} 1/s at a period of {period:g} "
                f"s and a delay of {delay} ticks; expected at most {largest:.3g} 1/s"
            )


def at_bounds(
    active: ca.SX, about: Sequence[Row], acting: Sequence[frozenset[tuple[str, str]]]
) -> ca.SX:
    """Return (k,) one for each force that an active limit of actuators or its own bounds.

    Args:
        active: (m,) active set of the rows.
        about: what the rows are.
        acting: what each force is, and the actuators that can act on it: kind and name.
    """
    is_active = ca.fabs(active)
    parts: dict[frozenset[tuple[str, str]], ca.SX] = {}
    for owners in acting:
        if owners not in parts:
            own = [i for i, row in enumerate(about) if row.owner in owners]
            parts[owners] = ca.sum1(is_active[own, 0]) > 0 if own else ca.SX(0)
    return ca.vertcat(ca.SX(0, 1), *(parts[owners] for owners in acting))
