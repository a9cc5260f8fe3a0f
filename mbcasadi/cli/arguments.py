"""Arguments of the commands: models, numbers by name, files to write."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mbcasadi import models
from mbcasadi.errors import ModelError, ProblemError

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.validation import Push


def find_model(model: str) -> Path:
    """Return the file of `model`: a path, or the name of a model of the package.

    Raises:
        ModelError: there is neither such a file nor such a name; the message lists the names.
    """
    path = Path(model)
    if path.is_file():
        return path
    if path.parent == Path() and model.removesuffix(".xml") in models.names():
        return models.path(model)
    raise ModelError(
        f"model '{model}' not found: expected an MJCF or URDF file, or one of the models that "
        f"come with the package: {', '.join(models.names())}"
    )


def parse_numbers(texts: list[str] | None) -> dict[str, float] | None:
    """Return `["mass=0.1"]` as `{"mass": 0.1}`; None without texts.

    Raises:
        ProblemError: not of the form NAME=NUMBER.
    """
    if not texts:
        return None
    result = {}
    for text in texts:
        name, sign, number = text.partition("=")
        try:
            result[name.strip()] = float(number)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise ProblemError(f"'{text}': expected NAME=NUMBER, such as mass=0.1")
    return result


def parse_ranges(texts: list[str] | None) -> dict[str, tuple[float, float]]:
    """Return `["mass=-0.1:0.2"]` as `{"mass": (-0.1, 0.2)}`.

    Raises:
        ProblemError: not of the form NAME=LOWEST:HIGHEST.
    """
    result = {}
    for text in texts or ():
        name, _, ends = text.partition("=")
        lowest, _, highest = ends.partition(":")
        try:
            result[name.strip()] = (float(lowest), float(highest))
        except ValueError as error:
            raise ProblemError(
                f"'{text}': expected NAME=LOWEST:HIGHEST, such as mass=-0.1:0.2"
            ) from error
    return result


def parse_pushes(texts: list[str] | None) -> "list[Push] | None":
    """Return `["trunk=0,50,0@0.5:0.7"]` as pushes; None without texts.

    Raises:
        ProblemError: not of the form BODY=FX,FY,FZ@START:STOP, or a push that cannot act.
    """
    if not texts:
        return None
    return [_parse_push(text) for text in texts]


def _parse_push(text: str) -> "Push":
    from mbcasadi.validation import Push

    body, _, rest = text.rpartition("=")
    force, _, times = rest.partition("@")
    try:
        x, y, z = (float(number) for number in force.split(","))
        start, stop = (float(number) for number in times.split(":"))
        if not body.strip():
            raise ValueError("no body")
    except ValueError as error:
        raise ProblemError(
            f"'{text}': expected BODY=FX,FY,FZ@START:STOP in N and s, such as trunk=0,50,0@0.5:0.7"
        ) from error
    return Push(body.strip(), (x, y, z), start, stop)


def require_writable(path: Path) -> None:
    """Raise unless a report can be written to `path`, before a long run.

    Raises:
        ProblemError: the suffix is neither .html nor .json, or the folder is not writable.
    """
    if path.suffix not in {".html", ".json"}:
        raise ProblemError(f"{path}: expected a report file that ends with .html or .json")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ProblemError(f"cannot write {path}: {folder} is no folder that can be written to")
