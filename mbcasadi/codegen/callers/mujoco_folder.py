"""Headers and library in a folder of MuJoCo."""

from pathlib import Path

from mbcasadi.errors import ExportError

LIBRARIES = ("libmujoco*.so*", "libmujoco*.dylib", "mujoco*.dll")
HEADER = Path("include") / "mujoco" / "mujoco.h"


def mujoco_files(folder: Path) -> tuple[Path, Path]:
    """Return the folder of MuJoCo's headers, and its library.

    Raises:
        ExportError: they are not there.
    """
    places = (folder, folder / "lib", folder / "bin")
    found = [path for place in places for pattern in LIBRARIES for path in place.glob(pattern)]
    if not (folder / HEADER).is_file() or not found:
        raise ExportError(
            f"{folder} holds no {HEADER.as_posix()} with MuJoCo's library; give the folder of the "
            "Python package, mujoco.__path__[0], or that of a release"
        )
    return (folder / "include").absolute(), min(found).absolute()
