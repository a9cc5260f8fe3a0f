"""Videos of a motion, and its playback in MuJoCo's viewer."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import ProblemError, RenderingError, ShapeError
from mbcasadi.extras import require_extra
from mbcasadi.plant.api import Source, compile_model
from mbcasadi.plant.draw import render
from mbcasadi.plant.mocap import mocap_rows

Array = NDArray[np.float64]

FORMATS = {".mp4": ("imageio", "imageio_ffmpeg"), ".gif": ("imageio",)}
"""Suffix of a video → modules that write it."""


@dataclass(frozen=True)
class VideoOptions:
    """How a motion is shown.

    Attributes:
        camera: name of one of the model; by default one that has the whole motion in its frame.
        width, height: pixels, rounded up to even numbers.
        fps: pictures in a second of the video.
        speed: seconds of the motion in a second of the video.

    Raises:
        ProblemError: a number that is not positive.
    """

    camera: str = ""
    width: int = 640
    height: int = 480
    fps: float = 30.0
    speed: float = 1.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(fps=self.fps, speed=self.speed)


@checked
def save_video(
    model: Source,
    t: ArrayLike,
    q: ArrayLike,
    path: str | Path,
    options: VideoOptions | None = None,
    *,
    mocap: ArrayLike | None = None,
) -> Path:
    """Write a motion as `.mp4` or `.gif`, rendered without a window; return the path.

    `save_video("arm.xml", trajectory.t, trajectory.q, "arm.mp4")` shows what `simulate` returned;
    `Report.video` shows a validated run. Between two rows the joints move evenly.

    Args:
        model: of the scene; geoms as in `draw_frames`.
        t: (nt,) s, not decreasing.
        q: (nt, nq) configurations.
        path: replaced once the video is complete.
        options: camera, size and speed.
        mocap: (nt, 7 nmocap) poses of mocap bodies; those of the model by default.

    Raises:
        ProblemError: another suffix, no such folder, falling times.
        ShapeError: t, q and mocap do not fit together, or to the model.
        UnknownNameError: the model has no such camera.
        MissingExtraError: imageio, or its ffmpeg for mp4, is not installed.
        RenderingError: no renderer works here.
    """
    target, compiled = Path(path), compile_model(model)
    require_video(target)
    o = options or VideoOptions()
    step = o.speed / o.fps
    poses = poses_between(compiled, t, q, step)
    times = np.asarray(t, dtype=float).reshape(-1)
    held = mocap_rows(compiled, mocap, times.size)[_rows_between(times, step)[1]]
    size = {"width": o.width + o.width % 2, "height": o.height + o.height % 2}
    with tempfile.TemporaryDirectory(prefix=".video-", dir=target.absolute().parent) as folder:
        made = Path(folder) / f"video{target.suffix}"
        reason = render(
            compiled, poses, made.parent, o.camera, size | {"video": made.name, "fps": o.fps}, held
        )
        if reason:
            raise RenderingError(f"{target} was not written: {reason}")
        made.replace(target)
    return target


def require_positive(**numbers: float) -> None:
    """Raise unless all are positive and finite.

    Raises:
        ProblemError: one is not; the message has its name.
    """
    for name, value in numbers.items():
        if not 0 < value < np.inf:
            raise ProblemError(f"{name} is {value}; expected a positive number")


def require_video(path: Path) -> None:
    """Raise unless a video can be encoded and written there.

    Raises:
        ProblemError: another suffix, or no such folder.
        MissingExtraError: an encoder is not installed.
    """
    if path.suffix not in FORMATS:
        raise ProblemError(f"{path}: a video is written as {' or '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise ProblemError(f"cannot write {path}: there is no folder {path.absolute().parent}")
    require_extra("video", f"a video as {path.suffix}", *FORMATS[path.suffix])


def poses_between(model: mujoco.MjModel, t: ArrayLike, q: ArrayLike, step: float) -> Array:
    """Return (n, nq) configurations at even times, from the first time to the last.

    Args:
        model: of q.
        t: (nt,) s, not decreasing.
        q: (nt, nq).
        step: s.

    Raises:
        ShapeError: t and q do not fit together, or to the model.
        ProblemError: falling times.
    """
    times, poses = require_rows(model, t, q)
    even, before = _rows_between(times, step)
    result: Array = poses[before].copy()
    velocity = np.zeros(model.nv)
    for row, k, now in zip(result, before.tolist(), even.tolist(), strict=True):
        if k + 1 < times.size and now > times[k]:
            mujoco.mj_differentiatePos(
                model, velocity, times[k + 1] - times[k], poses[k], poses[k + 1]
            )
            mujoco.mj_integratePos(model, row, velocity, now - times[k])
    return result


def require_rows(model: mujoco.MjModel, t: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Return the times (nt,) and configurations (nt, nq) of a motion as arrays.

    Raises:
        ShapeError: t and q do not fit together, or to the model.
        ProblemError: falling times.
    """
    times, poses = np.asarray(t, dtype=float).reshape(-1), np.asarray(q, dtype=float)
    if poses.shape != (times.size, model.nq) or not times.size:
        raise ShapeError(
            f"t has shape {np.shape(t)} and q {poses.shape}, expected (nt,) and (nt, {model.nq})"
        )
    if not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise ProblemError("t falls or is not finite; expected times that do not decrease")
    return times, poses


def _rows_between(times: Array, step: float) -> tuple[Array, NDArray[np.int64]]:
    """Return (n,) even times, and the row that is the last one at each of them."""
    even = times[0] + step * np.arange(int((times[-1] - times[0]) / step + 1e-9) + 1)
    before = np.clip(np.searchsorted(times, even, side="right") - 1, 0, times.size - 1)
    return even, before
