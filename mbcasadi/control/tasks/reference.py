"""A controller's reference by the names of its slices."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control.tasks.moving import Moving, fill_moving
from mbcasadi.control.tasks.task import Slot, Task
from mbcasadi.description import Signal
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import real_array, require_name
from mbcasadi.system import System

Array = NDArray[np.float64]
Slices = Mapping[str, ArrayLike]
"""Values of slices of the reference by their names; a name may have `_` in the place of dots."""

Values = Mapping[str, ArrayLike | Moving]
"""Slices, or poses and samples of motions by the names of their tasks."""

V = TypeVar("V")

Hold = Callable[[Array], Slices]
"""From a pose (nq,) to the slices that hold it at rest; those that are left out are zero."""


def slot_slices(slots: Sequence[Slot]) -> dict[str, slice]:
    """Return the slice of each slot."""
    ends = np.cumsum([0, *(slot.size for slot in slots)]).tolist()
    return {slot.name: slice(ends[i], ends[i + 1]) for i, slot in enumerate(slots)}


def slot_signal(slots: Sequence[Slot]) -> Signal:
    """Return names and units of the reference."""
    names = tuple(f"{slot.name}.{row}" for slot in slots for row in slot.components)
    return Signal("ref", names, tuple(unit for slot in slots for unit in slot.units))


def fill_reference(
    slots: Sequence[Slot], values: Values, default: ArrayLike | None = None
) -> Array:
    """Return the reference with these slices, the default or zero elsewhere.

    Raises:
        UnknownNameError: no such slice; the message lists those there are.
        ShapeError: a slice of a wrong size.
        ProblemError: a pose for what has none.
    """
    places = slot_slices(slots)
    names = slice_names(places)
    size = sum(slot.size for slot in slots)
    ref = np.zeros(size) if default is None else np.array(default, dtype=float)
    for name, value in values.items():
        if isinstance(value, Moving):
            fill_moving(ref, slots, name, value)
            continue
        require_name("slice of the reference", name, list(places), also=names)
        entries, place = real_array(f"reference {name}", value).ravel(), places[names[name]]
        if entries.size != place.stop - place.start:
            raise ShapeError(
                f"reference {name} has {entries.size} entries, expected {place.stop - place.start}"
            )
        ref[place] = entries
    return ref


def slice_names(places: Mapping[str, slice]) -> dict[str, str]:
    """Return the name of the slice that each accepted name stands for."""
    return {name.replace(".", "_"): name for name in places} | {name: name for name in places}


def merged(values: Mapping[str, V] | None, slices: Mapping[str, V]) -> Mapping[str, V]:
    """Return the slices of a mapping and of keywords together.

    Raises:
        ProblemError: a slice is given by both.
    """
    given = dict(values or {})
    for name in slices:
        twice = [each for each in given if each.replace(".", "_") == name.replace(".", "_")]
        if twice:
            raise ProblemError(f"slice {twice[0]!r} of the reference is given twice; expected once")
    return given | dict(slices)


def by_full_name(values: Slices, names: Sequence[str]) -> Slices:
    """Return slices by their full names; unknown names are left as they are."""
    full = slice_names(dict.fromkeys(names, slice(0)))
    return {full.get(name, name): value for name, value in values.items()}


def hold_by_task(task: Task, system: System) -> Hold:
    """Return the slices by which a task holds a pose at rest, as a function of the pose."""

    def hold(q: Array) -> Slices:
        return {f"{task.name}.{key}": x for key, x in task.hold_reference(system, q).items()}

    return hold
