"""Where the models of published robots lie: `--models FOLDER`, `MBCASADI_ROBOTS`, or beside us."""

import argparse
import os
from pathlib import Path

VARIABLE = "MBCASADI_ROBOTS"
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "models"


def folder() -> Path:
    """Return the folder of the models."""
    return Path(os.environ.get(VARIABLE) or BESIDE)


def path(name: str) -> Path:
    """Return the path of a robot's model.

    Args:
        name: of its file, without ".xml".

    Raises:
        SystemExit: there is no such file; names it and the folder.
    """
    found = folder() / f"{name}.xml"
    if not found.is_file():
        raise SystemExit(
            f"no {found.name} in {folder()}; give its folder by --models or {VARIABLE}"
        )
    return found


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--models FOLDER` to a command."""
    parser.add_argument(
        "--models",
        type=_set_folder,
        metavar="FOLDER",
        help=f"of the robots' models; otherwise {VARIABLE}, or {BESIDE}",
    )


def _set_folder(text: str) -> str:
    """Put the folder into the environment, where processes that start later find it."""
    os.environ[VARIABLE] = text
    return text
