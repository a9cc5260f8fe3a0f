"""Small, mesh-free MuJoCo models for the examples, the tests and the benchmarks.

The first comment of each file gives the source of its dimensions.

Example:
    >>> from mbcasadi import models
    >>> "four_bar" in models.names()
    True
    >>> models.path("four_bar").suffix
    '.xml'
"""

from pathlib import Path

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ModelError
from mbcasadi.unknown_names import closest, unknown_name

__all__: list[str] = []
NOT_STARRED = ("find", "names", "path")
"""Public names that `import *` leaves out: they are words that people have variables of."""

_HERE = Path(__file__).resolve().parent
_REPOSITORY = _HERE.parents[1] / "mujoco_models"
_FOLDER = _HERE if any(_HERE.glob("*.xml")) else _REPOSITORY
"""A wheel holds the files beside this module; an editable install reads those of the repository."""


def names() -> tuple[str, ...]:
    """Return the names of all models, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.xml")))


@checked
def path(name: str) -> Path:
    """Return the MJCF file of the model `name` (with or without `.xml`).

    Raises:
        UnknownNameError: there is no such model; the message lists the valid names.
    """
    stem = name.removesuffix(".xml")
    if stem not in names():
        raise unknown_name("model", stem, names())
    return _FOLDER / f"{stem}.xml"


@checked
def find(source: str | Path) -> Path:
    """Return the file of a model: the one at a path, or one of the package by its name.

    A file of the folder has precedence. The name may end with `.xml`, and has no folder.

    Raises:
        ModelError: there is neither; the message lists the names, and a close one.
    """
    file = Path(source)
    if file.is_file():
        return file
    stem = file.name.removesuffix(".xml")
    if file.parent != Path():
        advice = ""
    elif stem in names():
        return _FOLDER / f"{stem}.xml"
    else:
        close = closest(stem, names(), 1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        advice = f": {', '.join(names())}{meant}"
    raise ModelError(
        f"no file '{source}'; expected the path of an MJCF or URDF file, XML text, or "
        f"the name of a model of the package{advice}"
    )
