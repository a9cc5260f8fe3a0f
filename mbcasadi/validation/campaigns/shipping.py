"""What a campaign sends to another process, as data.

| what | is sent as |
|---|---|
| a controller of ours, an exported folder, an outer law, a reaction | C and its library |
| a shared library of others | its bytes, to machines of the same type |
| `ca.Function`, Python callable, policy | its pickle, of `cloudpickle` where that is installed |
"""

import copyreg
import hashlib
import io
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import CProject
from mbcasadi.codegen.compiled_library import compiled_library, this_machine
from mbcasadi.codegen.compiler import process_folder
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.campaigns.pickles import NotSendableError, pickle_of, source_of
from mbcasadi.validation.campaigns.shipped_code import Files, ShippedCode, digest_of_files
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    FastLaw,
    OuterLaw,
    Planner,
    Reaction,
    Runnable,
    SharedLibrary,
    as_runnable,
)
from mbcasadi.validation.closed_loop.compiled_law import FAST_FLAGS
from mbcasadi.validation.closed_loop.controllers.casadi_function import ExportedFolder
from mbcasadi.validation.closed_loop.controllers.description import OtherController
from mbcasadi.validation.closed_loop.controllers.shared_library import library_function
from mbcasadi.validation.closed_loop.outer_law import speeds_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ShippedController:
    """A controller as data.

    Attributes:
        make: function of a module: a plant and the content → what runs.
        content: files, bytes and numbers.
        identity: what tells it from other controllers.
        has_state: it may remember a run, so that each case loads it anew.
        stays: why it cannot be sent to another process; "" where it can.
    """

    make: Callable[..., Runnable] | None
    content: tuple[Any, ...]
    identity: str
    has_state: bool = False
    stays: str = ""

    def load(self, plant: Plant) -> Runnable:
        """Return what runs on this machine.

        Raises:
            ProblemError: it cannot run here.
            ExportError: its C cannot be built or loaded.
        """
        if self.make is None:
            raise ProblemError(f"{self.stays}; expected jobs=1")
        return self.make(plant, *self.content)

    def with_library(self) -> "ShippedController":
        """Return the same; where it is C, its library is compiled here and comes with it.

        Raises:
            CompilerError: no compiler, or it failed.
        """
        content = tuple(p.with_library() if isinstance(p, ShippedCode) else p for p in self.content)
        return replace(self, content=content)


def ship(law: Runnable, *, monitor: bool) -> ShippedController:
    """Return a controller as data.

    Args:
        law: what runs.
        monitor: keep the Function of its monitor, which is not sent as C.
    """
    period = law.controller.period
    if isinstance(law, (CompiledLaw, FastLaw)) and law.project is not None:
        controller = sendable(law.controller, monitor=monitor)
        if isinstance(law, FastLaw):
            code = ShippedCode.of(law.project, FAST_FLAGS)
            identity = _digest_of(code.files, FAST_FLAGS)
            return ShippedController(_our_law, (code, controller, law.words), identity)
        code = ShippedCode.of(law.project)
        return ShippedController(_our_law, (code, controller), digest_of_files(code.files))
    if isinstance(law, ExportedFolder):
        code = ShippedCode.of(law.project)
        return ShippedController(_folder, (code, period), _digest_of(code.files, period))
    if isinstance(law, OtherController) and isinstance(law.given, SharedLibrary):
        library, content = law.given, law.given.path.read_bytes()
        called = {**asdict(library), "path": ""}
        identity = _digest_of({"library": content}, called, period)
        return ShippedController(
            _library, (library, content, this_machine().system, period), identity
        )
    return _ship_python(law, period)


def _our_law(_plant: Plant, code: ShippedCode, controller: Controller, words: str = "") -> Runnable:
    """Return a controller of ours as C.

    Args:
        _plant: any.
        code: its export.
        controller: without the stages around its solver.
        words: what runs, where it is not the C as shipped.
    """
    project = code.install()
    function = project.load(flags=code.flags)
    if words:
        return FastLaw(controller, function, words, project)
    return CompiledLaw(controller, function, project)


def _folder(plant: Plant, code: ShippedCode, period: float) -> Runnable:
    """Return the C of a user's folder."""
    return ExportedFolder(code.install(), plant, period)


