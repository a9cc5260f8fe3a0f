"""Frames of a simulation, rendered by MuJoCo without a window.

The renderer runs in a process of its own: the graphics library that MuJoCo uses is fixed when it
is imported (`MUJOCO_GL`), some drivers abort a process instead of raising, and neither should
affect the caller's. Where no renderer works, the reason is returned.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.plant.mocap import mocap_rows
from mbcasadi.plant.scene import fitted_camera, shown_model
from mbcasadi.platforms import platform_of
from mbcasadi.real_numbers import real_array
from mbcasadi.short_text import summarised
from mbcasadi.unknown_names import unknown_name

_SCRIPT = Path(__file__).with_name("draw_process.py")
_TIME_LIMIT = 120.0  # s to start with
_FRAME_LIMIT = 2.0  # s for each frame; software rendering needs about 0.1 s
NO_MARKS = np.zeros((0, 0, 6))


@summarised
@dataclass(frozen=True)
class Frames:
    """Pictures, or the reason why there are none.

    Attributes:
        images: (n, height, width, 3) 8-bit colours, or None.
        reason: "" or why there is no picture.
    """

    images: NDArray[np.uint8] | None
    reason: str = ""


@checked
def draw_frames(
    model: mujoco.MjModel,
    q: NDArray[np.float64],
    *,
    width: int = 640,
    height: int = 480,
    camera: str = "",
    mocap: ArrayLike | None = None,
    marks: ArrayLike | None = None,
) -> Frames:
    """Render one frame for each configuration.

    `MUJOCO_GL` is respected (egl, osmesa, glfw); without it, egl and then osmesa are tried. Bodies
    without visible geoms show their collision geoms, and those without any a link to their parent.

    Args:
        model: of the scene.
        q: (n, nq) configurations.
        width, height: pixels.
        camera: name of one of the model; by default a free one that has all moving bodies in its
            frame, at all configurations.
        mocap: (n, 7 nmocap) poses of mocap bodies; those of the model by default.
        marks: (n, k, 6) balls in each frame: place in the world, m, then red, green and blue from 0
            to 1; none by default. With marks what moves is translucent.

    Raises:
        ShapeError: q, mocap or marks have another shape.
        ProblemError: less than one pixel, or no configuration.
        UnknownNameError: the model has no such camera.
    """
    with tempfile.TemporaryDirectory() as folder:
        size = {"width": width, "height": height}
        balls = _marks(marks, len(np.atleast_2d(q)))
        reason = render(model, q, Path(folder), camera, size, mocap, balls)
        return Frames(None, reason) if reason else Frames(np.load(Path(folder) / "frames.npy"))


def _marks(marks: ArrayLike | None, frames: int) -> NDArray[np.float64]:
    """Return marks (n, k, 6), or none."""
    if marks is None:
        return NO_MARKS
    balls = real_array("marks", marks)
    if balls.ndim != 3 or balls.shape[::2] != (frames, 6) or not np.all(np.isfinite(balls)):
        raise ShapeError(f"marks has shape {balls.shape}, expected ({frames}, k, 6), all finite")
    return balls


def render(
    model: mujoco.MjModel,
    q: NDArray[np.float64],
    folder: Path,
    camera: str,
    options: Mapping[str, object],
    mocap: ArrayLike | None = None,
    marks: NDArray[np.float64] = NO_MARKS,
) -> str:
    """Render into `folder`, as frames.npy or a video; return "" or why it was not possible.

    Args:
        model, q, camera, mocap, marks: as in `draw_frames`.
        folder: empty, for all files.
        options: `width` and `height`; for a video `video` (file name in the folder) and `fps`.
    """
    q = np.atleast_2d(np.asarray(q, dtype=float))
    if q.ndim != 2 or q.shape[1] != model.nq:
        raise ShapeError(f"q has shape {q.shape}, expected (n, {model.nq})")
    poses = mocap_rows(model, mocap, len(q))
    width, height = (int(str(options[side])) for side in ("width", "height"))
    if min(width, height, len(q)) < 1:
        raise ProblemError(
            f"{len(q)} pictures of {width} x {height} pixels; expected at least one of each"
        )
    require_camera(model, camera)
    shown = shown_model(model)
    view = camera or asdict(fitted_camera(shown, q, width / height))
    mujoco.mj_saveModel(shown, str(folder / "model.mjb"))
    np.savez(folder / "task.npz", q=q, mocap=poses, marks=marks)
    task = {"video": "", "fps": 0} | dict(options) | {"camera": view}
    (folder / "options.json").write_text(json.dumps(task), encoding="utf-8")
    chosen, reasons = os.environ.get("MUJOCO_GL", ""), []
    for library in (chosen,) if chosen else platform_of().renderers:
        reason = _draw_in_process(folder, library, _TIME_LIMIT + _FRAME_LIMIT * len(q))
        if not reason:
            return ""
        reasons.append(f"{library}: {reason}")
    return "no renderer (" + "; ".join(reasons) + ")"


def require_camera(model: mujoco.MjModel, camera: str) -> None:
    """Raise unless the model has this camera, or it is "".

    Raises:
        UnknownNameError: it has none; the message lists those that it has.
    """
    known = [model.camera(i).name for i in range(model.ncam)]
    if camera and camera not in known:
        raise unknown_name("camera", camera, known)


def _draw_in_process(folder: Path, library: str, time_limit: float) -> str:
    """Render into `folder`; return "" or the last line of the process's error output."""
    environment = {**os.environ, "MUJOCO_GL": library}
    if library in {"egl", "osmesa"}:
        environment["PYOPENGL_PLATFORM"] = library
    try:
        process = subprocess.run(
            [sys.executable, str(_SCRIPT)],
            cwd=folder,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=time_limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"took more than {time_limit:g} s"
    if process.returncode == 0:
        return ""
    lines = [text for text in process.stderr.splitlines() if text and not text.startswith(" ")]
    return lines[-1] if lines else f"stopped with status {process.returncode}"
