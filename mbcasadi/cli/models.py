"""Models by path, or by the name of one that comes with the package."""

from pathlib import Path

import mujoco_models
from mbcasadi.errors import ModelError


def locate(model: str) -> Path:
    """Return the file of `model`: a path, or the name of a model of `mujoco_models`.

    Raises:
        ModelError: there is neither such a file nor such a name; the message lists the names.
    """
    path = Path(model)
    if path.is_file():
        return path
    if path.parent == Path() and model.removesuffix(".xml") in mujoco_models.names():
        return mujoco_models.path(model)
    raise ModelError(
        f"model '{model}' not found: expected an MJCF or URDF file, or one of the models that "
        f"come with the package: {', '.join(mujoco_models.names())}"
    )
