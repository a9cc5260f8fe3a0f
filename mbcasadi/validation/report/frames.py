"""Pictures of a motion, as PNG."""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import MissingExtraError
from mbcasadi.plant import Plant, draw_frames
from mbcasadi.validation.closed_loop.closed_loop import Progress
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.report.extras import require

FRAMES = 6  # pictures of one run


def pictures(
    plant: Plant, recording: Recording, render: bool, notes: list[str], tell: Progress
) -> dict[str, Any]:
    """Draw frames at equal times, where that is asked for and possible: `frames`, `frame_times`."""
    if not render:
        return {}
    tell("drawing", 0.9)
    chosen = np.linspace(0, recording.ticks - 1, min(FRAMES, recording.ticks)).astype(int)
    frames = draw_frames(plant.model, recording.q[chosen])
    if frames.images is None:
        notes.append(f"No pictures: {frames.reason}")
        return {}
    try:
        encoded = tuple(_png(image) for image in frames.images)
    except MissingExtraError as error:
        notes.append(f"No pictures: {error}")
        return {}
    return {"frames": encoded, "frame_times": tuple(float(t) for t in recording.t[chosen])}


def _png(image: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    require("matplotlib.image", "a picture").imsave(buffer, image, format="png")
    return buffer.getvalue()
