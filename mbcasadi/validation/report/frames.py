"""Frames of a motion, as PNG."""

import io
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import MissingExtraError
from mbcasadi.plant import Plant, draw_frames
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.report.extras import require

FRAMES = 6  # of one run


class RenderedFrames(NamedTuple):
    """PNG images with their times in s, and notes on why there are none."""

    images: tuple[bytes, ...] = ()
    times: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


def render_frames(plant: Plant, recording: Recording) -> RenderedFrames:
    """Render frames at equal intervals of time, where a renderer is present."""
    ticks = np.linspace(0, recording.ticks - 1, min(FRAMES, recording.ticks)).astype(int)
    frames = draw_frames(plant.model, recording.q[ticks])
    if frames.images is None:
        return RenderedFrames(notes=(f"No pictures: {frames.reason}",))
    try:
        images = tuple(_png(image) for image in frames.images)
    except MissingExtraError as error:
        return RenderedFrames(notes=(f"No pictures: {error}",))
    return RenderedFrames(images, tuple(float(t) for t in recording.t[ticks]))


def _png(image: NDArray[np.uint8]) -> bytes:
    require("matplotlib.image", "a picture")
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, image, format="png")
    return buffer.getvalue()
