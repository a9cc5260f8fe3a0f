"""How a controller is sent to another process.

| controller | what is sent |
|---|---|
| of ours, an exported folder | its C, compiled on each machine |
| a shared library of others | its bytes, to machines of the same type |
| `ca.Function`, Python callable, policy | its pickle, of `cloudpickle` where that is installed |
"""

from dataclasses import replace

from mbcasadi.validation.campaigns.installed_code import read_files
from mbcasadi.validation.campaigns.pickles import NotSendableError, pickle_of, source_of
from mbcasadi.validation.campaigns.shipped_controllers import (
    ShippedCode,
    ShippedController,
    ShippedFolder,
    ShippedLibrary,
    ShippedPickle,
    Stays,
    machine_type,
)
from mbcasadi.validation.campaigns.shipped_laws import sendable
from mbcasadi.validation.closed_loop import CompiledLaw, FastLaw, Runnable
from mbcasadi.validation.closed_loop.controllers.casadi_function import CasadiFunction
from mbcasadi.validation.closed_loop.controllers.exported_folder import ExportedFolder
from mbcasadi.validation.closed_loop.controllers.policy import PolicyRun
from mbcasadi.validation.closed_loop.controllers.python_callable import PythonCallable
from mbcasadi.validation.closed_loop.controllers.shared_library import LibraryFunction
from mbcasadi.validation.closed_loop.fast_law import FAST_FLAGS


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
