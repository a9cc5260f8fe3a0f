"""Forces weighed component by component, and brought to their reference by measurement."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.memory.observer import LARGEST_GAIN
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import real_array, require_positive

Array = NDArray[np.float64]
PerForce = float | Sequence[float]


@dataclass(frozen=True)
class ForceFeedback:
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


class Integrated(NamedTuple):
    """The integral and what a tick adds to it.

    Attributes:
        force: (k,) I, N; zero where a contact is off.
        error: (k,) `f_ref - f_m`, N; zero where it is off or has no weight.
        on: (k,) one for forces whose contact or constraint is on.
    """

    force: ca.SX
    error: ca.SX
    on: ca.SX


def force_weights(weight: PerForce, count: int) -> Array:
    """Return the weights (3 count,) of the components n, t1, t2 of each contact.

    Args:
        weight: one for all, one for n, t1, t2 of every contact, or all of them.
        count: number of contacts.

    Raises:
        ProblemError: another number of weights, or a negative one.
    """
    array = real_array("force_weight", weight)
    fits = array.shape in {(), (3,), (3 * count,)} and bool(np.all(np.isfinite(array)))
    if not fits or np.any(array < 0):
        raise ProblemError(
            f"force_weight = {weight}; expected a finite number that is not negative, three for n, "
            f"t1, t2 of every contact, or {3 * count} for {count} contacts"
        )
    if array.shape == (3 * count,):
        return np.asarray(array, dtype=float)
    return np.asarray(np.tile(np.broadcast_to(array, (3,)), count), dtype=float)


def require_feedback(
    feedback: ForceFeedback | None, weights: Array, reference: bool, timing: tuple[float, int]
) -> None:
    """Raise for a feedback that has no reference, or is unstable.

    Args:
        feedback: None for none.
        weights: of the forces.
        reference: whether they have a reference.
        timing: the period, s, and the delay, ticks.

    Raises:
        ProblemError: no contacts, weight or reference; a gain too large for period and delay.
    """
    if feedback is None:
        return
    if not reference or not np.any(weights > 0):
        raise ProblemError(
            "a feedback of forces without a reference; expected contacts with a positive "
            "force_weight, or loop_force_weights, and force_reference=True"
        )
    period, delay = timing
    largest = LARGEST_GAIN / (2 * delay + 3) / period
    if feedback.gain > largest:
        raise ProblemError(
            f"a feedback of forces with a gain of {feedback.gain:g} 1/s at a period of {period:g} "
            f"s and a delay of {delay} ticks; expected at most {largest:.3g} 1/s"
        )


def integral_names(force_names: Sequence[str]) -> tuple[str, ...]:
    """Return the name of each entry of the integral."""
    return tuple(f"force_integral.{name}" for name in force_names)


def integrated(
    feedback: ForceFeedback,
    memory: ca.SX,
    on: ca.SX,
    forces: tuple[ca.SX, ca.SX],
    weights: Array,
) -> Integrated:
    """Return the integral at the start of a tick.

    Args:
        feedback: gain and limit.
        memory: (k,) what z remembers.
        on: (k,) one where the force's contact or constraint is on.
        forces: (k,) reference and measured force, N.
        weights: (k,) of the forces.
    """
    weighed = on * ca.DM((weights > 0).astype(float))
    held = ca.fmin(ca.fmax(memory, -feedback.limit), feedback.limit)
    return Integrated(on * held, weighed * (forces[0] - forces[1]), on)


def next_integral(
    feedback: ForceFeedback, before: Integrated, judged: tuple[ca.SX, ca.SX], period: float
) -> ca.SX:
    """Return the integral (k,) behind a tick.

    Args:
        feedback: gain and limit.
        before: at its start.
        judged: whether the tick has a solution, and (k,) one where the force is at a bound.
        period: s.
    """
    solved, bounded = judged
    step = ca.fmin(ca.fmax(feedback.gain * period * before.error, -feedback.limit), feedback.limit)
    after = ca.fmin(ca.fmax(before.force + step, -feedback.limit), feedback.limit)
    grows = ca.fabs(after) > ca.fabs(before.force)
    paused = ca.logic_or(ca.logic_not(solved), ca.logic_and(bounded, grows))
    return ca.if_else(paused, before.force, after)


def at_bounds(
    active: ca.SX, row_names: Sequence[str], limits: Sequence[str], acting: Sequence[set[str]]
) -> ca.SX:
    """Return (k,) one for each force that an active limit of actuators or its own bounds.

    Args:
        active: (m,) active set of the rows.
        row_names: their names.
        limits: with what the names of the limits of each force begin.
        acting: names of the actuators that can act on each force.
    """
    is_active = ca.fabs(active)
    parts: dict[tuple[str, ...], ca.SX] = {}
    found = []
    for limit, actuators in zip(limits, acting, strict=True):
        starts = (limit, *(f"actuator '{name}': " for name in sorted(actuators)))
        if starts not in parts:
            own = [i for i, name in enumerate(row_names) if name.startswith(starts)]
            parts[starts] = ca.sum1(is_active[own, 0]) > 0 if own else ca.SX(0)
        found.append(parts[starts])
    return ca.vertcat(ca.SX(0, 1), *found)
