"""What is seen of a run: frames as PNG, a video, the viewer."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import MissingExtraError, RenderingError
from mbcasadi.plant import Observer, Plant, draw_frames, save_video
from mbcasadi.plant.viewer import live_viewer
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.report.pages import optional
from mbcasadi.validation.report.report import ReportOptions

FRAMES = 6  # of one run
WIDTH, HEIGHT = 400, 300  # pixels: twice the size on the page


class RenderedFrames(NamedTuple):
    """PNG images with their times in s, and notes on why there are none."""

    images: tuple[bytes, ...] = ()
    times: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


def render_frames(plant: Plant, recording: Recording) -> RenderedFrames:
    """Render frames at equal intervals of time, where a renderer is present."""
    ticks = np.linspace(0, recording.ticks - 1, min(FRAMES, recording.ticks)).astype(int)
    mocap = None if recording.mocap_or_none is None else recording.mocap[ticks]
    frames = draw_frames(plant.model, recording.q[ticks], width=WIDTH, height=HEIGHT, mocap=mocap)
    if frames.images is None:
        return RenderedFrames(notes=(f"No pictures: {frames.reason}",))
    try:
        images = tuple(_png(image) for image in frames.images)
    except MissingExtraError as error:
        return RenderedFrames(notes=(f"No pictures: {error}",))
    return RenderedFrames(images, tuple(float(t) for t in recording.t[ticks]))


def write_video(plant: Plant, recording: Recording, path: str | Path) -> tuple[str, ...]:
    """Write a video of the run, where a renderer is present; return a note where there is none."""
    try:
        save_video(plant.model, recording.t, recording.q, path, mocap=recording.mocap_or_none)
    except RenderingError as error:
        return (f"No video: {error}",)
    return ()


@contextmanager
def observer_of(report: ReportOptions, plant: Plant) -> Iterator[Observer | None]:
    """Open the viewer where it is required; yield what observes each tick."""
    if not report.viewer:
        yield report.observer
        return
    with live_viewer(plant.model, plant.data) as show:
        own = report.observer

        def observe(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            show(model, data)
            if own is not None:
                own(model, data)

        yield observe


def _png(image: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    optional("matplotlib.image", "a picture").imsave(buffer, image, format="png")
    return buffer.getvalue()
