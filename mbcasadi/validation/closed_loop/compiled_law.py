"""The C of a controller as a Function that a loop can call thousands of times, or a quicker one.

Generating and compiling the C takes a time that grows as its operations do, and so does a tick of
the Python Function. Measured on Go2 (62 k operations) and G1 (240 k): C at -O1 is ready after 3.7
and 13 s, and a tick of the Function takes 0.12 and 0.96 ms more. Up to `MOST_TICKS` the Function is
first at the end, whatever the law; after that C at -O1 is, whose ticks take what those at -O3 take.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen import CProject, TickTimes, export_c
from mbcasadi.codegen.compiler import process_folder
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.plant import Plant
from mbcasadi.short_text import summarised
from mbcasadi.simulation.buffered_function import BufferedFunction
from mbcasadi.validation.closed_loop.runnable import Runnable

Array = NDArray[np.float64]
KNOWN_INPUTS = ("q", "v", "act", "f_c", "f_measured", "ref", "tuning", "p", "t", "mask", "z")


@summarised
@dataclass(frozen=True)
class CompiledLaw(Runnable):
    """A controller, and its C as a Function.

    Attributes:
        controller: as it was given.
        function: the generated C, compiled and loaded.
        project: the exported folder.
    """

    controller: Controller
    function: ca.Function
    project: CProject

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return "the generated C"

    @checked
    def start(self, plant: Plant) -> "Caller":  # noqa: ARG002  # the interface's
        """Return what calls the C."""
        return Caller(self.function)

    def facts(self) -> dict[str, object]:
        """Return the size of the C."""
        return {
            "operations in a tick": self.project.operations,
            "lines of C": self.project.lines,
        }

    @checked
    def times(self, inputs: Mapping[str, Array]) -> TickTimes | None:
        """Return the time of each tick, called in C with these inputs.

        Args:
            inputs: name → (ticks, size).
        """
        known = self.function.name_in()
        return self.project.time({n: x for n, x in inputs.items() if n in known}, repeats=1)


def controller_of(controller: Controller | HasController) -> Controller:
    """Return the controller as data.

    Raises:
        ProblemError: something else was given, or its inputs are not those of a control loop.
    """
    if isinstance(controller, HasController):
        controller = controller.controller
    if not isinstance(controller, Controller):
        raise ProblemError(
            f"cannot validate a {type(controller).__name__}; expected a controller of "
            "mbcasadi.control or a description.Controller, which adds period and limits"
        )
    unknown = [n for n in controller.function.name_in() if n not in KNOWN_INPUTS]
    if unknown:
        apart = "; give the law and its estimator apart: validate(law, ..., sensors=Sensing(...))"
        raise ProblemError(
            f"controller {controller.name!r} has the inputs {unknown}; a closed loop provides "
            f"{', '.join(KNOWN_INPUTS)} only{apart if controller.sensors else ''}"
        )
    if "u" not in controller.function.name_out():
        raise ProblemError(f"controller {controller.name!r} has no output 'u'")
    return controller


@checked
@contextmanager
def compile_controller(
    controller: Controller | HasController | Runnable,
    progress: Callable[[str], None] | None = None,
) -> Iterator[Runnable]:
    """Export a controller to a temporary folder, compile it, and yield the loaded C.

    A `Runnable`, the yielded law among them, is yielded unchanged, so that
    `with compile_controller(controller) as law` serves many calls of `validate`.

    Args:
        controller: as data, an object that carries one, or a `Runnable`.
        progress: called with what is being done.

    Raises:
        ExportError: the C could not be generated or built.
    """
    if isinstance(controller, Runnable):
        yield controller
        return
    data = controller_of(controller)
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        project = export_c(data, Path(folder) / "c", progress=progress)
        yield CompiledLaw(data, project.load(), project)


class Caller:
    """Calls a Function by name, on vectors of all entries: microseconds a call."""

    def __init__(self, function: ca.Function) -> None:
        self.names_in = tuple(function.name_in())
        self.names_out = tuple(function.name_out())
        self._sizes = {name: int(function.numel_in(name)) for name in self.names_in}
        self._call = BufferedFunction(function)

    def size(self, name: str) -> int:
        """Return the number of elements of an input, 0 where there is no such input."""
        return self._sizes.get(name, 0)

    def __call__(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return all outputs as vectors; `values` may hold more names than there are inputs.

        A call that fails has the status of that, also where the Function has none.

        Raises:
            ShapeError: a value with another number of elements than its input.
        """
        inputs = list[Array]()
        for name, size in self._sizes.items():
            value = np.asarray(values[name], dtype=float).ravel()
            if value.size != size:
                raise ShapeError(f"{name} has {value.size} elements, expected {size}")
            inputs.append(value)
        outputs = dict(zip(self.names_out, self._call(*inputs), strict=True))
        if self._call.failed:
            outputs["status"] = np.array([float(Status.FAILED)])
        return outputs


MOST_TICKS = 15_000
"""Of a run that the Python Function does sooner than C at -O1."""

FAST_FLAGS = ("-O1",)


@dataclass(frozen=True)
class FastLaw(Runnable):
    """A controller, and something that computes the same as its C.

    Its ticks are not timed, as they are not those of the C as shipped.

    Attributes:
        controller: as it was given.
        function: the Python Function, or C compiled in short time.
        words: what the function is.
        project: the export of which it is the C, if it is.
    """

    controller: Controller
    function: ca.Function
    words: str
    project: CProject | None = None

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return self.words

    def start(self, plant: Plant) -> Caller:  # noqa: ARG002  # the interface's
        """Return what calls the function."""
        return Caller(self.function)


def fast_law(
    controller: Controller | HasController | Runnable,
    ticks: int,
    progress: Callable[[str], None] | None = None,
) -> Runnable:
    """Return the law in the form that finishes first, from now to the end of its runs.

    What runs already, a compiled law or a controller of others, is returned unchanged.

    Args:
        controller: as data, an object that carries one, or a `Runnable`.
        ticks: of all runs.
        progress: called with what is being done.

    Raises:
        ExportError: the C could not be generated or built.
    """
    if isinstance(controller, Runnable):
        return controller
    data = controller_of(controller)
    if ticks <= MOST_TICKS:
        return FastLaw(data, data.function, "the law's Python Function, not its C")
    folder = Path(tempfile.mkdtemp(dir=process_folder()))
    project = export_c(data, folder / "c", progress=progress)
    words = f"the generated C at {' '.join(FAST_FLAGS)}, not as shipped"
    return FastLaw(data, project.load(flags=FAST_FLAGS), words, project)
