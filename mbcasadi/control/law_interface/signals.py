"""Names and units of a law's inputs and outputs."""

from collections.abc import Mapping, Sequence

import casadi as ca

from mbcasadi.control.law_interface.law import Array, Command
from mbcasadi.control.tasks.reference import slot_signal
from mbcasadi.control.tasks.task import Slot
from mbcasadi.control.tick.inputs import input_signals
from mbcasadi.description import Signal, TuningParameter
from mbcasadi.system import System
from mbcasadi.system.coordinates import (
    RATE_UNITS,
    controls,
    equality_groups,
    rate_names,
    rates,
    unitless_signal,
)


def monitors(tracked: Sequence[tuple[str, str]]) -> tuple[Signal, ...]:
    """Return names and units of target and error, for reports."""
    names, units = tuple(name for name, _ in tracked), tuple(unit for _, unit in tracked)
    return Signal("target", names, units), Signal("error", names, units)


def deviations(system: System) -> list[tuple[str, str]]:
    """Return name and unit of each entry of `q_0 ⊖ q`."""
    names = rate_names(system)
    if system.tree is None:
        return [(name, "") for name in names]
    units = [unit for joint in system.tree.joints for unit in RATE_UNITS[joint.kind]]
    return list(zip(names, units, strict=True))


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
    joints, state = rates(system).components, _state_signal("z", initial).components
    mask_names = equality_groups(system)[0]
    signals = input_signals(system, slot_signal(slots), tuning, mask_names, state)
    signals["f_c"] = Signal("f_c", joints, ("N or N m",) * len(joints))
    return tuple(signals[name] for name in raw)


def signals_out(
    system: System, initial: Mapping[str, Array], command: Command
) -> tuple[Signal, ...]:
    """Return the components of each output, in the Function's order."""
    residual = _part_names(command.residual)
    return (
        controls(system),
        _state_signal("z_next", initial),
        unitless_signal("status", ("status",)),
        unitless_signal("flags", ("flags",)),
        unitless_signal("residual", residual),
    )


def _state_signal(name: str, initial: Mapping[str, Array]) -> Signal:
    return unitless_signal(
        name, tuple(f"{key}.{i}" for key, x in initial.items() for i in range(x.size))
    )


def _part_names(residuals: Mapping[str, ca.SX]) -> tuple[str, ...]:
    return tuple(f"{key}.{i}" for key, part in residuals.items() for i in range(part.numel()))


def with_components(
    signals: Sequence[Signal], extra: Mapping[str, tuple[str, ...]]
) -> tuple[Signal, ...]:
    """Return the signals, some with further components without a unit."""
    extended = []
    for signal in signals:
        added = extra.get(signal.name, ())
        names = (*signal.components, *added)
        extended.append(Signal(signal.name, names, (*signal.units, *[""] * len(added))))
    return tuple(extended)
