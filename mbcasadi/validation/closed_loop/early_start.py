"""A controller that runs before its C is there: its Function, while another process compiles.

A run has one program from its first tick to its last, so that it does not depend on the load of
the machine or on the cache. Where it is short that program is the Function: the run is over, and
judged, before a compiler would be. Behind it the C gets the same inputs, tick by tick, and has to
give the same controls.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen.background_build import BackgroundBuild, can_build_in_background
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.count import operations
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop.compiled_law import Caller, CompiledLaw, controller_of
from mbcasadi.validation.closed_loop.runnable import Runnable

Array = NDArray[np.float64]

MOST_TICKS, MOST_OPERATIONS = 6_000, 2e9
"""Of a run by the Function: in a longer one the quicker ticks of the C make up for its compiler.
CasADi takes some 4 ns an operation; those of the QP solver are not counted."""


COMPARED = ("u", "status")
"""Outputs of a tick that the C has to give too."""


@final
class RecordingCaller(Caller):
    """Calls the Function, and keeps the inputs and the control of each tick."""

    def __init__(self, controller: Controller) -> None:
        super().__init__(controller.function)
        self.calls: list[tuple[dict[str, Array], dict[str, Array]]] = []

    def __call__(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return all outputs as vectors, as `Caller` does."""
        outputs = super().__call__(values)
        inputs = {name: np.array(values[name], dtype=float).ravel() for name in self.names_in}
        kept = {name: outputs[name] for name in COMPARED if name in outputs}
        self.calls.append((inputs, kept))
        return outputs


@dataclass(frozen=True)
class EarlyLaw(Runnable):
    """A controller as its Function, and the process that compiles its C.

    Attributes:
        controller: as it was given.
        build: generates and compiles.
    """

    controller: Controller
    build: BackgroundBuild
    _first: list[RecordingCaller] = field(default_factory=list, repr=False)

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return "the law's Python Function; its C, with the same inputs, afterwards"

    def start(self, plant: Plant) -> Caller:  # noqa: ARG002  # the interface's
        """Return what calls the Function; that of the first run remembers its calls."""
        if self._first:
            return Caller(self.controller.function)
        self._first.append(RecordingCaller(self.controller))
        return self._first[0]

    def compiled(self) -> CompiledLaw:
        """Wait for the C, and return it.

        Raises:
            ExportError: it could not be generated or built.
        """
        project = self.build.project()
        return CompiledLaw(self.controller, project.load(), project)

    def difference(self, law: CompiledLaw) -> "Difference":
        """Return how far the ticks of the C are from those of the first run, at the same inputs."""
        caller, largest, scale, other, unsafe = Caller(law.function), 0.0, 0.0, 0, 0
        safe = self.controller.safe_statuses
        for inputs, outputs in self._first[0].calls:
            found, u = caller(inputs), outputs["u"]
            scale = max(scale, float(np.abs(u).max(initial=0.0)))
            own, status = (float(x.get("status", np.zeros(1))[0]) for x in (outputs, found))
            if status != own:
                other += 1
                unsafe += status in safe and own not in safe
                continue
            apart = np.where(np.isnan(u) & np.isnan(found["u"]), 0.0, np.abs(found["u"] - u))
            largest = max(largest, float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0)))
        return Difference(largest / scale if scale else largest, other, unsafe)


class Difference(NamedTuple):
    """The ticks of a controller's C beside those of its Function.

    Fields: `share`, the largest difference of a control, of the largest control of the run, where
    both have the same status; `other`, ticks with another status; `unsafe`, those of them with a
    safe output of the C only.
    """

    share: float
    other: int
    unsafe: int


@contextmanager
def early_law(
    given: Controller | HasController | Runnable, ticks: int
) -> Iterator[Controller | HasController | Runnable]:
    """Yield a law that runs at once and compiles meanwhile; where that does not pay, `given`.

    It does not in a long run, or where ticks are slow, as those of a predictive controller are; it
    cannot where processes cannot be copied.

    Args:
        given: as data, an object that carries one, or a `Runnable`, which runs already.
        ticks: of the run.

    Raises:
        CompilerError: there is no compiler.
    """
    if isinstance(given, Runnable) or ticks > MOST_TICKS or not can_build_in_background():
        yield given
        return
    find_compiler()  # now, not behind the run
    data = controller_of(given)
    if data.prediction is not None or ticks * _operations(data) > MOST_OPERATIONS:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        build = BackgroundBuild(data, Path(folder))
        try:
            yield EarlyLaw(data, build)
        finally:
            build.stop()


def _operations(controller: Controller) -> int:
    """Return the operations of a tick, without those of the QP solver."""
    stages = controller.stages
    if stages is None:
        return operations(controller.function)
    functions = (stages.prepare, stages.build, stages.finish, *stages.between)
    return sum(operations(each) for each in functions if each is not None)
