"""Calls a function with one wrong argument after the other."""

import contextlib
import inspect
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mbcasadi
from fuzz.wrong_values import is_right, with_wrong_fields, wrong_values
from mbcasadi.errors import MbcasadiError

LONGEST = 10  # s; a call that takes longer hangs
PACKAGE = Path(mbcasadi.__file__).parent


class Hanging(BaseException):
    """A call took too long."""


@dataclass(frozen=True)
class Fresh:
    """An argument that the call changes: a new one is made for each call."""

    make: Callable[[], Any]


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments that are fuzzed: all but the object itself."""
    parameters = inspect.signature(function).parameters
    return {name: p for name, p in parameters.items() if name != "self"}


def answer(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function and return its result; what makes a context is entered and left.

    A table gives `*args` as a tuple and `**options` as a dictionary, by their names.
    """
    given = {n: v.make() if isinstance(v, Fresh) else v for n, v in arguments.items()}
    kinds = inspect.signature(function).parameters.items()
    only = [name for name, parameter in kinds if parameter.kind is parameter.POSITIONAL_ONLY]
    positional: list[Any] = [given.pop(name) for name in only if name in given]
    for name, parameter in parameters_of(function).items():
        if name in given and parameter.kind is parameter.VAR_POSITIONAL:
            positional = [given.pop(n) for n in ("self",) if n in given] + [*given.pop(name)]
        elif name in given and parameter.kind is parameter.VAR_KEYWORD:
            given |= given.pop(name)
    result = function(*positional, **given)
    if hasattr(result, "__enter__") and hasattr(result, "gen"):
        with result:
            pass
    return result


def changed(arguments: dict[str, Any], parameter: inspect.Parameter, value: Any) -> dict[str, Any]:
    """Return the arguments of a call with one wrong value."""
    name, given = parameter.name, arguments.get(parameter.name)
    if parameter.kind is parameter.VAR_POSITIONAL:
        value = (value, *(given or ())[1:])
    if parameter.kind is parameter.VAR_KEYWORD:
        value = {next(iter(given or {}), "no_such_option"): value}
    return {**arguments, name: value}


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
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # to the user, of what is allowed
            answer(function, arguments)
    except MbcasadiError:
        return ""
    except (Exception, Hanging) as error:  # noqa: BLE001  # any other one is the finding
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
    for name, parameter in parameters_of(function).items():
        valid = arguments.get(name, parameter.default)
        for wrong, value in {**wrong_values(), **with_wrong_fields(valid)}.items():
            if is_right(value, str(parameter.annotation)):
                continue
            fault = fault_of(function, changed(arguments, parameter, value))
            if fault:
                faults[f"{name} = {wrong}"] = fault
    return faults
