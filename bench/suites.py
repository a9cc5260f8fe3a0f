"""The benchmark suites: modules of `bench` with a function `run`."""

import importlib
import pkgutil
from typing import Protocol, TypedDict

import bench as benchmarks
from mbcasadi.errors import UnknownNameError

SUITES = (
    "kernels",
    "dynamics",
    "derivatives",
    "formulations",
    "qp",
    "tick",
    "laws",
    "estimation",
    "mpc",
    "whole_body",
    "batch",
)


class BenchmarkRow(TypedDict):
    """One quantity beside a peer; times in s, None where a peer is absent."""

    model: str
    quantity: str
    ours: float | None
    peer: str
    peer_time: float | None
    ratio: float | None


class Suite(Protocol):
    """A suite: returns its `rows` (`BenchmarkRow`), and its settings by name."""

    def __call__(self, *, quick: bool = False) -> dict[str, object]: ...  # noqa: D102


def available_suites() -> tuple[str, ...]:
    """Return the names of the suites of this installation."""
    modules = {module.name for module in pkgutil.iter_modules(benchmarks.__path__)}
    return tuple(name for name in SUITES if name in modules)


def suite_list() -> str:
    """Return the names of the suites as text."""
    return ", ".join(available_suites()) or "none in this installation"


def load_suite(name: str) -> Suite:
    """Return the function `run(quick=False)` of a suite.

    Raises:
        UnknownNameError: there is no such suite; the message lists those that exist.
    """
    if name not in available_suites():
        raise UnknownNameError(f"unknown benchmark {name!r}; there are: {suite_list()}")
    run: Suite = importlib.import_module(f"bench.{name}").run
    return run
