"""Make the videos of docs/results/gallery.md: runs of the examples, and of laws in TOML, in MuJoCo.

    python docs/tools/make_gallery.py                    # all, into docs/videos
    python docs/tools/make_gallery.py five_bar hopper    # some

Run it from the project's folder. Needs a renderer (EGL or OSMesa), a C compiler, the extras `tools`
and `video`, and dm_control for the hopper. An example is run as it is, with every run of
`mb.validate` and every step of `mujoco.mj_step` noted; the video shows one of these runs.
"""

import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import mbcasadi as mb
from mbcasadi.plant import VideoOptions, save_video
from mbcasadi.validation import Report
from mbcasadi.validation.run.run import Run
from mbcasadi.validation.spec import read_spec, run_spec

PROJECT = Path(__file__).resolve().parents[2]
VIDEOS = PROJECT / "docs" / "videos"
LARGEST = 400_000  # bytes of one video
Motion = tuple[Any, np.ndarray, np.ndarray]  # model, t (nt,), q (nt, nq)


@contextmanager
def noted_runs() -> Iterator[list[Run]]:
    """Note every run of `mb.validate`."""
    runs: list[Run] = []
    validate = mb.validate

    def noting(*args: Any, **options: Any) -> Report:
        report = validate(*args, **options)
        runs.extend(report.runs)
        return report

    with mock.patch.object(mb, "validate", noting):
        yield runs


def example(number: int, **options: Any) -> None:
    """Run an example's `main`."""
    (path,) = (PROJECT / "examples").glob(f"{number:02}_*.py")
    with mock.patch.object(sys, "path", [str(path.parent), *sys.path]):
        runpy.run_path(str(path))["main"](**options)


def of_example(number: int, run: int = -1, **options: Any) -> Callable[[], Motion]:
    """Return what gives a run of an example, by its number among those that it makes."""

    def motion() -> Motion:
        with noted_runs() as runs:
            example(number, **options)
        record = runs[run].recording
        return runs[run].model, record.t, record.q

    return motion


def of_spec(model: str) -> Callable[[], Motion]:
    """Return what gives the run of a part of `mbcasadi demo`."""

    def motion() -> Motion:
        spec = PROJECT / "mbcasadi" / "validation" / "demo" / f"{model}.toml"
        run = run_spec(read_spec(spec), mb.models.path(model)).runs[0]
        return run.model, run.recording.t, run.recording.q

    return motion


@dataclass(frozen=True)
class Clip:
    """Where a video's motion comes from, its camera, and its seconds of motion in a second."""

    motion: Callable[[], Motion]
    speed: float = 1.0
    camera: str = ""


CLIPS = {
    "four_bar": Clip(of_spec("four_bar"), camera="front"),
    "quadruped": Clip(of_spec("quadruped"), speed=2.0),
    "arm_gripper": Clip(of_spec("arm_gripper")),
    "planar_3rrr": Clip(of_example(12), speed=0.5, camera="front"),
    "five_bar": Clip(of_example(27), speed=0.2, camera="front"),
    "cart_pole": Clip(of_example(29, run=1), speed=2.0, camera="front"),
    "biped": Clip(of_example(32, run=6), speed=0.5, camera="front"),
    "trot": Clip(of_example(34)),
    "whole_body_trot": Clip(of_example(43), speed=0.75),
    "hopper": Clip(of_example(35, run=0, hops=6)),
}


def make(name: str) -> Path:
    """Write one video; return its path."""
    clip, path = CLIPS[name], VIDEOS / f"{name}.mp4"
    model, t, q = clip.motion()
    size = {"width": 480, "height": 360}
    save_video(model, t, q, path, VideoOptions(clip.camera, fps=25.0, speed=clip.speed, **size))
    if path.stat().st_size > LARGEST:
        raise SystemExit(f"{path} has {path.stat().st_size} bytes, more than {LARGEST}")
    return path


if __name__ == "__main__":
    VIDEOS.mkdir(exist_ok=True)
    for chosen in sys.argv[1:] or CLIPS:
        made = make(chosen)
        print(f"{made}: {made.stat().st_size / 1e3:.0f} kB", flush=True)
