"""MuJoCo's viewer, live during a run, or for a motion that is known."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import MissingExtraError, RenderingError
from mbcasadi.plant.api import Source, compile_model
from mbcasadi.plant.browser_server import require_browser
from mbcasadi.plant.scene import Camera, fitted_camera, shown_model
from mbcasadi.plant.video import poses_between, require_positive

RATE = 60.0  # pictures in a second
Observer = Callable[[mujoco.MjModel, mujoco.MjData], None]
"""Called once for each control tick, at its start; what it changes would change the run."""


@contextmanager
def live_viewer(model: mujoco.MjModel, data: mujoco.MjData) -> Iterator[Observer]:
    """Open MuJoCo's viewer; yield a function that shows the present state, in real time.

    A run that is slower than real time is shown as it goes. When the person closes the window, the
    run goes on without it.

    Args:
        model, data: of the run.

    Raises:
        RenderingError: there is no display, or the viewer does not start.
    """
    shown = shown_model(model)
    copied = mujoco.MjData(shown)
    handle = _open(shown, copied, fitted_camera(shown, data.qpos[None, :], 1.5))
    begin, next_picture = time.monotonic() - data.time, 0.0

    def show(_: mujoco.MjModel, current: mujoco.MjData) -> None:
        nonlocal next_picture
        if not handle.is_running() or current.time < next_picture:
            return
        next_picture = current.time + 1 / RATE
        with handle.lock():
            copied.time = current.time
            copied.qpos[:], copied.qvel[:] = current.qpos, current.qvel
            copied.ctrl[:], copied.act[:] = current.ctrl, current.act
            mujoco.mj_forward(shown, copied)
        handle.sync()
        time.sleep(max(0.0, begin + current.time - time.monotonic()))

    try:
        yield show
    finally:
        handle.close()


@checked
def play(model: Source, t: ArrayLike, q: ArrayLike, *, speed: float = 1.0) -> None:
    """Show a motion in MuJoCo's viewer, in real time, once.

    Args:
        model: of the scene.
        t: (nt,) s, not decreasing.
        q: (nt, nq) configurations, of `simulate` or of a recording.
        speed: seconds of the motion in a second.

    Raises:
        ProblemError, ShapeError: t and q do not fit together, or to the model; a speed that is
            not positive.
        RenderingError: there is no display, or the viewer does not start.
    """
    require_positive(speed=speed)
    shown = shown_model(compile_model(model))
    poses = poses_between(shown, t, q, speed / RATE)
    data = mujoco.MjData(shown)
    handle = _open(shown, data, fitted_camera(shown, poses, 1.5))
    begin = time.monotonic()
    try:
        for k, pose in enumerate(poses):
            if not handle.is_running():
                return
            with handle.lock():
                data.qpos[:] = pose
                mujoco.mj_forward(shown, data)
            handle.sync()
            time.sleep(max(0.0, begin + k / RATE - time.monotonic()))
    finally:
        handle.close()


def _open(model: mujoco.MjModel, data: mujoco.MjData, camera: Camera) -> Any:
    """Open the viewer, and set its camera."""
    require_screen()
    mujoco.mj_forward(model, data)
    try:
        import mujoco.viewer as viewer

        handle = viewer.launch_passive(model, data)
    except (ImportError, RuntimeError) as error:  # on macOS: "requires ... mjpython"
        raise RenderingError(f"the viewer does not start: {error}") from error
    handle.cam.lookat[:] = camera.lookat
    handle.cam.distance, handle.cam.azimuth = camera.distance, camera.azimuth
    handle.cam.elevation = camera.elevation
    return handle


def has_screen() -> bool:
    """Return False where there is surely no screen: on Linux without a display."""
    displays = (os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return not sys.platform.startswith("linux") or any(displays)


def require_screen() -> None:
    """Raise where there is surely no screen for the viewer.

    Raises:
        RenderingError: on Linux, neither DISPLAY nor WAYLAND_DISPLAY is set.
    """
    if not has_screen():
        raise RenderingError(
            "the viewer needs a screen, and there is none (DISPLAY is not set); without one, show "
            'a motion in a browser (pip install "mbcasadi[browser]") or write a video'
        )


def require_viewer() -> None:
    """Raise where a run can be shown neither on a screen nor in a browser.

    Raises:
        RenderingError: there is no screen, and viser is not installed.
    """
    try:
        require_browser()
    except MissingExtraError:
        require_screen()
