"""Models of Python packages: those of dm_control's suite, Gymnasium's and robosuite's."""

from importlib.util import find_spec
from pathlib import Path

COLLECTIONS = {
    "dm_control": "suite",
    "gymnasium": "envs/mujoco/assets",
    "robosuite": "models/assets/robots",
}
"""Folder of the models in each package."""

NO_MODEL = ("common", "deprecated")
"""Parts of paths of files that others include, or of an earlier simulator."""


def models_of(package: str) -> list[Path]:
    """Return the MJCF files of a package that are robots of their own.

    Raises:
        SystemExit: the package is not installed.
    """
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"{package} is not installed: pip install {package.replace('_', '-')}")
    root = Path(found.submodule_search_locations[0]) / COLLECTIONS[package]
    files = sorted(root.rglob("*.xml"))
    return [path for path in files if not {*path.relative_to(root).parts} & {*NO_MODEL}]


def name_of(model: Path) -> str:
    """Return what a robot is called: its file, or its folder where all files have one name."""
    return model.parent.name if model.stem == "robot" else model.stem
