"""The controller of a campaign as data that another process can be sent.

| controller | what is sent |
|---|---|
| of ours, an exported folder | its C, compiled on each machine |
| a shared library of others | its bytes, to machines of the same type |
| `ca.Function`, Python callable, policy | its pickle, of `cloudpickle` where that is installed |
"""

import hashlib
import pickle
import platform
import sys
import tempfile
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import final

from mbcasadi.codegen.compiler import process_folder
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.campaigns.installed_code import (
    Files,
    hash_of_files,
    install_code,
    read_files,
)
from mbcasadi.validation.campaigns.pickles import NotSendableError, pickle_of, source_of
from mbcasadi.validation.campaigns.shipped_laws import sendable
from mbcasadi.validation.closed_loop import (
    CompiledLaw,
    FastLaw,
    Runnable,
    SharedLibrary,
    as_runnable,
)
from mbcasadi.validation.closed_loop.controllers.casadi_function import CasadiFunction
from mbcasadi.validation.closed_loop.controllers.exported_folder import ExportedFolder
from mbcasadi.validation.closed_loop.controllers.policy import PolicyRun
from mbcasadi.validation.closed_loop.controllers.python_callable import PythonCallable
from mbcasadi.validation.closed_loop.controllers.shared_library import LibraryFunction
from mbcasadi.validation.closed_loop.fast_law import FAST_FLAGS


class ShippedController(ABC):
    """A controller as data.

    Attributes:
        has_state: it may remember a run, so that each case loads it anew.
        stays: why it cannot be sent to another process; "" where it can.
    """

    has_state: bool
    stays: str

    @property
    @abstractmethod
    def identity(self) -> str:
        """What tells it from other controllers."""

    @abstractmethod
    def load(self, plant: Plant) -> Runnable:
        """Return what runs on this machine.

        Raises:
            ProblemError: it cannot run here.
            ExportError: its C cannot be built or loaded.
        """


@final
@dataclass(frozen=True)
class ShippedCode(ShippedController):
    """The exported C of a controller of ours.

    Attributes:
        controller: without the stages around its solver.
        files: of the export.
        flags: of the compiler; those of the export where None.
        words: what runs, where it is not the C as shipped.
    """

    controller: Controller
    files: Files
    flags: tuple[str, ...] | None = None
    words: str = ""

    has_state, stays = False, ""

    @property
    def identity(self) -> str:
        """Of the C, and of flags that are not its own."""
        return (
            hash_of_files(self.files) if self.flags is None else digest_of(self.files, self.flags)
        )

    def load(self, plant: Plant) -> Runnable:  # noqa: ARG002  # the interface's
        """Return the C, compiled on this machine."""
        project = install_code(self.files)
        function = project.load(flags=self.flags)
        if self.words:
            return FastLaw(self.controller, function, self.words, project)
        return CompiledLaw(self.controller, function, project)


@final
@dataclass(frozen=True)
class ShippedFolder(ShippedController):
    """An exported folder of the user."""

    files: Files
    period: float

    has_state, stays = False, ""

    @property
    def identity(self) -> str:
        """Of the files and the period."""
        return digest_of(self.files, self.period)

    def load(self, plant: Plant) -> Runnable:
        """Return its C, compiled on this machine."""
        return ExportedFolder(install_code(self.files), plant, self.period)


@final
@dataclass(frozen=True)
class ShippedLibrary(ShippedController):
    """A function of a shared library.

    Attributes:
        library: as it was given; its path is used where the same file is there.
        content: of the file.
        machine: type of the machine that it is for.
        period: s.
    """

    library: SharedLibrary
    content: bytes
    machine: str
    period: float

    has_state, stays = False, ""

    @property
    def identity(self) -> str:
        """Of the file, what is called in it, and the period."""
        called = {**asdict(self.library), "path": ""}
        return digest_of({"library": self.content}, called, self.period)

    def load(self, plant: Plant) -> Runnable:
        """Return the function.

        Raises:
            ProblemError: this machine is of another type.
        """
        if self.machine != machine_type():
            raise ProblemError(
                f"the library {self.library.path.name} is for {self.machine}, this worker is "
                f"{machine_type()}; expected workers of one type, or jobs="
            )
        path = self.library.path
        if not (path.is_file() and path.read_bytes() == self.content):
            path = Path(tempfile.mkdtemp(dir=process_folder())) / path.name
            path.write_bytes(self.content)
        return LibraryFunction(replace(self.library, path=path), plant, self.period)


