"""Limits of actuator forces that depend on the speed, and on the force of the last tick.

With the speed ω of an actuator's length at the start of the tick in which the force p acts, its
stall force p_s, its speed without load ω_0 and its power P:

    |p| <= p_s,  p <= p_s (1 - ω/ω_0),  p >= -p_s (1 + ω/ω_0)    torque-speed line, both ways
    p ω <= P                                                     power that it gives
    |p - p_last| <= rate h                                       p_last one tick before

A braking force is limited by p_s alone. All of them are bounds of p, and become a part of its
range: where they contradict each other or the ranges of the model, those of the model hold first,
then line and power, then the rate. So they never leave the QP without a solution.

A servo changes its force during the tick; these limits hold for that at its start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Outcome, Part
from mbcasadi.description import TuningParameter
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import real_array
from mbcasadi.system import System
from mbcasadi.system.actuator_model import ActuatorModel, servo_indices
from mbcasadi.system.names_by_kind import require_name_of

Array = NDArray[np.float64]
PerActuator = float | Sequence[float]

NAME = "actuator limits"

LAST_FORCE = "forces"
"""Name of the part that remembers the forces of the last tick."""

NO_LIMIT = 1e9
"""N or N m, a force that no actuator reaches."""

LEAST_SPEED = 1e-6
"""Least no-load speed, as a share of the one that the controller is built with."""


def last_force(now: Instant) -> tuple[ca.SX, ca.SX]:
    """Return the actuator forces (nu,) of the tick before, and whether they are known."""
    own = now.memory[LAST_FORCE]
    return own[:-1, 0], own[-1] > 0


@final
@readable_fields
@dataclass(frozen=True)
class ActuatorLimits(Part):
    """Limits of actuators; a number, or one for each of `actuators`.

    Attributes:
        actuators: names; None for all.
        rate: largest change of the force, N/s or N m/s; None for no limit. There is none in the
            first tick.
        stall_force: of the torque-speed line, N or N m; with `no_load_speed`.
        no_load_speed: of the torque-speed line, m/s or rad/s of the actuator's length.
        power: largest mechanical power that the actuator gives, W; None for no limit.
    """

    actuators: tuple[str, ...] | None = None
    rate: PerActuator | None = None
    stall_force: PerActuator | None = None
    no_load_speed: PerActuator | None = None
    power: PerActuator | None = None

    def __post_init__(self) -> None:
        require_fields(self)

    def bind(self, design: Design) -> Bound:
        """Return the ranges of the forces with these limits, and their entries of `tuning`.

        Raises:
            ProblemError, UnknownNameError: as in `limited_actuators`.
        """
        limited, names = limited_actuators(design.system, self), design.system.actuator_names
        has_rate = bool(np.any(np.isfinite(limited.rate)))

        def forces(now: Instant) -> Instant:
            tuned = {
                kind: [
                    now.tuning.get(f"{name}.{kind}", float(value))
                    for name, value in zip(names, getattr(limited, kind), strict=True)
                ]
                for kind in KINDS
            }
            speed = now.actuators.moment.T @ now.v
            if now.ahead is not None:
                speed = speed + now.ahead[1]
            last = last_force(now) if has_rate else None
            actuators = limit_forces(tuned, now.actuators, speed, last, design.period)
            return replace(now, actuators=actuators).knowing(NAME, limited.label)

        def carry(now: Instant) -> dict[str, ca.SX]:
            return dict(zip(("last", "known"), last_force(now), strict=True))

        def safe(tick: Outcome) -> ca.SX:
            """Return the safe output, as far from the last forces as the rate allows.

            The force of a servo's control is known where its length was measured, that of a motor
            always.
            """
            servos, force = servo_indices(design.system), tick.unlimited.forces(tick.u)
            entries = ca.vertsplit(force)
            for i in np.flatnonzero(np.isfinite(limited.rate)).tolist():
                step, last = design.period * limited.rate[i], tick.known["last"][i]
                near = ca.fmin(ca.fmax(entries[i], last - step), last + step)
                trusted = tick.measured if i in servos else ca.SX(1)
                is_known = ca.logic_and(tick.known["known"], trusted)
                entries[i] = ca.if_else(is_known, near, entries[i])
            return tick.actuators.controls(ca.vertcat(*entries))

        return Bound(
            NAME,
            tuning=_entries(limited, names) if "limits" in design.tunable else (),
            forces=forces,
            carry=carry if has_rate else None,
            safe=safe if has_rate else None,
        )


def _entries(limited: "LimitedActuators", names: Sequence[str]) -> tuple[TuningParameter, ...]:
    entries = []
    for i, name in enumerate(names):
        for kind in KINDS:
            value = float(getattr(limited, kind)[i])
            if np.isfinite(value):
                least = LEAST_SPEED * value if kind == "no_load_speed" else 0.0
                entries.append(TuningParameter(f"{name}.{kind}", value, least, NO_LIMIT))
    return tuple(entries)


@dataclass(frozen=True)
class LimitedActuators:
    """The limits of all actuators as numbers (nu,), infinite where there are none."""

    rate: Array
    stall_force: Array
    no_load_speed: Array
    power: Array

    @property
    def label(self) -> str:
        """What bounds a force beside the model's ranges, for messages."""
        parts = {
            "rate": self.rate,
            "torque-speed line": self.stall_force,
            "power": self.power,
        }
        return ", ".join(name for name, values in parts.items() if np.any(np.isfinite(values)))


