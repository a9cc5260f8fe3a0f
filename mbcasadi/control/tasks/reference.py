"""A controller's reference by the names of its slices."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Signal
from mbcasadi.errors import ShapeError
from mbcasadi.shapes import real_array, require_name

Array = NDArray[np.float64]


def slot_slices(slots: Sequence[Slot]) -> dict[str, slice]:
    """Return the slice of each slot."""
    ends = np.cumsum([0, *(slot.size for slot in slots)]).tolist()
    return {slot.name: slice(ends[i], ends[i + 1]) for i, slot in enumerate(slots)}


def slot_signal(slots: Sequence[Slot]) -> Signal:
    """Return names and units of the reference."""
    names = tuple(f"{slot.name}.{row}" for slot in slots for row in slot.components)
    return Signal("ref", names, tuple(unit for slot in slots for unit in slot.units))


def fill_reference(slots: Sequence[Slot], values: Mapping[str, ArrayLike]) -> Array:
    """Return the reference with these slices, zero elsewhere; dots in names are written as `_`.

    Raises:
        UnknownNameError: no such slice; the message lists those there are.
        ShapeError: a slice of a wrong size.
    """
    named = {name.replace(".", "_"): place for name, place in slot_slices(slots).items()}
    ref = np.zeros(sum(slot.size for slot in slots))
    for name, value in values.items():
        require_name("slice of the reference", name, list(named))
        entries, place = real_array(f"reference {name}", value).ravel(), named[name]
        if entries.size != place.stop - place.start:
            raise ShapeError(
                f"reference {name} has {entries.size} entries, expected {place.stop - place.start}"
            )
        ref[place] = entries
    return ref
