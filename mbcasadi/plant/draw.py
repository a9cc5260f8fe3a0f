"""Frames of a simulation, rendered by MuJoCo without a window.

The renderer runs in a process of its own: the graphics library that MuJoCo uses is fixed when it
is imported (`MUJOCO_GL`), some drivers abort a process instead of raising, and neither should
affect the caller's. Where no renderer works, the reason is returned.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ShapeError
from mbcasadi.short_text import summarised

_SCRIPT = Path(__file__).with_name("draw_process.py")
_TIME_LIMIT = 120.0  # s for all frames; software rendering needs about 0.1 s for each


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
) -> Frames:
    """Render one frame for each configuration.

    `MUJOCO_GL` is respected (egl, osmesa, glfw); without it, egl and then osmesa are tried.

    Args:
        model: of the scene.
        q: (n, nq) configurations.
        width, height: pixels.
        camera: name; the model's first camera by default.

    Raises:
        ShapeError: q has another number of columns.
    """
    q = np.atleast_2d(np.asarray(q, dtype=float))
    if q.shape[1] != model.nq:
        raise ShapeError(f"q has shape {q.shape}, expected (n, {model.nq})")
    chosen = os.environ.get("MUJOCO_GL", "")
    reasons = []
    with tempfile.TemporaryDirectory() as folder:
        mujoco.mj_saveModel(model, str(Path(folder) / "model.mjb"))
        np.savez(Path(folder) / "task.npz", q=q, size=(width, height), camera=camera)
        for library in [chosen] if chosen else ["egl", "osmesa"]:
            reason = _draw_in_process(Path(folder), library)
            if not reason:
                return Frames(np.load(Path(folder) / "frames.npy"))
            reasons.append(f"{library}: {reason}")
    return Frames(None, "no renderer (" + "; ".join(reasons) + ")")


def _draw_in_process(folder: Path, library: str) -> str:
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
            text=True,
            timeout=_TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"took more than {_TIME_LIMIT:g} s"
    if process.returncode == 0:
        return ""
    lines = [text for text in process.stderr.splitlines() if text and not text.startswith(" ")]
    return lines[-1] if lines else f"stopped with status {process.returncode}"
