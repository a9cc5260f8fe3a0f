"""Every public function, class and method, by its path.

Public is what the reference lists (`docs/reference/`): the `__all__` of each package named there,
and the names that it leaves out of `import *`.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path

import pydantic

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
FILES_OF_CONTROLLERS = ("mbcasadi.validation.agreement", "mbcasadi.validation.spec")
"""Packages that the guides describe (`docs/guides/spec.md`), and the reference does not."""


def packages() -> list[str]:
    """Return the packages of the reference; one inside another comes later."""
    pages = "\n".join(page.read_text() for page in sorted(REFERENCE.glob("*.md")))
    named = re.findall(r"^(?:public|summary|:::):? ([\w.]+)$", pages, re.MULTILINE)
    return sorted({*named, *FILES_OF_CONTROLLERS}, key=lambda name: (name.count("."), name))


def functions_and_classes() -> dict[str, object]:
    """Return the public functions and classes, each once, in the innermost package that has it."""
    found: dict[int, tuple[str, object]] = {}
    for name in packages():
        module = importlib.import_module(name)
        for public in [*module.__all__, *getattr(module, "NOT_STARRED", ())]:
            value = getattr(module, public)
            if inspect.isfunction(value) or inspect.isclass(value):
                found[id(value)] = f"{name.removeprefix('mbcasadi.')}.{public}", value
    return dict(found.values())


def checks_nothing(kind: type) -> bool:
    """Whether a class has no call of its own to test.

    These are interfaces, enumerations, exceptions, data that hold whatever they are given (the
    functions that take them check it), and the tables of a controller file, which `parse_spec`
    makes.
    """
    if inspect.isabstract(kind) or getattr(kind, "_is_protocol", False):
        return True
    if issubclass(kind, (BaseException, Enum, tuple, dict, pydantic.BaseModel)):
        return True
    return is_dataclass(kind) and not hasattr(kind, "__post_init__")


def methods(kind: type) -> Iterator[str]:
    """Yield the public methods of a class that are ours and take an argument beside the object."""
    for name in dir(kind):
        raw = inspect.getattr_static(kind, name)
        function = raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        ours = function.__module__.startswith("mbcasadi")
        if ours and (
            isinstance(raw, staticmethod) or len(inspect.signature(function).parameters) > 1
        ):
            yield name


def public_callables() -> dict[str, object]:
    """Return what a table has to call, by path without `mbcasadi.`."""
    result: dict[str, object] = {}
    for path, value in functions_and_classes().items():
        if not inspect.isclass(value) or not checks_nothing(value):
            result[path] = value
        if inspect.isclass(value) and not inspect.isabstract(value):  # nor an exception's
            result |= {f"{path}.{name}": getattr(value, name) for name in methods(value)}
    return result
