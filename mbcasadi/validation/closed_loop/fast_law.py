"""A law that is ready sooner than its C as shipped, for a first look.

Generating and compiling the C takes a time that grows as its operations do, and so does a tick of
the Python Function. Measured on Go2 (62 k operations) and G1 (240 k): C at -O1 is ready after 3.7
and 13 s, and a tick of the Function takes 0.12 and 0.96 ms more. Up to `MOST_TICKS` the Function is
first at the end, whatever the law; after that C at -O1 is, whose ticks take what those at -O3 take.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import casadi as ca

from mbcasadi.codegen import CProject, export_c
from mbcasadi.codegen.compiler import process_folder
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop.compiled_law import Caller, controller_of
from mbcasadi.validation.closed_loop.runnable import Runnable

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
