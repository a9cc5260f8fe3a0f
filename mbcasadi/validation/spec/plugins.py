"""Tasks, laws and controllers of other packages, which a file finds by the names of entry points.

    [project.entry-points."mbcasadi.tasks"]
    lean = "their_package.tasks:LeanTask"

A package is imported when a file has its name, not before, and needs no `allow_code`: it runs as
it was installed. Names of mbcasadi come first, so no package replaces one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from mbcasadi.errors import ControllerError, MbcasadiError, ProblemError

TASKS = "mbcasadi.tasks"
LAWS = "mbcasadi.laws"
CONTROLLERS = "mbcasadi.controllers"


def plugin_names(*groups: str) -> list[str]:
    """Return the names of all entry points of some groups, each once, without importing them."""
    return sorted({entry.name for group in groups for entry in entry_points(group=group)})


def plugin_types() -> list[str]:
    """Return the types of controllers that installed packages add, without importing them."""
    return plugin_names(LAWS, CONTROLLERS)


def find_plugin(name: str, *groups: str) -> EntryPoint | None:
    """Return the entry point of a name; None where no package has it.

    Raises:
        ProblemError: several packages have it, or one has it twice.
    """
    entries = {each for group in groups for each in entry_points(group=group, name=name)}
    if len(entries) > 1:
        owners = ", ".join(sorted(map(owner_of, entries)))
        raise ProblemError(f"{name!r} is ambiguous: {owners}; uninstall all but one of them")
    return next(iter(entries), None)


def owner_of(entry: EntryPoint) -> str:
    """Return an entry point and its package in words: `'lean' of the package lean-robots 1.0`."""
    package = "unknown" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
    return f"{entry.name!r} of the package {package} ({entry.group}: {entry.value})"


def load_plugin(entry: EntryPoint) -> Any:
    """Import what an entry point names.

    Raises:
        ProblemError: it cannot be imported; the message names the package.
    """
    try:
        return entry.load()
    except Exception as error:  # whatever a module of others raises
        raise broken(entry, f"{type(error).__name__}: {error}") from error


def broken(entry: EntryPoint, why: str) -> ProblemError:
    """Return the exception for an entry point that is of no use."""
    return ProblemError(f"{owner_of(entry)} is broken: {why}; update or uninstall that package")


def load_function(entry: EntryPoint) -> Callable[..., Any]:
    """Import the function of an entry point.

    Raises:
        ProblemError: as `load_plugin`, or it is no function.
    """
    function: Any = load_plugin(entry)
    if not callable(function):
        kind = type(function).__name__
        raise broken(entry, f"found {kind}, expected a function (system, ...)")
    made: Callable[..., Any] = function
    return made


@contextmanager
def run_plugin(entry: EntryPoint) -> Iterator[None]:
    """Name the package in what its function raises; errors of mbcasadi are of the file.

    Raises:
        ControllerError: the function raised.
    """
    try:
        yield
    except MbcasadiError:
        raise
    except Exception as error:  # whatever a function of others raises
        raise ControllerError(
            f"{owner_of(entry)} raised {type(error).__name__}: {error}"
        ) from error
