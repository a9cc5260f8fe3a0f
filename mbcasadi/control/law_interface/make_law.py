"""A control law from its equations: a guard in front of them, limits behind.

A law is given as expressions of a safe state; `make_law` turns them into one named Function that
becomes C as it is. Its signature is

    (q, v, [f_c], ref, [tuning], [mask], z) → (u, z_next, status, flags, residual)

- `ref`: the references, in the slices that `Law.reference` names.
- `tuning`: numbers that may change between ticks, where the law has them.
- `f_c`: (nv,) measured constraint force, where the law uses one.
- `mask`: one entry for each constraint of the model, above one half for on, where the system has a
  mask.
- `status`: 0 the equations hold; 1 u is saturated at its limits; 2 the desired motion or force is
  unattainable and u is the nearest; 3 bad input (NaN, infinity), u is the safe output; 4 the
  arithmetic failed, u is the safe output.
- `flags`: the bit SATURATED where u was clipped to its limits; see `Flag`.
- `residual`: what is missing from the desired motion or force, in the law's own terms.

u never leaves its limits, whatever the inputs are. The safe output is zero control within them,
and the state keeps its value.
"""

from collections.abc import Callable, Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.law_interface.law import Array, Command, Law, LawInputs
from mbcasadi.control.law_interface.signals import monitors, signals_in, signals_out
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller, TuningParameter
from mbcasadi.description.status import LAW_STATUS, Flag, Status
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import (
    LARGEST_INPUT,
    MASK_ON,
    clamp,
    input_validity,
    is_saturated,
    is_within,
    normalise_quaternions,
    replace_invalid,
)
from mbcasadi.shapes import require_identifier, require_positive
from mbcasadi.system import System
from mbcasadi.system.actuator_model import require_ranges
from mbcasadi.system.coordinates import equality_groups, quaternion_places


def make_law(
    system: System,
    name: str,
    equations: Callable[[LawInputs], Command],
    *,
    slots: Sequence[Slot],
    states: Mapping[str, ArrayLike] | None = None,
    measures_force: bool = False,
    tuning: Sequence[TuningParameter] = (),
    tracked: Sequence[tuple[str, str]] = (),
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    notes: Mapping[str, str] | None = None,
) -> Law:
    """Return the law that evaluates `equations` behind a guard and within limits.

    Args:
        system: the mechanism; a system with a mask gives the law one.
        name: a C identifier.
        equations: from safe inputs to the command.
        slots: slices of the reference.
        states: initial value of each state, by name.
        measures_force: the law takes the measured constraint force `f_c`.
        tuning: numbers that may change between ticks; `LawInputs.tuning` has them by name.
        tracked: (name, unit) of each entry of `Command.error`.
        ctrl_limits: (nu, 2) limits of u instead of the model's.
        period: sample time, s.
        notes: remarks for the report and for the README of the exported C.

    Raises:
        ProblemError: no actuators, a constraint that depends on time, a name that is no C
            identifier, a period that is not positive, limits that contradict each other.
    """
    _require(system, name)
    require_positive(period=period)
    limits = require_ranges(system, ctrl_limits, None).ctrl
    initial = {key: np.atleast_1d(np.asarray(x, dtype=float)) for key, x in (states or {}).items()}
    z0 = np.concatenate([np.zeros(0), *initial.values()])
    _require_tuning(tuning)
    symbols = _symbols(system, slots, len(tuning), z0.size, measures_force)
    at, valid = _guard_inputs(system, symbols, slots, tuning, initial)
    command = equations(at)
    z_next = ca.vertcat(ca.SX(0, 1), *(command.z_next.get(key, at.z[key]) for key in initial))
    outputs = _outputs(command, z_next, _finite_state(symbols["z"], z0), valid, limits)
    inputs = list(symbols.values())
    absent = [np.nan if key == "tuning" else 0.0 for key in symbols]  # left out: bad input
    function = ca.Function(
        name,
        inputs,
        list(outputs.values()),
        list(symbols),
        list(outputs),
        {"cse": True, "default_in": absent},
    )
    f_c = ca.SX.zeros(system.nv) if command.f_c is None else command.f_c
    desired = ca.Function(
        f"{name}_desired",
        inputs,
        [ca.densify(x) for x in (command.a, f_c, z_next)],
        list(symbols),
        ["a", "f_c", "z_next"],
        {"cse": True, "allow_duplicate_io_names": True},  # f_c measured, and f_c desired
    )
    controller = Controller(
        name=name,
        function=function,
        inputs=signals_in(system, slots, tuning, initial, symbols),
        outputs=signals_out(system, initial, command),
        u_min=limits[:, 0],
        u_max=limits[:, 1],
        z0=z0,
        period=period,
        source=system.name,
        statuses=LAW_STATUS.texts,
        safe_statuses=LAW_STATUS.safe,
        notes={"status": LAW_STATUS.summary()} | dict(notes or {}),
        monitor=_monitor(command, symbols),
        monitors=monitors(tracked) if command.error is not None else (),
        tuning=tuple(tuning),
    )
    return Law(system, controller, tuple(slots), desired)


def _require(system: System, name: str) -> None:
    if system.nu == 0:
        raise ProblemError(f"'{system.name}' has no actuators; expected at least one")
    if system.na:
        raise ProblemError(
            f"'{system.name}' has actuators with activation states, which this law does not know; "
            "use motors, or InverseDynamicsQP"
        )
    if system.timed:
        raise ProblemError(
            f"'{system.name}' has constraints that depend on time; the law has no clock. Give the "
            "moving quantity as a reference"
        )
    require_identifier("name", name)


