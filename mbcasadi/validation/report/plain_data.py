"""Report data in the types of JSON, and the versions that a report was made with."""

import math
import platform
from importlib import metadata
from typing import Any

import numpy as np


def versions() -> dict[str, str]:
    """Return the versions that a report was made with."""
    names = ("mbcasadi", "casadi", "mujoco", "numpy")
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # run from a source tree
            found[name] = "not installed"
    return found


def plain(data: Any) -> Any:
    """Return `data` in the types of JSON; NaN and infinity become None."""
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    if isinstance(data, np.ndarray | np.generic):
        return plain(data.tolist())
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    return data
