"""Compiled models as bytes: to send them, and to know them again."""

import mujoco
import numpy as np


def model_bytes(model: mujoco.MjModel) -> bytes:
    """Return a compiled model with its meshes, in MuJoCo's binary format."""
    buffer = np.zeros(mujoco.mj_sizeModel(model), dtype=np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def model_of_bytes(content: bytes) -> mujoco.MjModel:
    """Return the model of `model_bytes`."""
    return mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": content})
