"""A `ca.Function` in the loop, its inputs mapped by name, or by position where that is plain."""

from collections.abc import Mapping

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.status import OUTPUTS
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop.compiled_law import KNOWN_INPUTS, Caller
from mbcasadi.validation.closed_loop.controllers.description import (
    control_of,
    describe,
    sizes_of,
)
from mbcasadi.validation.closed_loop.runnable import Runnable, Tick

Array = NDArray[np.float64]

ORDERS = (("q", "v"), ("t", "q", "v"), ("q", "v", "ref"), ("q", "v", "ref", "t"))
"""Orders of inputs that are recognised without names, by their sizes."""


class CasadiFunction(Runnable):
    """A Function of the user, evaluated by CasADi as it is: no C is generated.

    Attributes:
        controller: names, sizes, limits and period.
        function: with the loop's names.
    """

    def __init__(self, given: ca.Function, plant: Plant, period: float) -> None:
        self.function = renamed(given, plant)
        reported = ("status",) if "status" in self.function.name_out() else ()
        self.controller = describe(given.name(), self.function, plant, period, reported)
        self._who = f"the Function {given.name()!r}"

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return "a CasADi Function"

    def start(self, plant: Plant) -> Tick:
        """Return what calls the Function."""
        return CheckedCaller(self.function, plant.nu, self._who)


class CheckedCaller(Caller):
    """Calls a Function that others wrote: its control is checked."""

    def __init__(self, function: ca.Function, nu: int, who: str) -> None:
        super().__init__(function)
        self._nu, self._who, self._ticks = nu, who, 0

    def __call__(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return all outputs by name.

        Raises:
            ControllerError: u is not finite.
        """
        outputs = super().__call__(values)
        control_of(outputs["u"], self._nu, float(values["t"][0]), self._who)
        return outputs


def renamed(given: ca.Function, plant: Plant) -> ca.Function:
    """Return a Function with the names of a closed loop.

    Raises:
        ProblemError: neither names nor sizes say which input is which; no output is u; sizes that
            are not the plant's.
    """
    inputs, outputs = _input_names(given, plant), _output_names(given, plant)
    if inputs == given.name_in() and outputs == given.name_out():
        return given
    symbols = [ca.MX.sym(name, given.sparsity_in(i)) for i, name in enumerate(inputs)]
    options = {"allow_free": False}
    return ca.Function(given.name(), symbols, given.call(symbols), inputs, outputs, options)


def _input_names(given: ca.Function, plant: Plant) -> list[str]:
    names = given.name_in()
    sizes = [given.numel_in(i) for i in range(given.n_in())]
    if names and all(name in KNOWN_INPUTS for name in names):
        _require_sizes(given, names, sizes, plant)
        return list(names)
    known = sizes_of(plant)
    fitting = [
        order
        for order in ORDERS
        if len(order) == len(names)
        and all(known.get(n, size) == size for n, size in zip(order, sizes, strict=True))
        and all(own not in KNOWN_INPUTS or own == n for own, n in zip(names, order, strict=True))
    ]
    if len(fitting) == 1:
        return list(fitting[0])
    found = ", ".join(f"{n} ({size},)" for n, size in zip(names, sizes, strict=True))
    reason = "which may be " + " or ".join(map(str, fitting)) if fitting else "which fit no order"
    raise ProblemError(
        f"the Function {given.name()!r} takes {found or 'nothing'}, {reason}; the plant has "
        f"q ({plant.nq},) and v ({plant.nv},): name the inputs, some of {', '.join(KNOWN_INPUTS)}"
    )


def _require_sizes(given: ca.Function, names: list[str], sizes: list[int], plant: Plant) -> None:
    known = sizes_of(plant)
    for name, size in zip(names, sizes, strict=True):
        if known.get(name, size) != size:
            raise ProblemError(
                f"the Function {given.name()!r} takes {name} of size {size}, but the plant has "
                f"{known[name]}; it was made for another model"
            )
    if ("z" in names) != ("z_next" in given.name_out()):
        raise ProblemError(
            f"the Function {given.name()!r} has an input z or an output z_next; expected both, for "
            "a state, or none"
        )


def _output_names(given: ca.Function, plant: Plant) -> list[str]:
    names = list(given.name_out())
    if "u" not in names and len(names) == 1:
        names = ["u"]
    if "u" not in names:
        raise ProblemError(
            f"the Function {given.name()!r} has the outputs {', '.join(names) or 'none'}; expected "
            f"one of them named u, the others any of {', '.join(OUTPUTS[1:])}"
        )
    size = given.numel_out(names.index("u"))
    if size != plant.nu:
        raise ProblemError(
            f"the Function {given.name()!r} gives u of size {size}, but the plant has {plant.nu} "
            "actuators"
        )
    return names
