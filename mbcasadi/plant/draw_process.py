"""The process behind `draw_frames` and `save_video`, run as a script.

It imports nothing but MuJoCo and NumPy, and imageio for a video.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Run by its path, this folder comes first, and would shadow modules of the same names.
    sys.path.pop(0)

import mujoco
import numpy as np

BACKGROUND = 236  # grey level where a model has no sky; MuJoCo leaves it black
LINK_COLOR = (0.36, 0.52, 0.72, 1.0)
LINK_WIDTH = 0.02  # of the model's extent: bodies without geoms are drawn as links
MARK_SIZE = 0.035  # of the size of the bodies


def main() -> None:
    """Read model.mjb, task.npz and options.json from the working directory; write the result."""
    model = mujoco.MjModel.from_binary_path("model.mjb")
    with np.load("task.npz") as task:
        q, mocap, marks = task["q"], task["mocap"], task["marks"]
    options = json.loads(Path("options.json").read_text(encoding="utf-8"))
    if not options["video"]:
        np.save(Path("frames.npy"), np.array(list(frames_of(model, q, mocap, marks, options))))
        return
    import imageio.v2 as imageio

    video: dict[str, Any] = {"fps": options["fps"]}
    if options["video"].endswith(".gif"):
        video = {"duration": 1000 / options["fps"], "loop": 0}
    else:
        video |= {"macro_block_size": 2, "quality": 7}
    writer: Any = imageio.get_writer(options["video"], **video)
    with writer:
        for frame in frames_of(model, q, mocap, marks, options):
            writer.append_data(frame)


def frames_of(
    model: mujoco.MjModel,
    q: np.ndarray,
    mocap: np.ndarray,
    marks: np.ndarray,
    options: dict[str, Any],
) -> Iterator[np.ndarray]:
    """Yield a picture (height, width, 3) of each configuration, with mocap bodies and marks."""
    width, height = options["width"], options["height"]
    # The off-screen buffer is as large as the model sets it, 640 x 480 by default.
    model.vis.global_.offwidth = max(width, model.vis.global_.offwidth)
    model.vis.global_.offheight = max(height, model.vis.global_.offheight)
    camera = camera_of(options["camera"])
    if isinstance(camera, mujoco.MjvCamera):  # clipping planes and shadows are by the extent
        model.stat.extent = max(model.stat.extent, camera.distance / 10)
    data, links = mujoco.MjData(model), links_of(model)
    sky = model.ntex and (model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX).any()
    look = mujoco.MjvOption()
    look.flags[mujoco.mjtVisFlag.mjVIS_TRANSPARENT] = len(marks) > 0  # balls within a body are seen
    with mujoco.Renderer(model, height, width) as renderer:
        for k, row in enumerate(q):
            data.qpos[:] = row
            poses = mocap[k].reshape(model.nmocap, 7)
            data.mocap_pos, data.mocap_quat = poses[:, :3], poses[:, 3:]
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera, look)
            add_links(renderer.scene, model, data, links)
            add_marks(renderer.scene, marks[k] if len(marks) else marks, size_of(data))
            frame = renderer.render().copy()
            if not sky:
                renderer.enable_segmentation_rendering()
                frame[renderer.render()[..., 0] < 0] = BACKGROUND
                renderer.disable_segmentation_rendering()
            yield frame


def camera_of(choice: Any) -> Any:
    """Return a camera by name, or a free one."""
    if isinstance(choice, str):
        return choice
    camera = mujoco.MjvCamera()
    camera.lookat[:] = choice["lookat"]
    camera.distance, camera.azimuth = choice["distance"], choice["azimuth"]
    camera.elevation = choice["elevation"]
    return camera


def links_of(model: mujoco.MjModel) -> list[int]:
    """Return the moving bodies that have no geom."""
    return [
        body
        for body in range(1, model.nbody)
        if model.body_weldid[body] and not model.body_geomnum[body]
    ]


def add_links(
    scene: mujoco.MjvScene, model: mujoco.MjModel, data: mujoco.MjData, bodies: list[int]
) -> None:
    """Draw a capsule from each body to its parent, and one to its centre of mass."""
    width = LINK_WIDTH * size_of(data)
    for body in bodies:
        parent = int(model.body_parentid[body])
        ends = [data.xipos[body]]
        if model.body_weldid[parent] or model.body_dofnum[body] < 6:
            ends.append(data.xpos[parent] if parent else data.xpos[body])
        for end in ends:
            if scene.ngeom >= scene.maxgeom:
                return
            geom = scene.geoms[scene.ngeom]
            same = np.linalg.norm(end - data.xpos[body]) < width
            kind = mujoco.mjtGeom.mjGEOM_SPHERE if same else mujoco.mjtGeom.mjGEOM_CAPSULE
            mujoco.mjv_initGeom(
                geom, kind, np.full(3, 1.2 * width), data.xpos[body], np.eye(3).ravel(),
                np.array(LINK_COLOR, dtype=np.float32),
            )  # fmt: skip
            if not same:
                mujoco.mjv_connector(geom, kind, width, data.xpos[body], end)
            scene.ngeom += 1


def add_marks(scene: mujoco.MjvScene, marks: np.ndarray, size: float) -> None:
    """Draw a ball at each mark (x, y, z, red, green, blue)."""
    for mark in marks:
        if scene.ngeom >= scene.maxgeom:
            return
        color = np.array([*mark[3:], 1.0], dtype=np.float32)
        ball, turn = np.full(3, MARK_SIZE * size), np.eye(3).ravel()
        kind = mujoco.mjtGeom.mjGEOM_SPHERE
        mujoco.mjv_initGeom(scene.geoms[scene.ngeom], kind, ball, mark[:3], turn, color)
        scene.ngeom += 1


def size_of(data: mujoco.MjData) -> float:
    """Return the largest distance of a body's centre of mass from their mean, m."""
    centres = data.xipos[1:]
    return max(float(np.linalg.norm(centres - centres.mean(axis=0), axis=1).max(initial=0)), 0.05)


if __name__ == "__main__":
    main()
