"""Calls a function with one wrong argument after the other."""

import contextlib
import inspect
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mbcasadi
from fuzz.wrong_values import with_wrong_fields, wrong_values
from mbcasadi.errors import MbcasadiError

LONGEST = 10  # s; a call that takes longer hangs
PACKAGE = Path(mbcasadi.__file__).parent


class Hanging(BaseException):
    """A call took too long."""


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that are fuzzed: all but the object itself."""
    return [name for name in inspect.signature(function).parameters if name != "self"]


def answer(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Call a function; what makes a context is entered and left.

    A class method is bound already, and has no `self`.
    """
    result = function(**arguments)
    if hasattr(result, "__enter__") and hasattr(result, "gen"):
        with result:
            pass


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Raise `Hanging` in what takes too long."""

    def stop(*_: object) -> None:
        raise Hanging(f"no answer within {LONGEST} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fault_of(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Return what is wrong with the outcome of a call, or nothing."""
    try:
        with time_limit():
            answer(function, arguments)
    except MbcasadiError:
        return ""
    except (Exception, Hanging) as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if f.filename.startswith(str(PACKAGE))]
        place = (
            f"{ours[-1].filename.removeprefix(str(PACKAGE))[1:]}:{ours[-1].lineno}" if ours else ""
        )
        return f"{type(error).__name__}: {str(error)[:100]!r} at {place}"
    return ""


def faults_of(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, str]:
    """Return the faults by the argument that was wrong, with its value."""
    faults = {}
    for name in parameters_of(function):
        valid = arguments.get(name, inspect.signature(function).parameters[name].default)
        for wrong, value in {**wrong_values(), **with_wrong_fields(valid)}.items():
            fault = fault_of(function, {**arguments, name: value})
            if fault:
                faults[f"{name} = {wrong}"] = fault
    return faults
