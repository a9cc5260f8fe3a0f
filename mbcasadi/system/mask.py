"""The mask of a system's rows by the names of contacts and equality constraints."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ShapeError
from mbcasadi.shapes import real_array, require_name
from mbcasadi.system.system import System


@checked
def row_mask(system: System, on: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    """Return the mask (nc,) of the rows, or (N, nc) of N samples.

    Args:
        system: the mechanism.
        on: one for on, else zero, by the names of contacts of `with_contacts`, of equality
            constraints or of single rows: a number, or one for each sample (N,). Others are on.
            Contacts of one body switch together.

    Raises:
        UnknownNameError: no such contact or constraint.
        ShapeError: schedules of different lengths, or numbers that are neither zero nor one.
    """
    rows = system.constraint_names
    own = len(rows) - len(system.row_owners)
    names_of = [{row, *owners} for row, owners in zip(rows[own:], system.row_owners, strict=True)]
    names_of = [*({row} for row in rows[:own]), *names_of]
    given = {name: real_array(name, value) for name, value in on.items()}
    lengths = sorted({array.size for array in given.values() if array.ndim})
    if len(lengths) > 1 or any(array.ndim > 1 for array in given.values()):
        raise ShapeError(f"schedules of {lengths} samples; expected numbers, or one length for all")
    mask = np.ones((lengths[0] if lengths else 1, len(rows)))
    for name, array in given.items():
        require_name("contact or constraint", name, sorted(set[str]().union(*names_of)))
        if not np.all(np.isin(array, (0.0, 1.0))):
            raise ShapeError(f"{name} = {array}; expected ones and zeros")
        places = [k for k, names in enumerate(names_of) if name in names]
        mask[:, places] = np.reshape(array, (-1, 1))
    return mask if lengths else mask[0]
