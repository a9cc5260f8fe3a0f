"""The benchmark suites that are there: modules of `benchmarks` with a function `run`."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from mbcasadi import benchmarks
from mbcasadi.errors import UnknownNameError

SUITES = ("kernels", "formulations", "qp", "tick", "laws", "mpc")


def available() -> tuple[str, ...]:
    """Return the names of the suites that this installation holds."""
    found = {module.name for module in pkgutil.iter_modules(benchmarks.__path__)}
    return tuple(name for name in SUITES if name in found)


def listed() -> str:
    """Return the names of the suites as text."""
    return ", ".join(available()) or "none in this installation"


def suite(name: str) -> Callable[..., dict[str, Any]]:
    """Return the function `run(quick=False)` of a suite.

    Raises:
        UnknownNameError: there is no such suite; the message lists those that exist.
    """
    if name not in available():
        raise UnknownNameError(f"unknown benchmark {name!r}; there are: {listed()}")
    run: Callable[..., dict[str, Any]] = importlib.import_module(f"mbcasadi.benchmarks.{name}").run
    return run
