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
from mbcasadi.plant.viewer import live_viewer
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics import OuterPlans
from mbcasadi.validation.report.report import ReportOptions

FRAMES = 6  # of one run
PLAN_FRAMES = 3  # with plans
WIDTH, HEIGHT = 400, 300  # pixels: twice the size on the page
BASE_COLOR, END_COLOR = (0.12, 0.39, 0.72), (0.90, 0.45, 0.05)  # of planned places
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
    """Return marks (k, 6) of free bodies and of bodies without children over a plan (N + 1, nq)."""
    free = mujoco.mjtJoint.mjJNT_FREE
    bases = [int(model.jnt_bodyid[j]) for j in range(model.njnt) if model.jnt_type[j] == free]
    parents = set(model.body_parentid.tolist())
    ends = [b for b in range(1, model.nbody) if b not in parents and model.body_weldid[b]]
    data, marks = mujoco.MjData(model), []
    for pose in q:
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        marks += [[*data.xpos[body], *BASE_COLOR] for body in bases]
        marks += [[*_lowest(model, data, body), *END_COLOR] for body in ends]
    return np.array(marks).reshape(-1, 6)


def _lowest(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> Array:
    """Return the centre of the lowest geom of a body; that of the body where it has none."""
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    if not count:
        return np.array(data.xpos[body])
    places = data.geom_xpos[first : first + count]
    return np.array(places[np.argmin(places[:, 2])])


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
    optional_module("matplotlib.image", "tools", "a picture").imsave(buffer, image, format="png")
    return buffer.getvalue()
