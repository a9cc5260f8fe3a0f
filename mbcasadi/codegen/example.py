"""The inputs on which an export's example runs."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.c_interface import Law, find_port
from mbcasadi.description.controller import defaults_of
from mbcasadi.shapes import column, require_name


def example_inputs(
    law: Law, example: Mapping[str, ArrayLike] | None
) -> dict[str, NDArray[np.float64]]:
    """Return a value for every input: `example`, then z0 and entries, then the Function's defaults.

    Raises:
        UnknownNameError: `example` names an input that the law does not have.
        ShapeError: a value has another size than its input.
    """
    examples = dict(example or {})
    for name in examples:
        require_name("input", name, [p.name for p in law.inputs])
    values = {}
    for port in law.inputs:
        if port.name in examples:
            values[port.name] = column(port.name, examples[port.name], port.size)
        elif port.name == "z" and law.z0 is not None:
            values[port.name] = law.z0
        elif port.name in law.entries:
            values[port.name] = defaults_of(law.entries[port.name])
        else:
            values[port.name] = np.full(port.size, port.default)
    return values


def start_inputs(
    law: Law, example: Mapping[str, ArrayLike] | None
) -> dict[str, NDArray[np.float64]]:
    """Return those of `example_inputs`, where a mask that is not given has all rows on.

    That is what a closed loop starts with.

    Raises:
        UnknownNameError, ShapeError: as in `example_inputs`.
    """
    mask = find_port(law.inputs, "mask")
    on = {} if mask is None else {"mask": np.ones(mask.size)}
    return example_inputs(law, on | dict(example or {}))
