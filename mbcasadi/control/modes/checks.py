"""What modes and transitions name, against the law that they belong to."""

from collections.abc import Iterator

import casadi as ca
import numpy as np

from mbcasadi.control.modes.machine import GIVEN, Machine
from mbcasadi.control.modes.mode import ANY, ControlMode, Transition
from mbcasadi.control.tick.tuning import NO_LIMIT
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError


def require_known(machine: Machine) -> None:
    """Raise `ProblemError` with all that a law does not know of modes and transitions."""
    wrong = [] if machine.modes else ["no mode; expected one at least"]
    for name, mode in machine.modes.items():
        wrong += [f"mode {name!r}: {text}" for text in _wrong_in_mode(machine, mode)]
    wrong += _never_faded(machine)
    for each in machine.transitions:
        where = f"transition to {each.target!r}"
        wrong += [f"{where}: {text}" for text in _wrong_in_transition(machine, each)]
    stages = machine.law.stages
    prepare = None if stages is None else stages.prepare
    if prepare is not None and {*prepare.name_in()} & {*GIVEN, *machine.measured}:
        wrong.append(f"law {machine.law.name!r} has a first phase, which takes what modes change")
    if wrong:
        raise ProblemError("\n".join(wrong))


def _wrong_in_mode(machine: Machine, mode: ControlMode) -> Iterator[str]:
    entries = {entry.name: entry for entry in machine.law.tuning}
    for kind, given, valid in (
        ("entry of tuning", mode.tuning, entries),
        ("contact or constraint", mode.mask, machine.mask_names),
        ("slice of the reference", mode.reference, machine.slices),
    ):
        unknown = [each for each in given if each not in valid]
        if unknown:
            yield f"no {kind} {', '.join(unknown)}; it has {', '.join(valid) or 'none'}"
    for key, value in mode.tuning.items():
        if key in entries and not entries[key].lower <= value <= entries[key].upper:
            yield f"{key} = {value}; expected {entries[key].lower:g} to {entries[key].upper:g}"
    for key, values in mode.reference.items():
        numbers = np.asarray(values, dtype=float)
        place = machine.slices.get(key, slice(0, numbers.size))
        if numbers.size != place.stop - place.start:
            yield f"{key} has {numbers.size} numbers, expected {place.stop - place.start}"
        if not np.all(np.isfinite(numbers)):
            yield f"{key} = {numbers.tolist()}; expected finite numbers"


def _never_faded(machine: Machine) -> Iterator[str]:
    """Return entries whose default means none, which some modes change and others do not."""
    for entry in machine.law.tuning:
        silent = [name for name, mode in machine.modes.items() if entry.name not in mode.tuning]
        if entry.default >= NO_LIMIT and 0 < len(silent) < len(machine.modes):
            yield (
                f"mode {silent[0]!r}: {entry.name} is none by default, which nothing fades to; "
                "give it in every mode"
            )


def _wrong_in_transition(machine: Machine, each: Transition) -> Iterator[str]:
    law = machine.law
    for end in [each.target] if each.source == ANY else [each.source, each.target]:
        if end not in machine.modes:
            yield f"no mode {end!r}; there are {', '.join(machine.modes)}"
    read = [name for name in law.function.name_in() if name not in ("z", *GIVEN)]
    if isinstance(each.when, str) and entry_of(law, each.when) is None:
        yield f"no entry {each.when!r}; expected <input>.<entry> of {', '.join(read)}"
    if isinstance(each.when, ca.Function):
        fits = each.when.n_out() == 1 and each.when.numel_out(0) == 1
        if not fits or not {*each.when.name_in()} <= {*read}:
            yield f"{each.when}; expected one number of some of {', '.join(read)}"


def entry_of(law: Controller, text: str) -> tuple[str, int] | None:
    """Return the input and the place of an entry such as "q.elbow"."""
    name, _, component = text.partition(".")
    signal = next((s for s in law.inputs if s.name == name and name not in ("z", *GIVEN)), None)
    if signal is None or component not in signal.components:
        return None
    return name, signal.components.index(component)
