"""A supervision in numbers, for one law: limits of every entry, ticks instead of seconds."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.c_interface import STATES, CLaw, Port, find_port
from mbcasadi.codegen.stage_functions import rename_function
from mbcasadi.codegen.supervision.supervision import MOST_TICKS, InputLimits, Numbers, Supervision
from mbcasadi.description.controller import INPUTS, ticks_of_last_command
from mbcasadi.errors import ExportError, ProblemError
from mbcasadi.shapes import column, real_array, require_name

Array = NDArray[np.float64]

QUATERNION = ("qw", "qx", "qy", "qz")
SHORTEST, LONGEST = 0.5, 2.0
"""Lengths between which a measured quaternion lies."""

MOST_INPUTS = 32
"""Bits of a record that say which inputs were there."""

LEAST_TRIP = 3
"""Failed ticks in a row that a watchdog waits for by default, at least."""

SPOILED = ("ref", "tuning", "mask", "p", "t")
"""Inputs without which a law has its safe output and still knows the measurement, in this order."""


@dataclass(frozen=True)
class Checked:
    """One input that is checked.

    Attributes:
        place: among the inputs without z.
        first: its first entry among those of all checked inputs.
        quaternions: first entries of quaternions, among those too.
        lower, upper, jump: (size,) the last is the largest change in one tick.
    """

    port: Port
    place: int
    first: int
    is_measured: bool
    quaternions: tuple[int, ...]
    lower: Array
    upper: Array
    jump: Array


@dataclass(frozen=True)
class InputChecks:
    """Which inputs are examined, and how.

    Attributes:
        inputs: those of the caller, without z.
        checked: those with limits.
        stale_after: ticks that a sample may last; -1: any number.
    """

    inputs: tuple[Port, ...]
    checked: tuple[Checked, ...]
    stale_after: int

    @property
    def entries(self) -> int:
        """Number of entries that are checked."""
        return sum(checked.port.size for checked in self.checked)

    @property
    def others(self) -> list[tuple[int, bool]]:
        """Places of the inputs without limits, and whether infinity means none there."""
        known = [checked.place for checked in self.checked]
        return [
            (i, port.name in INPUTS and port.name != "ref")
            for i, port in enumerate(self.inputs)
            if i not in known and port.size
        ]

    @property
    def measured(self) -> tuple[int, ...]:
        """Places of the inputs that are measured."""
        return tuple(i for i, port in enumerate(self.inputs) if port.name not in INPUTS)


@dataclass(frozen=True)
class Plan(InputChecks):
    """What the C of a supervision is made from.

    Attributes:
        law: what is supervised.
        outputs: those of the law without z_next.
        rate: (nu,) largest change of u in one tick.
        recover_after: ticks; -1: never.
        trip_after, fade_ticks: ticks.
        fade_time: s.
        spoiled: input that is NaN while the safe law acts; None where nothing leads the law to its
            safe output.
        safe_law: renamed, or None.
    """

    law: CLaw
    outputs: tuple[Port, ...]
    rate: Array
    recover_after: int
    trip_after: int
    fade_ticks: int
    fade_time: float
    spoiled: Port | None
    safe_law: ca.Function | None


def plan_supervision(
    supervision: Supervision, law: CLaw, function: ca.Function, start: Mapping[str, Array]
) -> Plan:
    """Return the numbers of a supervision.

    Args:
        supervision: of the user.
        law: what is exported.
        function: the whole law.
        start: a value for every input of it.

    Raises:
        ExportError: the law has no control u, no limits or no period.
        UnknownNameError, ShapeError, ProblemError: inputs, components or the safe law do not fit.
    """
    u = find_port(law.outputs, "u")
    if law.period is None or u is None or not u.size or law.u_safe is None:
        raise ExportError(
            f"{law.name!r} has no control u and no period, so that nothing can be supervised; "
            "export a controller, or leave supervision out"
        )
    inputs = tuple(port for port in law.inputs if port.name not in STATES)
    if len(inputs) > MOST_INPUTS:
        raise ExportError(f"{law.name!r} has {len(inputs)} inputs; a log has {MOST_INPUTS} at most")
    default_trip = max(LEAST_TRIP, ticks_of_last_command(law.period))
    fade_ticks = round(float(supervision.fade_time) / law.period)
    if fade_ticks >= MOST_TICKS:
        raise ProblemError(
            f"fade_time is {supervision.fade_time} s, which is {fade_ticks} ticks; expected fewer "
            f"than {MOST_TICKS}"
        )
    rate = _numbers("rate", supervision.rate, u, np.inf)
    if not np.all(rate > 0):
        raise ProblemError(f"rate is {rate.min()} in one component; expected more than 0")
    return Plan(
        law=law,
        inputs=inputs,
        outputs=tuple(port for port in law.outputs if port.name not in STATES),
        checked=checked_inputs(supervision.inputs, inputs),
        rate=rate * law.period,
        stale_after=_ticks(supervision.stale_after, -1),
        recover_after=_ticks(supervision.recover_after, -1),
        trip_after=_ticks(supervision.trip_after, default_trip),
        fade_ticks=fade_ticks,
        fade_time=float(supervision.fade_time),
        spoiled=_spoiled(law, function, start),
        safe_law=_safe_law(supervision, law, inputs),
    )


def _ticks(ticks: int | None, otherwise: int) -> int:
    return otherwise if ticks is None else int(ticks)


def checked_inputs(
    limited: Mapping[str, InputLimits], inputs: tuple[Port, ...], ticks: int = 1
) -> tuple[Checked, ...]:
    """Return the inputs that have limits.

    Args:
        limited: limits, by name.
        inputs: those of the caller.
        ticks: from one examination to the next.

    Raises:
        UnknownNameError, ShapeError, ProblemError: inputs or components do not fit.
    """
    names = [port.name for port in inputs]
    for name in limited:
        require_name("input", name, names)
    rows, first = [], 0
    for place, port in enumerate(inputs):
        limits = limited.get(port.name)
        if limits is None or not port.size:
            continue
        text = f"inputs[{port.name!r}]"
        lower = _numbers(f"{text}.lower", limits.lower, port, -np.inf)
        upper = _numbers(f"{text}.upper", limits.upper, port, np.inf)
        jump = _numbers(f"{text}.jump", limits.jump, port, np.inf)
        if not np.all(lower <= upper) or np.any(lower == np.inf) or np.any(upper == -np.inf):
            raise ProblemError(f"{text}: a lower limit is above the upper one, or all is refused")
        if not np.all(jump > 0):
            raise ProblemError(f"{text}.jump is {jump.min()}; expected more than 0")
        quaternions = tuple(first + k for k in quaternion_starts(port))
        is_measured = port.name not in INPUTS
        rows.append(
            Checked(port, place, first, is_measured, quaternions, lower, upper, ticks * jump)
        )
        first += port.size
    return tuple(rows)


def quaternion_starts(port: Port) -> list[int]:
    """Return the first entries of the quaternions among an input's components."""
    ends = [name.rpartition(".")[2] for name in port.components]
    return [k for k in range(len(ends) - 3) if tuple(ends[k : k + 4]) == QUATERNION]