KINDS = tuple(field.name for field in fields(LimitedActuators))
Values = Mapping[str, Sequence[ca.SX | float]]
"""Limits by their kind, one of each actuator."""


def limited_actuators(system: System, limits: ActuatorLimits) -> LimitedActuators:
    """Return the limits of a system's actuators.

    Raises:
        UnknownNameError: no actuator of that name.
        ProblemError: nothing is limited; numbers that are not positive or too many; a line without
            one of its ends.
    """
    names = system.actuator_names if limits.actuators is None else limits.actuators
    for name in names:
        require_name_of(system, "actuator", name, system.actuator_names)
    if (limits.stall_force is None) != (limits.no_load_speed is None):
        raise ProblemError(
            f"stall_force = {limits.stall_force}, no_load_speed = {limits.no_load_speed}; expected "
            "both ends of the torque-speed line, or neither"
        )
    if all(getattr(limits, kind) is None for kind in KINDS):
        raise ProblemError(f"ActuatorLimits limit nothing; expected one of {', '.join(KINDS)}")
    values = {}
    for kind in KINDS:
        values[kind] = np.full(system.nu, np.inf)
        given = per_actuator(kind, getattr(limits, kind), names)
        for name, value in zip(names, given, strict=True):
            values[kind][system.actuator_names.index(name)] = value
    return LimitedActuators(**values)


def per_actuator(label: str, value: PerActuator | None, names: Sequence[str]) -> Array:
    """Return one positive number for each actuator, infinite for None.

    Raises:
        ProblemError: a number that is not positive, or too many.
    """
    if value is None:
        return np.full(len(names), np.inf)
    array = real_array(label, value)
    if array.shape not in {(), (len(names),)} or not np.all(array > 0):
        raise ProblemError(
            f"{label} = {value}; expected a positive number, or one for each of {', '.join(names)}"
        )
    return np.broadcast_to(array, (len(names),)).astype(float)


def limit_forces(
    limits: Values,
    actuators: ActuatorModel,
    speed: ca.SX,
    last: tuple[ca.SX, ca.SX] | None,
    period: float,
) -> ActuatorModel:
    """Return the actuators with all limits in their ranges.

    Args:
        limits: of the actuators, infinite where there are none; tuned ones are expressions.
        actuators: with the ranges of the model.
        speed: (nu,) of their lengths.
        last: forces of the tick before, and whether they are known; None without a rate.
        period: length of a tick, s.
    """
    lower, upper, bounded = ca.SX(actuators.lower), ca.SX(actuators.upper), list(actuators.bounded)
    for i in range(len(bounded)):
        intervals = _of_speed(limits, i, speed[i])
        if last is not None and _is_limit(limits["rate"][i]):
            step, (force, known) = period * limits["rate"][i], last
            low = ca.if_else(known, force[i] - step, -UNBOUNDED)
            intervals.append((low, ca.if_else(known, force[i] + step, UNBOUNDED)))
        for low, high in intervals:
            lower[i], upper[i] = _inside((lower[i], upper[i]), (low, high))
            bounded[i] = True
    return replace(actuators, lower=lower, upper=upper, bounded=tuple(bounded))


def _is_limit(value: ca.SX | float) -> bool:
    """Whether a value is a limit: a finite number, or an expression."""
    return isinstance(value, ca.SX) or bool(np.isfinite(value))


def _of_speed(limits: Values, i: int, speed: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
    """Return the interval of line and power, where actuator i has one."""
    stall, power = limits["stall_force"][i], limits["power"][i]
    low, high = ca.SX(-UNBOUNDED), ca.SX(UNBOUNDED)
    if _is_limit(stall):
        share = speed / limits["no_load_speed"][i]
        high = stall * ca.fmax(ca.fmin(1, 1 - share), -1)
        low = -stall * ca.fmax(ca.fmin(1, 1 + share), -1)
    if _is_limit(power):
        least = power / UNBOUNDED
        # Beyond the speed without load the line requires braking, which gives no power.
        high = ca.fmin(high, power / ca.fmax(speed, least))
        low = ca.fmax(low, -power / ca.fmax(-speed, least))
    return [(low, high)] if _is_limit(stall) or _is_limit(power) else []


def _inside(range_: tuple[ca.SX, ca.SX], wanted: tuple[ca.SX, ca.SX]) -> tuple[ca.SX, ca.SX]:
    """Return the part of a range that is wanted, its nearest end where there is none.

    A range that is empty already stays as it is.
    """
    low = ca.fmin(ca.fmax(range_[0], wanted[0]), range_[1])
    high = ca.fmax(ca.fmin(range_[1], wanted[1]), range_[0])
    exists = range_[0] <= range_[1]
    return ca.if_else(exists, low, range_[0]), ca.if_else(exists, high, range_[1])
