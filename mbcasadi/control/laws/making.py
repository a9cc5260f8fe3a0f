"""From equations of a safe state to one Function, with an input guard and limits.

A law gives its equations as expressions of a safe state; `make_law` turns them into one named
Function that is exported to C unchanged. Its signature is

    (q, v, [f_c], ref, [mask], z) → (u, z_next, status, residual)

- `ref`: the references, in the slices that `Law.reference` names.
- `f_c`: (nv,) measured constraint force, where the law uses one.
- `mask`: one entry for each constraint of the model, above one half for on, where the system has a
  mask.
- `status`: 0 the law's own control; 1 u was clipped to its limits; 2 the law's own test failed
  (its desired motion or force is unattainable; u is the nearest); 3 bad input (NaN, infinity), u
  is the safe output; 4 the arithmetic failed, u is the safe output.
- `residual`: the parts that are not attained, in the law's own terms.

u never leaves its limits, whatever the inputs are. The safe output is zero control within them,
and the state keeps its value.
"""

from collections.abc import Callable, Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.guard import LARGEST_INPUT, LEAST_QUAT2, MASK_ON, clamped, quaternion_places
from mbcasadi.control.laws.law import Array, At, Command, Law
from mbcasadi.control.laws.signals import monitors, signals_in, signals_out
from mbcasadi.control.setup import equality_groups, require_positive, require_ranges
from mbcasadi.control.tasks import Slot
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.system import System

OK, SATURATED, UNATTAINABLE, BAD_INPUT, FAILED = range(5)
STATUSES = (
    "as the law has it",
    "cut to its limits",
    "what is asked for cannot be had, nearest output",
    "bad input, safe output",
    "failed, safe output",
)
SAFE_STATUSES = (BAD_INPUT, FAILED)
CUT_TOL = 1e-9  # relative difference of u and its limited value that counts as clipped