def _numbers(text: str, values: Numbers, port: Port, otherwise: float) -> Array:
    """Return (size,) numbers from one, from one for each component, or from some by name.

    Raises:
        UnknownNameError, ShapeError: names or sizes do not fit.
        ProblemError: one is NaN.
    """
    if isinstance(values, Mapping):
        result = np.full(port.size, otherwise)
        for name, value in values.items():
            require_name(f"component of {port.name}", name, list(port.components))
            result[port.components.index(name)] = column(f"{text}[{name!r}]", [value], 1)[0]
    else:
        numbers = real_array(text, values)
        spread = np.full(port.size, numbers) if numbers.ndim == 0 else numbers
        result = column(text, spread, port.size, finite=False)
    if np.isnan(result).any():
        raise ProblemError(f"{text} holds NaN; expected numbers, infinite where there is no limit")
    return result


def _spoiled(law: CLaw, function: ca.Function, start: Mapping[str, Array]) -> Port | None:
    """Return the input whose NaN leads the law to its safe output; without one, None."""
    first = [port.name for port in law.inputs if port.name not in INPUTS and port.size][:1]
    for name in (*SPOILED, *first):
        port = find_port(law.inputs, name)
        if port is None or not port.size or "status" not in function.name_out():
            continue
        values = {p.name: ca.DM(p.sparsity, start[p.name]) for p in law.inputs}
        values[name] = ca.DM(port.sparsity, np.full(port.size, np.nan))
        try:
            status = float(function(**values)["status"])
        except RuntimeError:  # of CasADi: not defined at these inputs
            continue
        if status in law.safe_statuses:
            return port
    return None


def _safe_law(supervision: Supervision, law: CLaw, inputs: tuple[Port, ...]) -> ca.Function | None:
    """Return the safe law under its name in C.

    Raises:
        ProblemError: its inputs or its control are not those of the controller.
    """
    f = supervision.safe_law
    if f is None:
        return None
    if tuple(f.name_out()) != ("u",) or f.size_out(0) != (law.nu, 1):
        shapes = ", ".join(f"{name} {f.size_out(name)}" for name in f.name_out())
        raise ProblemError(f"safe_law has the outputs {shapes}; expected u ({law.nu}, 1)")
    known = {port.name: port for port in inputs}
    if not f.n_in():  # a constant
        if not np.all(np.isfinite(f()["u"].full())):
            raise ProblemError(f"safe_law is the constant {f()['u']}; expected finite numbers")
        unused = ca.SX.sym(inputs[0].name, inputs[0].sparsity)
        f = ca.Function("safe", [unused], [ca.SX(f()["u"])], [inputs[0].name], ["u"])
    for name in f.name_in():
        require_name("input of safe_law", name, list(known))
        if f.sparsity_in(name) != known[name].sparsity:
            raise ProblemError(
                f"safe_law: its input {name!r} is {f.sparsity_in(name).dim()}, that of the "
                f"controller {known[name].sparsity.dim()}; expected the same"
            )
    dense = [ca.Sparsity.dense(law.nu, 1)]
    return rename_function(f, f"{law.name}_safe_law", dense)
