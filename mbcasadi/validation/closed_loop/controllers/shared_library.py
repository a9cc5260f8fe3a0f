"""A shared library of others with a C signature, in the loop, called through `ctypes`.

The function has this form, with the arguments in the order of `inputs` and u behind them:

    void f(double t, const double *q, const double *v, double *u);

`t` is a number; all others are arrays of doubles.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ControllerError, ExportError, ProblemError
from mbcasadi.plant import Plant
from mbcasadi.shapes import require_choice, require_whole
from mbcasadi.validation.closed_loop.controllers.description import (
    CheckedTick,
    OtherController,
    control_of,
    describe,
    sizes_of,
)
from mbcasadi.validation.closed_loop.controllers.python_callable import AnswerFunction

Array = NDArray[np.float64]

GUARD = 16  # doubles behind each array, by which a write beyond its end is found
GUARD_VALUE = -6.2774385622041925e66
"""What the guard holds: no control is this number."""


INPUTS = ("t", "q", "v", "act", "ref")


@dataclass(frozen=True)
class SharedLibrary:
    """A function of a shared library, for `validate` and `campaign`; `shared_library` opens it.

    Attributes:
        path: of the library.
        symbol: name of the function.
        inputs: its arguments before u, in order, of `t q v act ref`.
        ref_size: numbers of `ref`, where it is one of the inputs.
        reset: name of a function `void reset(void)`, called before each run; "" for none.
    """

    path: Path
    symbol: str
    inputs: tuple[str, ...] = ("q", "v")
    ref_size: int = 0
    reset: str = ""

    def __post_init__(self) -> None:
        require_fields(self)
        for name in self.inputs:
            require_choice("inputs", name, INPUTS)
        if len(set(self.inputs)) < len(self.inputs):
            raise ProblemError(f"inputs = {self.inputs}; expected each name once")
        require_whole(0, ref_size=self.ref_size)
        if ("ref" in self.inputs) != (self.ref_size > 0):
            raise ProblemError(
                f"inputs = {self.inputs} and ref_size = {self.ref_size}; expected a size where "
                "there is an input 'ref', else 0"
            )
        for name in (self.symbol, *filter(None, [self.reset])):
            symbol_of(self.path, name)


def symbol_of(path: Path, name: str) -> "ctypes._NamedFuncPointer":
    """Return a function of a library.

    Raises:
        ExportError: no such file, no library for this machine, or no such symbol.
    """
    if not path.is_file():
        raise ExportError(f"{path}: no such file; expected a shared library")
    try:
        library = ctypes.CDLL(str(path.absolute()))
    except OSError as error:
        raise ExportError(
            f"{path} cannot be loaded: {error}; expected a shared library for this machine"
        ) from error
    try:
        return getattr(library, name)  # type: ignore[no-any-return]
    except (AttributeError, ValueError):
        raise ExportError(
            f"{path} has no symbol {name!r}; expected a function with C linkage "
            '(extern "C" in C++), exported'
        ) from None


@checked
def shared_library(
    path: str | Path,
    symbol: str,
    inputs: Sequence[str] = ("q", "v"),
    *,
    ref_size: int = 0,
    reset: str = "",
) -> SharedLibrary:
    """Return a function of a shared library as a controller for `validate`.

    It is called as `symbol(inputs..., u)`: `t` as a `double`, all others as `const double *`, in
    this order, then `double *u` (nu,), which it writes.

    Args:
        path: of the library: `.so`, `.dylib` or `.dll`.
        symbol: name of the function, with C linkage.
        inputs: its arguments before u, of `t`, `q` (nq,), `v` (nv,), `act` (na,), `ref`.
        ref_size: numbers of `ref`, where it is one of the inputs.
        reset: name of a function `void reset(void)` that returns the library's own state to its
            start, called before each run.

    Raises:
        ExportError: no such library or symbol.
        ProblemError: an input of another name, or `ref` without its size.
    """
    return SharedLibrary(Path(path), symbol, tuple(inputs), ref_size, reset)


def library_function(library: SharedLibrary, plant: Plant, period: float) -> OtherController:
    """Return a function of a shared library on one plant; it is reset before each run.

    An answer that is not finite or not written, or beside which something was written, raises
    ControllerError.
    """
    nu, who = plant.nu, f"the function {library.symbol!r} of {library.path.name}"
    known = sizes_of(plant) | {"ref": library.ref_size}
    sizes = {name: known[name] for name in library.inputs}
    function = symbol_of(library.path, library.symbol)
    function.restype = None

    def outputs(values: Mapping[str, Array]) -> dict[str, Array]:
        t = float(values["t"][0]) if "t" in values else float("nan")
        arrays = {n: _guarded(values[n]) for n in sizes if n != "t"}
        u = _guarded(np.full(nu, np.nan))
        arguments = [ctypes.c_double(t) if n == "t" else _pointer(arrays[n]) for n in sizes]
        function(*arguments, _pointer(u))
        for name, array in {**arrays, "u": u}.items():
            if (array[-GUARD:] != GUARD_VALUE).any():
                raise ControllerError(
                    f"{who} wrote beyond the {array.size - GUARD} numbers of {name}; this "
                    "plant has fewer than it was made for"
                )
        return {"u": control_of(u[:nu], nu, t, who)}

    def begin(_plant: Plant) -> CheckedTick:
        if library.reset:
            symbol_of(library.path, library.reset)()
        return CheckedTick(sizes, outputs)

    symbol, words = library.symbol, f"the function {library.symbol!r} of {library.path}"
    data = describe(symbol, AnswerFunction(symbol, sizes, nu, outputs), plant, period)
    return OtherController(data, library, words, begin)


def _guarded(values: Array) -> Array:
    """Return a copy with guard numbers behind it."""
    return np.concatenate([values, np.full(GUARD, GUARD_VALUE)])


def _pointer(array: Array) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)