@final
@dataclass(frozen=True)
class ShippedPickle(ShippedController):
    """A controller of Python or CasADi, by its pickle.

    Attributes:
        content: pickle of what `as_runnable` takes.
        source: text of its functions, where Python knows it.
        period: s.
        has_state: not of a `ca.Function`.
        name: for messages.
    """

    content: bytes
    source: str
    period: float
    has_state: bool
    name: str

    stays = ""

    @property
    def identity(self) -> str:
        """Of pickle, text and period."""
        return digest_of({"pickle": self.content}, self.source, self.period)

    def load(self, plant: Plant) -> Runnable:
        """Return a copy, as it was at the start of the campaign.

        Raises:
            ProblemError: what it is made of cannot be imported, or is no file here.
        """
        try:
            controller = pickle.loads(self.content)
        except (ImportError, AttributeError, RuntimeError, pickle.UnpicklingError) as error:
            raise ProblemError(
                f"a worker cannot load the controller {self.name!r}: {error}; expected modules "
                "that it can import, and libraries at the same path. Install them there, or give "
                "jobs=1"
            ) from error
        law = as_runnable(controller, plant, self.period)
        assert isinstance(law, Runnable)  # it was one where it was pickled
        return law


@final
@dataclass(frozen=True)
class Stays(ShippedController):
    """A controller that cannot be sent: all cases run in the process that has it.

    Attributes:
        stays: why, in words.
        source: text of its functions, where Python knows it.
        name: of the controller.
        period: s.
    """

    stays: str
    source: str
    name: str
    period: float

    has_state = False

    @property
    def identity(self) -> str:
        """Of name, text and period: nothing else is known of it."""
        return digest_of({}, self.name, self.source, self.period)

    def load(self, plant: Plant) -> Runnable:  # noqa: ARG002  # the interface's
        """Raise, as it cannot be sent.

        Raises:
            ProblemError: always.
        """
        raise ProblemError(f"{self.stays}; expected jobs=1")


def machine_type() -> str:
    """Return what a library is compiled for."""
    return f"{sys.platform} {platform.machine()}"


def digest_of(files: Files, *words: object) -> str:
    """Return what tells files and further values from others."""
    return hashlib.sha256((hash_of_files(files) + repr(words)).encode()).hexdigest()


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
            return ShippedCode(controller, read_files(law.project), FAST_FLAGS, law.words)
        return ShippedCode(controller, read_files(law.project))
    if isinstance(law, ExportedFolder):
        return ShippedFolder(read_files(law.project), period)
    if isinstance(law, LibraryFunction):
        content = law.library.path.read_bytes()
        return ShippedLibrary(law.library, content, machine_type(), period)
    return _pickled(law, period)


def _pickled(law: Runnable, period: float) -> ShippedController:
    """Return the controller as a pickle, or as one that stays."""
    given: object = law
    if isinstance(law, FastLaw):
        light = replace(law.controller, stages=None, emergency=None, monitor_stages=None)
        given = replace(law, controller=light)
    elif isinstance(law, CasadiFunction):
        given = law.function
    elif isinstance(law, PolicyRun):
        given = law.policy
    elif isinstance(law, PythonCallable):
        given = law.law
    name, source = law.controller.name, source_of(given)
    has_state = not isinstance(law, (FastLaw, CasadiFunction))
    try:
        return ShippedPickle(pickle_of(given), source, period, has_state, name)
    except NotSendableError as error:
        words = f"the controller {name!r} cannot be sent to another process ({error})"
        return Stays(words, source, name, period)
