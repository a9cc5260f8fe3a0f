"""A controller's reference by the names of its slices."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.control.tasks.task import Slot
from mbcasadi.errors import ShapeError
from mbcasadi.shapes import require_name

Array = NDArray[np.float64]


def slot_slices(slots: Sequence[Slot]) -> dict[str, slice]:
    """Return the slice of each slot."""
    ends = np.cumsum([0, *(slot.size for slot in slots)]).tolist()
    return {slot.name: slice(ends[i], ends[i + 1]) for i, slot in enumerate(slots)}


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
        given, place = np.asarray(value, dtype=float).ravel(), named[name]
        if given.size != place.stop - place.start:
            raise ShapeError(
                f"reference {name} has {given.size} entries, expected {place.stop - place.start}"
            )
        ref[place] = given
    return ref
