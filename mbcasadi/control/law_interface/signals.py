"""Names and units of a law's inputs and outputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca

from mbcasadi.control.law_interface.law import Array, Command
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Signal, TuningParameter
from mbcasadi.system import System
from mbcasadi.system.coordinates import coordinates, equality_groups, rates


def monitors(tracked: Sequence[tuple[str, str]]) -> tuple[Signal, ...]:
    """Return names and units of target and error, for reports."""
    names, units = tuple(name for name, _ in tracked), tuple(unit for _, unit in tracked)
    return Signal("target", names, units), Signal("error", names, units)


def signals_in(
    system: System,
    slots: Sequence[Slot],
    tuning: Sequence[TuningParameter],
    initial: Mapping[str, Array],
    raw: Mapping[str, ca.SX],
) -> tuple[Signal, ...]:
    """Return the components of each input, in the Function's order.

    Args:
        system: the mechanism.
        slots: slices of the reference.
        tuning: entries of the input `tuning`.
        initial: initial value of each state, by name.
        raw: the inputs by name, in the Function's order.
    """
    speeds = rates(system)
    known = {
        "q": coordinates(system),
        "v": speeds,
        "f_c": _plain("f_c", speeds.components, "N or N m"),
        "ref": Signal(
            "ref",
            tuple(f"{slot.name}.{one}" for slot in slots for one in slot.components),
            tuple(unit for slot in slots for unit in slot.units),
        ),
        "tuning": Signal(
            "tuning", tuple(one.name for one in tuning), tuple(one.unit for one in tuning)
        ),
        "mask": _plain("mask", equality_groups(system)[0]),
        "z": _state_signal("z", initial),
    }
    return tuple(known[name] for name in raw)


def signals_out(
    system: System, initial: Mapping[str, Array], command: Command
) -> tuple[Signal, ...]:
    """Return the components of each output, in the Function's order."""
    residual = _named(command.residual)
    return (
        _plain("u", system.actuator_names),
        _state_signal("z_next", initial),
        _plain("status", ("status",)),
        _plain("flags", ("flags",)),
        _plain("residual", residual),
    )


def _state_signal(name: str, initial: Mapping[str, Array]) -> Signal:
    return _plain(name, tuple(f"{key}.{i}" for key, x in initial.items() for i in range(x.size)))


def _named(parts: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{key}.{i}" for key, part in parts.items() for i in range(part.numel()))


def _plain(name: str, components: tuple[str, ...], unit: str = "") -> Signal:
    return Signal(name, components, (unit,) * len(components))
