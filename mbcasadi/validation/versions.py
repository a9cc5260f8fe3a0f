"""The versions that a report was made with."""

import platform
from importlib import metadata


def package_versions() -> dict[str, str]:
    """Return name → version of Python, this machine and the packages of a report."""
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for name in ("mbcasadi", "casadi", "mujoco", "numpy"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # run from a source tree
            versions[name] = "not installed"
    return versions
