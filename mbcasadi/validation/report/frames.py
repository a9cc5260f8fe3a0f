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
from mbcasadi.extras import optional_module
from mbcasadi.plant import Observer, Plant, draw_frames, save_video
from mbcasadi.plant.browser import live_browser
from mbcasadi.plant.motion_paths import BASE_COLOR, END_COLOR, motion_paths
from mbcasadi.plant.viewer import has_screen, live_viewer
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics import OuterPlans
from mbcasadi.validation.report.report import ReportOptions

FRAMES = 6  # of one run
PLAN_FRAMES = 3  # with plans
WIDTH, HEIGHT = 400, 300  # pixels: twice the size on the page
Array = NDArray[np.float64]


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


def render_plans(plant: Plant, recording: Recording, plans: OuterPlans | None) -> RenderedFrames:
    """Render the robot at some moments with the planned places of its base and its contacts.

    There is no note where no renderer is present: `render_frames` has it.
    """
    if plans is None:
        return RenderedFrames()
    chosen = np.unique(np.linspace(0, len(plans.ticks) - 1, PLAN_FRAMES).astype(int))
    marks = np.array([_planned_places(plant.model, plans.q[k]) for k in chosen])
    ticks = plans.ticks[chosen]
    mocap = None if recording.mocap_or_none is None else recording.mocap[ticks]
    frames = draw_frames(
        plant.model, recording.q[ticks], width=WIDTH, height=HEIGHT, mocap=mocap, marks=marks
    )
    if frames.images is None:
        return RenderedFrames()
    try:
        images = tuple(_png(image) for image in frames.images)
    except MissingExtraError:
        return RenderedFrames()
    return RenderedFrames(images, tuple(float(t) for t in recording.t[ticks]))


def _planned_places(model: mujoco.MjModel, q: Array) -> Array:
    """Return marks (k, 6) of free bodies and of the ends of limbs over a plan (N + 1, nq)."""
    marks = [
        np.hstack([places, np.tile(color, (len(places), 1))])
        for paths, color in zip(motion_paths(model, q), (BASE_COLOR, END_COLOR), strict=True)
        for places in paths
    ]
    return np.vstack([np.zeros((0, 6)), *marks])


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
    if not report.viewer and not report.browser:
        yield report.observer
        return
    live = live_viewer if has_screen() and not report.browser else live_browser
    with live(plant.model, plant.data) as show:
        own = report.observer

        def observe(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            show(model, data)
            if own is not None:
                own(model, data)

        yield observe


def _png(image: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    optional_module("matplotlib.image", "tools", "a picture").imsave(buffer, image, format="png")
    return buffer.getvalue()
