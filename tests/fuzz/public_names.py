"""Every public function, method and class that checks itself, by its path."""

import importlib
import inspect
import pkgutil
from abc import ABC
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum

import pydantic

import mbcasadi


def packages() -> Iterator[str]:
    """Yield the name of every module that says what is public."""
    yield "mbcasadi"
    for module in pkgutil.walk_packages(mbcasadi.__path__, "mbcasadi."):
        if not module.name.endswith("__main__"):
            yield module.name


def homes() -> dict[str, object]:
    """Return the public functions and classes; the longest path of each is its home."""
    found: dict[int, tuple[str, object]] = {}
    for name in packages():
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            if not (inspect.isfunction(value) or inspect.isclass(value)):
                continue
            known = found.get(id(value))
            if known is None or known[0].count(".") < name.count(".") + 1:
                found[id(value)] = f"{name}.{public}", value
    return dict(found.values())


def is_data(kind: type) -> bool:
    """Whether a class only holds what it is given: functions that take it check it."""
    plain = (tuple, dict, Enum, BaseException, pydantic.BaseModel)
    if issubclass(kind, plain) or getattr(kind, "_is_protocol", False) or inspect.isabstract(kind):
        return True
    return is_dataclass(kind) and not hasattr(kind, "__post_init__")


def methods(kind: type) -> Iterator[str]:
    """Yield the public methods of ours that take an argument beside the object."""
    for name in dir(kind):
        raw = inspect.getattr_static(kind, name)
        function = raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if not function.__module__.startswith("mbcasadi"):
            continue
        if isinstance(raw, staticmethod) or len(inspect.signature(function).parameters) > 1:
            yield name


def public() -> dict[str, object]:
    """Return what a test has to call, by path."""
    result = {}
    for path, value in homes().items():
        if inspect.isfunction(value):
            result[path] = value
            continue
        if not is_data(value):
            result[path] = value
        result |= {f"{path}.{name}": getattr(value, name) for name in methods(value)}
    return result
