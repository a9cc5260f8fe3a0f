"""The process behind `draw_frames`: run as a script, it imports nothing but MuJoCo and NumPy."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Run by its path, this folder comes first, and would shadow modules of the same names.
    sys.path.pop(0)

import mujoco
import numpy as np


def main() -> None:
    """Read model.mjb and task.npz from the working directory, write frames.npy."""
    model = mujoco.MjModel.from_binary_path("model.mjb")
    task = np.load("task.npz")
    width, height = (int(s) for s in task["size"])
    # The off-screen buffer is as large as the model sets it, 640 x 480 by default.
    model.vis.global_.offwidth = max(width, model.vis.global_.offwidth)
    model.vis.global_.offheight = max(height, model.vis.global_.offheight)
    data = mujoco.MjData(model)
    camera = str(task["camera"]) or (0 if model.ncam else -1)
    frames = []
    with mujoco.Renderer(model, height, width) as renderer:
        for q in task["q"]:
            data.qpos[:] = q
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            frames.append(renderer.render().copy())
    np.save(Path("frames.npy"), np.array(frames))


if __name__ == "__main__":
    main()