def _require_tuning(tuning: Sequence[TuningParameter]) -> None:
    names = [parameter.name for parameter in tuning]
    if len(set(names)) != len(names):
        raise ProblemError(f"tuning parameters {', '.join(names)}; expected different names")
    for one in tuning:
        if not (np.isfinite(one.default) and one.lower <= one.default <= one.upper):
            raise ProblemError(
                f"tuning parameter '{one.name}': default {one.default} with bounds {one.lower} to "
                f"{one.upper}; expected lower <= default <= upper"
            )


def _symbols(
    system: System, slots: Sequence[Slot], n_tuning: int, nz: int, measures_force: bool
) -> dict[str, ca.SX]:
    sizes = {"q": system.nq, "v": system.nv}
    if measures_force:
        sizes["f_c"] = system.nv
    sizes["ref"] = sum(slot.size for slot in slots)
    if n_tuning:
        sizes["tuning"] = n_tuning
    if system.mask is not None:
        sizes["mask"] = len(equality_groups(system)[0])
    sizes["z"] = nz
    return {name: ca.SX.sym(name, size) for name, size in sizes.items()}


def _guard_inputs(
    system: System,
    symbols: Mapping[str, ca.SX],
    slots: Sequence[Slot],
    tuning: Sequence[TuningParameter],
    initial: Mapping[str, Array],
) -> tuple[LawInputs, ca.SX]:
    """Return inputs that are safe to compute with, and one where they are those of the caller."""
    quaternions = quaternion_places(system)
    valid = input_validity(symbols.values(), symbols["q"], quaternions)
    nominal = {name: ca.DM.zeros(value.numel()) for name, value in symbols.items()}
    if tuning:
        lower, upper = ([getattr(one, end) for one in tuning] for end in ("lower", "upper"))
        valid = ca.logic_and(valid, is_within(symbols["tuning"], lower, upper))
        nominal["tuning"] = ca.DM([one.default for one in tuning])
    if system.tree is not None:
        nominal["q"] = ca.DM(np.asarray(system.tree.q0, dtype=float))
    if "mask" in symbols:
        nominal["mask"] = ca.DM.ones(symbols["mask"].numel())
    safe = replace_invalid(valid, symbols, nominal)
    return LawInputs(
        q=normalise_quaternions(safe["q"], quaternions),
        v=safe["v"],
        ref=_split(safe["ref"], {slot.name: slot.size for slot in slots}),
        z=_split(safe["z"], {name: value.size for name, value in initial.items()}),
        rows=_rows_on(system, safe.get("mask")),
        f_c=safe.get("f_c", ca.SX.zeros(system.nv)),
        tuning=_split(safe.get("tuning", ca.SX(0, 1)), {one.name: 1 for one in tuning}),
    ), valid


def _finite_state(z: ca.SX, z0: Array) -> ca.SX:
    """Return the state as it came in, the initial one where it holds NaN or huge numbers."""
    return ca.if_else(ca.sum1(ca.fabs(z)) <= LARGEST_INPUT, z, ca.DM(z0)) if z0.size else z


def _split(column: ca.SX, sizes: Mapping[str, int]) -> dict[str, ca.SX]:
    parts, first = {}, 0
    for name, size in sizes.items():
        parts[name] = column[first : first + size, 0]
        first += size
    return parts


def _rows_on(system: System, mask: ca.SX | None) -> ca.SX:
    if mask is None:
        return ca.SX.ones(system.nc)
    sizes = equality_groups(system)[1]
    on = mask > MASK_ON
    return ca.vertcat(ca.SX(0, 1), *(on[k] for k, size in enumerate(sizes) for _ in range(size)))


def _outputs(
    command: Command, z_next: ca.SX, z: ca.SX, valid: ca.SX, limits: Array
) -> dict[str, ca.SX]:
    desired = ca.densify(command.u)
    residual = ca.densify(ca.vertcat(ca.SX(0, 1), *command.residual.values()))
    total = sum((ca.sum1(ca.fabs(part)) for part in (desired, z_next, residual)), ca.SX(0))
    bounded = total <= LARGEST_INPUT  # false for NaN
    usable = ca.logic_and(valid, bounded)
    limited = clamp(desired, limits[:, 0], limits[:, 1])
    safe = clamp(ca.SX.zeros(desired.numel()), limits[:, 0], limits[:, 1])
    saturated = is_saturated(desired, limited)
    status = ca.if_else(saturated, Status.SATURATED, Status.SOLVED)
    status = ca.if_else(command.attainable, status, Status.UNATTAINABLE)
    status = ca.if_else(valid, ca.if_else(bounded, status, Status.FAILED), Status.BAD_INPUT)
    return {
        "u": ca.densify(ca.if_else(usable, limited, safe)),
        "z_next": ca.densify(ca.if_else(usable, z_next, z)) if z.numel() else z,
        "status": status,
        "flags": ca.if_else(usable, Flag.SATURATED * saturated, 0),
        "residual": ca.densify(ca.if_else(usable, residual, 0)) if residual.numel() else residual,
    }


def _monitor(command: Command, symbols: Mapping[str, ca.SX]) -> ca.Function | None:
    if command.error is None:
        return None
    target = command.error * 0 if command.target is None else command.target
    return ca.Function(
        "monitor",
        list(symbols.values()),
        [ca.densify(target), ca.densify(command.error)],
        list(symbols),
        ["target", "error"],
    )
