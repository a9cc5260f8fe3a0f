"""The run of the example program: inputs that both sides compute, and the control in Python.

Every `len(u)` ticks the state z starts again from z0, so that the program compares all its ticks.
Measured inputs but q and act move around the start by a wave in multiples of 2⁻⁹, which is exact in
any precision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.c_interface import CLaw, Port
from mbcasadi.description.controller import HANDED, INPUTS
from mbcasadi.shapes import column, require_name

Array = NDArray[np.float64]

TICKS = 1000
"""Of the example program."""

RECORDED, EFFORT = 100, 20_000_000
"""Most recorded ticks, and operations that may go into them."""

STILL = ("q", "act", *HANDED, *INPUTS)
"""Inputs that stay as they are; quaternions and lengths of muscles have no waves."""

WAVE, STEP = 17, 512
"""Period of the wave in ticks, and the inverse of its unit."""

CLOSE = 1e-6
"""Difference of a control that counts as equal, as a share of its largest value in the record: the
Function's solver and that of the C agree to 1e-9 as a rule."""

CLOSE_FLOAT = 0.05
"""The same for exports in single precision, as a share of the largest of all controls: their QPs
are regularised more, which distributes forces differently."""

LEAST = 1e-6
"""Size of a control, in its unit, below which it is compared as if it had this size: what rounding
leaves of zero."""


@dataclass(frozen=True)
class ExampleRun:
    """What the example program runs on and what it compares.

    Attributes:
        inputs: start of every input, by name.
        waves: names of the inputs that move.
        output: name of the output that is compared.
        values: (ticks, size) of this output; of size 0 where it is not finite or not defined.
        tolerance: (size,) largest difference that counts as equal.
    """

    inputs: dict[str, Array]
    waves: tuple[str, ...]
    output: str
    values: Array
    tolerance: Array


def example_inputs(
    inputs: Sequence[Port], defaults: Mapping[str, ArrayLike], example: Mapping[str, ArrayLike]
) -> dict[str, Array]:
    """Return a value for every input: `example`, then defaults of the law, then zeros.

    Raises:
        UnknownNameError: `example` names an input that the law does not have.
        ShapeError: a value has another size than its input.
    """
    names = [p.name for p in inputs]
    for name in example:
        require_name("input", name, names)
    return {
        port.name: column(port.name, example[port.name], port.size)
        if port.name in example
        else np.array(defaults.get(port.name, np.full(port.size, port.default)))
        for port in inputs
    }


def example_run(
    law: CLaw, function: ca.Function, inputs: dict[str, Array], operations: int
) -> ExampleRun:
    """Run the Function over the example's inputs.

    Args:
        law: what is exported.
        function: the whole law.
        inputs: start of every input.
        operations: of one tick.
    """
    names = [p.name for p in law.outputs]
    output = "u" if "u" in names else names[0]
    has_waves = law.nu > 0
    waves = tuple(p.name for p in law.inputs if has_waves and p.name not in STILL)
    ticks = max(2, min(RECORDED, EFFORT // max(1, operations))) if has_waves else 1
    patterns = {p.name: p.sparsity for p in law.inputs}
    values, at = [], dict(inputs)
    for tick in range(ticks):
        moved = {name: inputs[name] + wave(tick, inputs[name].size) for name in waves}
        if "t" in inputs and law.period is not None:
            moved["t"] = np.full(inputs["t"].size, tick * law.period)
        given = {name: ca.DM(patterns[name], x) for name, x in (at | moved).items()}
        try:
            found = function(**given)
        except RuntimeError:  # of CasADi: not defined at these inputs
            return ExampleRun(inputs, waves, output, np.zeros((1, 0)), np.zeros(0))
        values.append(np.array(ca.DM(found[output]).nonzeros()))
        if "z" in at and "z_next" in found:
            at["z"] = np.array(found["z_next"]).ravel()
    rows = np.array(values).reshape(ticks, -1)
    if not np.isfinite(rows).all():
        rows = rows[:1, :0]
    largest = np.maximum(LEAST, np.abs(rows).max(axis=0, initial=0.0))
    tolerance = CLOSE * largest
    if law.real == "float":
        tolerance = np.full(largest.size, CLOSE_FLOAT * largest.max(initial=LEAST))
    return ExampleRun(inputs, waves, output, rows, tolerance)


def wave(tick: int, size: int) -> Array:
    """Return (size,) what is added to a moving input: a wave of its own for each entry."""
    return ((tick * (np.arange(size) + 3)) % WAVE - WAVE // 2) / STEP