def make_law(
    system: System,
    name: str,
    equations: Callable[[At], Command],
    *,
    slots: Sequence[Slot],
    states: Mapping[str, ArrayLike] | None = None,
    measures_force: bool = False,
    tracked: Sequence[tuple[str, str]] = (),
    ctrl_limits: ArrayLike | None = None,
    period: float = 1e-3,
    notes: Mapping[str, str] | None = None,
) -> Law:
    """Return the law that computes `equations` behind an input guard and within limits.

    Args:
        system: the mechanism; a system with a mask gives the law one.
        name: a C identifier.
        equations: from safe inputs to the law's command.
        slots: slices of the reference.
        states: initial value of each state, by name.
        measures_force: the law takes the measured constraint force `f_c`.
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
    raw = _symbols(system, slots, z0.size, measures_force)
    at, valid = _guarded(system, raw, slots, initial)
    command = equations(at)
    z_next = ca.vertcat(ca.SX(0, 1), *(command.z_next.get(key, at.z[key]) for key in initial))
    outputs = _outputs(command, z_next, _kept(raw["z"], z0), valid, limits)
    inputs = list(raw.values())
    function = ca.Function(
        name, inputs, list(outputs.values()), list(raw), list(outputs), {"cse": True}
    )
    f_c = ca.SX.zeros(system.nv) if command.f_c is None else command.f_c
    desired = ca.Function(
        f"{name}_desired",
        inputs,
        [ca.densify(x) for x in (command.a, f_c, z_next)],
        list(raw),
        ["a", "f_c", "z_next"],
        {"cse": True, "allow_duplicate_io_names": True},  # f_c measured, and f_c desired
    )
    controller = Controller(
        name=name,
        function=function,
        inputs=signals_in(system, slots, initial, raw),
        outputs=signals_out(system, initial, command),
        u_min=limits[:, 0],
        u_max=limits[:, 1],
        z0=z0,
        period=period,
        source=system.name,
        statuses=STATUSES,
        safe_statuses=SAFE_STATUSES,
        notes={"status": "; ".join(f"{i} {word}" for i, word in enumerate(STATUSES))}
        | dict(notes or {}),
        monitor=_monitor(command, raw),
        monitors=monitors(tracked) if command.error is not None else (),
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
    if not name.isidentifier():
        raise ProblemError(f"name {name!r}; expected a C identifier")


def _symbols(
    system: System, slots: Sequence[Slot], nz: int, measures_force: bool
) -> dict[str, ca.SX]:
    sizes = {"q": system.nq, "v": system.nv}
    if measures_force:
        sizes["f_c"] = system.nv
    sizes["ref"] = sum(slot.size for slot in slots)
    if system.mask is not None:
        sizes["mask"] = len(equality_groups(system)[0])
    sizes["z"] = nz
    return {name: ca.SX.sym(name, size) for name, size in sizes.items()}


def _guarded(
    system: System,
    raw: Mapping[str, ca.SX],
    slots: Sequence[Slot],
    initial: Mapping[str, Array],
) -> tuple[At, ca.SX]:
    """Return inputs that are safe to compute with, and one where they are the given ones."""
    size = sum((ca.sum1(ca.fabs(value)) for value in raw.values()), ca.SX(0))
    valid = size <= LARGEST_INPUT
    for place in quaternion_places(system):
        valid = ca.logic_and(valid, ca.sumsqr(raw["q"][place : place + 4]) >= LEAST_QUAT2)
    q0 = np.zeros(system.nq) if system.tree is None else np.asarray(system.tree.q0, dtype=float)
    nominal = {"q": ca.DM(q0), "mask": ca.DM.ones(raw["mask"].numel()) if "mask" in raw else None}
    safe: dict[str, ca.SX] = {}
    for name, value in raw.items():
        instead = nominal.get(name)
        rest = ca.DM.zeros(value.numel()) if instead is None else instead
        safe[name] = ca.densify(ca.if_else(valid, value, rest)) if value.numel() else value
    q = ca.SX(safe["q"])
    for place in quaternion_places(system):
        quat = q[place : place + 4]
        q[place : place + 4] = quat / ca.sqrt(ca.sumsqr(quat))
    f_c = safe.get("f_c", ca.SX.zeros(system.nv))
    return At(
        q=q,
        v=safe["v"],
        ref=_sliced(safe["ref"], {slot.name: slot.size for slot in slots}),
        z=_sliced(safe["z"], {name: value.size for name, value in initial.items()}),
        rows=_rows_on(system, safe.get("mask")),
        f_c=f_c,
    ), valid


def _kept(z: ca.SX, z0: Array) -> ca.SX:
    """Return the given state, or the initial one where it holds NaN or huge numbers."""
    return ca.if_else(ca.sum1(ca.fabs(z)) <= LARGEST_INPUT, z, ca.DM(z0)) if z0.size else z


def _sliced(column: ca.SX, sizes: Mapping[str, int]) -> dict[str, ca.SX]:
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
    wanted = ca.densify(command.u)
    residual = ca.densify(ca.vertcat(ca.SX(0, 1), *command.residual.values()))
    total = sum((ca.sum1(ca.fabs(part)) for part in (wanted, z_next, residual)), ca.SX(0))
    sound = total <= LARGEST_INPUT  # false for NaN
    good = ca.logic_and(valid, sound)
    limited = clamped(wanted, limits[:, 0], limits[:, 1])
    safe = clamped(ca.SX.zeros(wanted.numel()), limits[:, 0], limits[:, 1])
    cut = ca.sum1(ca.fabs(wanted - limited)) > CUT_TOL * (1 + ca.sum1(ca.fabs(limited)))
    status = ca.if_else(command.attainable, ca.if_else(cut, SATURATED, OK), UNATTAINABLE)
    status = ca.if_else(valid, ca.if_else(sound, status, FAILED), BAD_INPUT)
    return {
        "u": ca.densify(ca.if_else(good, limited, safe)),
        "z_next": ca.densify(ca.if_else(good, z_next, z)) if z.numel() else z,
        "status": status,
        "residual": ca.densify(ca.if_else(good, residual, 0)) if residual.numel() else residual,
    }


def _monitor(command: Command, raw: Mapping[str, ca.SX]) -> ca.Function | None:
    if command.error is None:
        return None
    target = command.error * 0 if command.target is None else command.target
    return ca.Function(
        "monitor",
        list(raw.values()),
        [ca.densify(target), ca.densify(command.error)],
        list(raw),
        ["target", "error"],
    )
