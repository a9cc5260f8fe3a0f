"""Functions and objects of a user as bytes, from which another process makes them again."""

import functools
import inspect
import pickle
import pickletools
from importlib import import_module
from types import ModuleType

from mbcasadi.validation.closed_loop import Policy

MAIN = "__main__"
ADVICE = "pip install cloudpickle, or put the controller into a module"


class NotSendableError(Exception):
    """Something has no pickle that another process can load; the message says why."""


def pickle_of(thing: object) -> bytes:
    """Return the pickle of an object, of `cloudpickle` where that is installed.

    That one has functions of scripts, notebooks and other functions by value. Without it they
    cannot be sent: a worker does not run the caller's script.

    Raises:
        NotSendableError: there is none.
    """
    library = _cloudpickle()
    try:
        content: bytes = (library or pickle).dumps(thing)
        if library is not None:
            pickle.loads(content)  # of what has a pickle that cannot be read, as some Functions
    except RuntimeError as error:
        raise NotSendableError("CasADi cannot serialise one of its Functions") from error
    except (pickle.PicklingError, TypeError, ValueError, AttributeError) as error:
        advice = "" if library else f"; {ADVICE}"
        raise NotSendableError(f"{error}{advice}") from error
    words = (argument for _, argument, _ in pickletools.genops(content))
    if library is None and MAIN in words:
        raise NotSendableError(f"it is defined in the script that runs; {ADVICE}")
    return content


def source_of(thing: object) -> str:
    """Return the text of a function, an object's class, or what a policy consists of.

    Pickles have functions of modules by name; their text tells one version from another.
    """
    if isinstance(thing, Policy):
        return "".join(map(source_of, (thing.observe, thing.policy, thing.action)))
    if isinstance(thing, functools.partial):
        return source_of(thing.func)
    try:
        return inspect.getsource(thing if inspect.isroutine(thing) else type(thing))
    except (OSError, TypeError):  # of a compiled module, or typed into an interpreter
        return ""


def _cloudpickle() -> ModuleType | None:
    try:
        return import_module("cloudpickle")
    except ImportError:
        return None
