"""Names of a package that are imported when they are first used (PEP 562).

A package states its names once, by imports under `TYPE_CHECKING`, which type checkers and editors
read; `lazy_names` reads the same lines when the first name is needed. Until then the package loads
nothing:

    if TYPE_CHECKING:
        from mbcasadi.validation.trial import Trial
    else:
        __getattr__, __dir__ = lazy_names(__name__)

No file of the package may have one of the names: importing it would set the name to the file.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import get_data


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package, by its `__name__`."""

    def named(name: str) -> object:
        """Return a name of the package, importing it now."""
        if name not in homes_of(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes_of(package)[name]
        if home == package:  # a package within this one
            return import_module(f"{package}.{name}")
        value: object = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        """Return the names of the package, imported or not, and those of Python."""
        of_python = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*of_python, *homes_of(package)})

    return named, names


@cache
def homes_of(package: str) -> dict[str, str]:
    """Return each name that a package imports under `TYPE_CHECKING`, with the module it is from."""
    return dict(_homes(ast.parse(get_data(package, "__init__.py") or b"")))


def _homes(module: ast.Module) -> Iterator[tuple[str, str]]:
    for block in module.body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    yield from ((each.name, line.module) for each in line.names)
