"""What a campaign sends to another process, as data.

| what | is sent as |
|---|---|
| a controller of ours, an exported folder, an outer law, a reaction | C, compiled on each machine |
| a shared library of others | its bytes, to machines of the same type |
| `ca.Function`, Python callable, policy | its pickle, of `cloudpickle` where that is installed |
"""

import copyreg
import hashlib
import io
import pickle
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.codegen import CProject, open_project
from mbcasadi.codegen.compiler import process_folder
from mbcasadi.codegen.folder import BUILD_FOLDER
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.campaigns.pickles import NotSendableError, pickle_of, source_of
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
Files = Mapping[str, bytes]
"""Path in an exported folder → content."""


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


def ship(law: Runnable, *, monitor: bool) -> ShippedController:
    """Return a controller as data.

    Args:
        law: what runs.
        monitor: keep the Function of its monitor, which is not sent as C.
    """
    period = law.controller.period
    if isinstance(law, (CompiledLaw, FastLaw)) and law.project is not None:
        controller, files = sendable(law.controller, monitor=monitor), read_files(law.project)
        if isinstance(law, FastLaw):
            content = (controller, files, FAST_FLAGS, law.words)
            return ShippedController(_our_law, content, _digest_of(files, FAST_FLAGS))
        return ShippedController(_our_law, (controller, files), _hash_of_files(files))
    if isinstance(law, ExportedFolder):
        files = read_files(law.project)
        return ShippedController(_folder, (files, period), _digest_of(files, period))
    if isinstance(law, OtherController) and isinstance(law.given, SharedLibrary):
        library, code = law.given, law.given.path.read_bytes()
        called = {**asdict(library), "path": ""}
        identity = _digest_of({"library": code}, called, period)
        return ShippedController(_library, (library, code, machine_type(), period), identity)
    return _ship_python(law, period)


def _our_law(
    _plant: Plant,
    controller: Controller,
    files: Files,
    flags: tuple[str, ...] | None = None,
    words: str = "",
) -> Runnable:
    """Return a controller of ours as C, compiled on this machine.

    Args:
        _plant: any.
        controller: without the stages around its solver.
        files: of the export.
        flags: of the compiler; those of the export where None.
        words: what runs, where it is not the C as shipped.
    """
    project = install_code(files)
    function = project.load(flags=flags)
    if words:
        return FastLaw(controller, function, words, project)
    return CompiledLaw(controller, function, project)


def _folder(plant: Plant, files: Files, period: float) -> Runnable:
    """Return the C of a user's folder, compiled on this machine."""
    return ExportedFolder(install_code(files), plant, period)


def _library(
    plant: Plant, library: SharedLibrary, content: bytes, machine: str, period: float
) -> Runnable:
    """Return a function of a library; its path is used where the same file is there.

    Raises:
        ProblemError: this machine is of another type.
    """
    if machine != machine_type():
        raise ProblemError(
            f"the library {library.path.name} is for {machine}, this worker is "
            f"{machine_type()}; expected workers of one type, or jobs="
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


def machine_type() -> str:
    """Return what a library is compiled for."""
    return f"{sys.platform} {platform.machine()}"


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


def read_files(project: CProject) -> dict[str, bytes]:
    """Return the files of an export without what was built from them."""
    paths = (p for p in sorted(project.folder.rglob("*")) if p.is_file())
    inside = {path.relative_to(project.folder): path for path in paths}
    return {
        name.as_posix(): path.read_bytes()
        for name, path in inside.items()
        if name.parts[0] != BUILD_FOLDER
    }


def install_code(files: Files) -> CProject:
    """Return the export in a folder of this process; its library is built when it is loaded.

    Processes of one user share what they have compiled by `codegen.cache`.
    """
    folder = Path(tempfile.mkdtemp(dir=process_folder()))
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return open_project(folder)


def _hash_of_files(files: Files) -> str:
    """Return what tells one export from another."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _digest_of(files: Files, *words: object) -> str:
    """Return what tells files and further values from others."""
    return hashlib.sha256((_hash_of_files(files) + repr(words)).encode()).hexdigest()


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


class _Pickler(pickle.Pickler):
    """A pickler that has exported C by its files, and what runs it by that C."""

    dispatch_table = copyreg.dispatch_table | {
        CProject: lambda code: (install_code, (read_files(code),)),
        Reaction: lambda it: (Reaction, (it.project, it.z0)),
        CompiledLaw: lambda it: (
            _our_law,
            (None, sendable(it.controller, monitor=False), read_files(it.project)),
        ),
        OuterLaw: lambda it: (OuterLaw, (it.law, _planner(it.planner), it.project, it.command)),
    }


def to_bytes(thing: object) -> bytes:
    """Return what `pickle.loads` makes again in another process, its C compiled there."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(thing)
    return buffer.getvalue()
