"""The models in a tree of folders: MJCF files that are whole models, and URDF files.

A file counts by its root element, not by its name: `mujoco` is a model in MJCF, `robot` one in
URDF, `mujocoinclude` is a part of a model. A file that another one includes is a part as well: what
it holds is compared where it is included. Other XML files (scenes of other programs, tables, ...)
are no models.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from mbcasadi.errors import ModelError

Kind = Literal["MJCF", "URDF", "part", "none"]

SUFFIXES = (".xml", ".mjcf", ".urdf")
KIND_OF_ROOT: Mapping[str, Kind] = {"mujoco": "MJCF", "robot": "URDF", "mujocoinclude": "part"}
ROOT = re.compile(rb"<(mujocoinclude|mujoco|robot)[\s>/]")


@dataclass(frozen=True)
class CorpusFiles:
    """The files of a corpus.

    Attributes:
        models: path of each model, sorted.
        parts: path of each part of a model → path of a file that includes it; the part itself where
            none does.
    """

    models: tuple[Path, ...]
    parts: Mapping[Path, Path]


def corpus_files(folder: Path) -> CorpusFiles:
    """Return the models and the parts of models below a folder.

    Raises:
        ModelError: there is no such folder, or no model in it.
    """
    if not folder.is_dir():
        raise ModelError(f"no folder '{folder}'; expected a folder with MJCF or URDF files")
    kinds = {path: kind_of(path) for path in _candidates(folder)}
    parts = {path: path for path, kind in kinds.items() if kind == "part"}
    for path, kind in kinds.items():
        if kind == "MJCF":
            parts |= dict.fromkeys(_included(path), path)
    parts = {path: by for path, by in sorted(parts.items()) if path in kinds}
    models = [p for p, kind in kinds.items() if kind in {"MJCF", "URDF"} and p not in parts]
    if not models:
        raise ModelError(
            f"no model in '{folder}': expected a file with the root element <mujoco> or <robot>, "
            f"with a name that ends with {', '.join(SUFFIXES)}"
        )
    return CorpusFiles(tuple(models), parts)


def kind_of(path: Path) -> Kind:
    """Return what a file is; one whose XML is broken counts by what it begins with."""
    try:
        for _, element in ElementTree.iterparse(path, events=("start",)):
            tag = element.tag.rpartition("}")[2]
            return KIND_OF_ROOT.get(tag, "none")
    except (ElementTree.ParseError, ValueError, LookupError):  # LookupError: unknown encoding
        start = ROOT.search(path.read_bytes())
        return "none" if start is None else KIND_OF_ROOT[start.group(1).decode()]
    return "none"


def format_of(path: Path) -> Literal["MJCF", "URDF"]:
    """Return the format of a model."""
    return "URDF" if kind_of(path) == "URDF" else "MJCF"


def _candidates(folder: Path) -> list[Path]:
    """Return files that may be models; links to folders are not followed, so there is no circle."""
    return sorted(
        Path(parent).resolve() / name
        for parent, _, names in os.walk(folder)
        for name in names
        if Path(name).suffix.lower() in SUFFIXES and (Path(parent) / name).is_file()
    )


def _included(model: Path) -> set[Path]:
    """Return all files that a model includes, and those that these include."""
    found: set[Path] = set()
    pending = [model]
    while pending:
        for path in _includes_of(pending.pop(), model.parent) - found - {model}:
            found.add(path)
            pending.append(path)
    return found


def _includes_of(path: Path, top: Path) -> set[Path]:
    """Return the files that a file includes itself.

    Args:
        path: of the file.
        top: folder of the model; MuJoCo counts names from there, also in an included file.
    """
    try:
        names = [e.get("file", "") for e in ElementTree.parse(path).iter("include")]
    except (ElementTree.ParseError, ValueError, LookupError):
        return set()
    places = [[(folder / name).resolve() for folder in (top, path.parent)] for name in names]
    return {path for path in (_first_file(both) for both in places) if path is not None}


def _first_file(paths: list[Path]) -> Path | None:
    return next((path for path in paths if path.is_file()), None)
