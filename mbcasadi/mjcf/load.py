"""Compiles any source to an `MjModel`, with the warnings of MuJoCo's compiler.

MuJoCo writes its warnings to the console and to a file in the working directory unless a
handler receives them. Here a handler receives them while the compiler runs.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import mujoco

from mbcasadi import models
from mbcasadi.errors import ModelError, compiler_error
from mbcasadi.mjcf.model_checks import require_size, require_text_names

Source: TypeAlias = str | os.PathLike[str] | mujoco.MjSpec | mujoco.MjModel


def load(source: Source) -> tuple[mujoco.MjModel, tuple[str, ...]]:
    """Compile `source` and return the model with the compiler's warnings.

    Args:
        source: path of an MJCF, URDF or MJB file, the name of a model of the package, XML text
            (anything that starts with `<`), `mujoco.MjSpec` or `mujoco.MjModel`, which is returned
            as it is.

    Raises:
        ModelError: the file does not exist, MuJoCo refuses it (its message is kept), it has more
            bodies than MuJoCo compiles in a reasonable time, or names that are not UTF-8.
    """
    if isinstance(source, mujoco.MjModel):
        require_text_names(source)
        return source, ()
    source = readable_source(source)
    require_size(source)
    with capture_warnings() as messages:
        try:
            model = _compile(source)
        except (ValueError, mujoco.FatalError) as error:
            raise compiler_error(label(source), error) from error
    require_text_names(model)
    return model, tuple(messages)


def is_text(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is XML text rather than a path."""
    return isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<")


@contextmanager
def capture_warnings() -> Iterator[list[str]]:
    """Collect MuJoCo's warnings in a list, each once, in place of console and log file."""
    messages: list[str] = []

    def keep(message: str) -> None:
        if message not in messages:
            messages.append(message)

    previous = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(keep)
    try:
        # `MjSpec.compile` repeats them as Python warnings
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            yield messages
        for warning in raised:
            keep(str(warning.message))
    finally:
        mujoco.set_mju_user_warning(previous)


def readable_source(source: object) -> str | Path | mujoco.MjSpec:
    """Return a spec or XML text as it is, and a path or the name of a model as the path of a file.

    Raises:
        ModelError: none of these; or there is no such file, and no model of that name.
    """
    if isinstance(source, mujoco.MjSpec):
        return source
    if not isinstance(source, (str, os.PathLike)):
        raise ModelError(
            f"the model is of type {type(source).__name__}; expected a path, XML text, "
            "mujoco.MjSpec or mujoco.MjModel"
        )
    return source if isinstance(source, str) and is_text(source) else models.find(os.fspath(source))


def _compile(source: str | os.PathLike[str] | mujoco.MjSpec) -> mujoco.MjModel:
    if isinstance(source, mujoco.MjSpec):
        return source.compile()
    if isinstance(source, str) and is_text(source):
        return mujoco.MjModel.from_xml_string(source)
    path = Path(source)
    if path.suffix.lower() == ".mjb":
        return mujoco.MjModel.from_binary_path(str(path))
    return mujoco.MjModel.from_xml_path(str(path))


def label(source: Source) -> str:
    """Return what messages call a source."""
    if isinstance(source, mujoco.MjModel):
        return "an MjModel"
    if isinstance(source, mujoco.MjSpec):
        return f"the MjSpec '{source.modelname}'"
    return "the XML text" if is_text(source) else f"'{os.fspath(source)}'"