def _library(
    plant: Plant, library: SharedLibrary, content: bytes, machine: str, period: float
) -> Runnable:
    """Return a function of a library; its path is used where the same file is there.

    Raises:
        ProblemError: this machine is of another type.
    """
    if machine != this_machine().system:
        raise ProblemError(
            f"the library {library.path.name} is for {machine}, this worker is "
            f"{this_machine().system}; expected workers of one type, or jobs="
        )
    path = library.path
    if not (path.is_file() and path.read_bytes() == content):
        path = Path(tempfile.mkdtemp(dir=process_folder())) / path.name
        path.write_bytes(content)
    return library_function(replace(library, path=path), plant, period)


def _ship_python(law: Runnable, period: float) -> ShippedController:
    """Return a controller of Python or CasADi by its pickle, or as one that stays."""
    given: object = law
    if isinstance(law, FastLaw):
        light = replace(law.controller, stages=None, emergency=None, monitor_stages=None)
        given = replace(law, controller=light)
    elif isinstance(law, OtherController):
        given = law.given
    name, source = law.controller.name, source_of(given)
    has_state = not isinstance(given, (FastLaw, ca.Function))
    try:
        content = pickle_of(given)
    except NotSendableError as error:
        stays = f"the controller {name!r} cannot be sent to another process ({error})"
        identity = _digest_of({}, name, source, period)  # nothing else is known of it
        return ShippedController(None, (), identity, stays=stays)
    identity = _digest_of({"pickle": content}, source, period)
    return ShippedController(_of_pickle, (content, period, name), identity, has_state)


def _of_pickle(plant: Plant, content: bytes, period: float, name: str) -> Runnable:
    """Return a copy of a controller, as it was at the start of the campaign.

    Raises:
        ProblemError: what it is made of cannot be imported, or is no file here.
    """
    try:
        controller = pickle.loads(content)
    except (ImportError, AttributeError, RuntimeError, pickle.UnpicklingError) as error:
        raise ProblemError(
            f"a worker cannot load the controller {name!r}: {error}; expected modules "
            "that it can import, and libraries at the same path. Install them there, or give "
            "jobs=1"
        ) from error
    law = as_runnable(controller, plant, period)
    assert isinstance(law, Runnable)  # it was one where it was pickled
    return law


def sendable(controller: Controller, *, monitor: bool) -> Controller:
    """Return a controller without what only code generation needs, as another process takes it.

    CasADi cannot send some solvers. The law is sent as C, so only the names and sizes of its
    Function are kept here, and those of a monitor that is sent as C too.

    Args:
        controller: the original.
        monitor: keep the Function of the monitor.
    """
    kept = controller.monitor
    if kept is not None and not monitor:
        kept = _signature(kept)
    return replace(
        controller,
        function=_signature(controller.function),
        monitor=kept,
        stages=None,
        emergency=None,
        monitor_stages=None,
    )


def _signature(function: ca.Function) -> ca.Function:
    """Return a Function of zeros with the same inputs and outputs."""
    names_in, names_out = function.name_in(), function.name_out()
    inputs = [ca.SX.sym(name, function.sparsity_in(name)) for name in names_in]
    outputs = [ca.SX(function.sparsity_out(name)) for name in names_out]
    return ca.Function(function.name(), inputs, outputs, names_in, names_out)


def _digest_of(files: Files, *words: object) -> str:
    """Return what tells files and further values from others."""
    return hashlib.sha256((digest_of_files(files) + repr(words)).encode()).hexdigest()


@dataclass(frozen=True)
class _SentPlanner:
    """The `Planner` of an outer law, its Function as names and sizes."""

    function: ca.Function
    z0: Array
    u0: Array
    every: int
    delay: int
    speeds: slice | None


def _planner(planner: Planner) -> _SentPlanner:
    function = _signature(planner.function)
    speeds = speeds_of(planner)
    return _SentPlanner(function, planner.z0, planner.u0, planner.every, planner.delay, speeds)


def to_bytes(thing: object, *, libraries: bool = False) -> bytes:
    """Return what `pickle.loads` makes again in another process.

    Args:
        thing: an object; what it has of exported C is sent as files.
        libraries: send with them the libraries, compiled here unless they are already.
    """

    def code_of(project: CProject) -> ShippedCode:
        code = ShippedCode.of(project)
        return replace(code, library=compiled_library(project)) if libraries else code

    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.dispatch_table = copyreg.dispatch_table | {
        CProject: lambda project: (ShippedCode.install, (code_of(project),)),
        Reaction: lambda it: (Reaction, (it.project, it.z0)),
        CompiledLaw: lambda it: (
            _our_law,
            (None, code_of(it.project), sendable(it.controller, monitor=False)),
        ),
        OuterLaw: lambda it: (OuterLaw, (it.law, _planner(it.planner), it.project, it.command)),
    }
    pickler.dump(thing)
    return buffer.getvalue()
