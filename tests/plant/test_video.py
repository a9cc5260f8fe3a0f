"""Videos and the viewer show the whole motion, of models without meshes too."""

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.errors import (
    MissingExtraError,
    ProblemError,
    RenderingError,
    ShapeError,
    UnknownNameError,
)
from mbcasadi.plant import VideoOptions, play, save_video
from mbcasadi.plant.draw_process import size_of
from mbcasadi.plant.scene import fitted_camera, shown_model
from mbcasadi.plant.video import poses_between
from mbcasadi.plant.viewer import RATE, live_viewer
from mbcasadi.validation import ReportOptions, validate

STRIPPED = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 1"><freejoint/>
      <geom name="hull" type="box" size=".2 .1 .1" group="3"/>
      <body name="leg" pos=".2 0 0"><joint name="hip" axis="0 1 0"/>
        <geom name="shin" type="capsule" fromto="0 0 0 0 0 -.5" size=".03" group="2"/>
        <geom name="hull_of_shin" type="capsule" fromto="0 0 0 0 0 -.5" size=".05" group="3"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def motion(model, duration=0.5, rows=11):
    """Return times and configurations of a free body that moves, turns and swings."""
    t = np.linspace(0, duration, rows)
    q = np.zeros((rows, 8))
    q[:, 0], q[:, 2], q[:, 7] = 3 * t, 1 + t, 4 * t
    q[:, 3], q[:, 6] = np.cos(t), np.sin(t)  # about z by 2 t
    return t, q


def test_links_are_as_wide_wherever_the_mechanism_stands():
    model = mujoco.MjModel.from_xml_string(STRIPPED)
    data, sizes = mujoco.MjData(model), []
    for place in (0.0, 50.0):
        data.qpos[0] = place
        mujoco.mj_forward(model, data)
        sizes.append(size_of(data))
    np.testing.assert_allclose(sizes, np.linalg.norm(np.diff(data.xipos[1:], axis=0)) / 2)


@pytest.mark.parametrize("aspect", [4 / 3, 0.5])
def test_all_geoms_are_in_the_frame_of_mujocos_camera_all_the_time(aspect):
    model = mujoco.MjModel.from_xml_string(STRIPPED)
    _, q = motion(model)
    fitted = fitted_camera(model, q, aspect)
    camera, scene = mujoco.MjvCamera(), mujoco.MjvScene(model, 100)
    camera.lookat[:], camera.distance = fitted.lookat, fitted.distance
    camera.azimuth, camera.elevation = fitted.azimuth, fitted.elevation
    data, widest = mujoco.MjData(model), 0.0
    for row in q:
        data.qpos[:] = row
        mujoco.mj_forward(model, data)
        mujoco.mjv_updateScene(
            model, data, mujoco.MjvOption(), None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene
        )
        eye = scene.camera[0]
        right = np.cross(eye.forward, eye.up)
        away = data.geom_xpos - np.array(eye.pos)
        depth = away @ eye.forward
        tan_y = eye.frustum_top / eye.frustum_near
        across = (np.abs(away @ right) + 0.05) / (depth * tan_y * aspect)
        along = (np.abs(away @ eye.up) + 0.05) / (depth * tan_y)
        widest = max(widest, across.max(), along.max())
    assert 0.6 < widest < 1.0  # inside, and no smaller than needed


def test_a_flat_mechanism_is_seen_from_its_side():
    model = mujoco.MjModel.from_xml_path(str(models.path("four_bar")))
    data = mujoco.MjData(model)
    camera = fitted_camera(model, data.qpos[None, :], 1.0)
    normal = data.joint("crank").xaxis if data.time else model.joint("crank").axis
    angle = np.radians(camera.azimuth)
    assert abs(np.array([np.cos(angle), np.sin(angle), 0]) @ normal) > 0.9


def test_a_mechanism_that_is_not_flat_is_seen_from_a_corner():
    model = mujoco.MjModel.from_xml_path(str(models.path("quadruped")))
    camera = fitted_camera(model, model.qpos0[None, :], 1.0)
    angle = np.radians(camera.azimuth)
    assert min(abs(np.cos(angle)), abs(np.sin(angle))) > 0.5


def test_a_body_without_visible_geoms_shows_its_collision_geoms():
    model = mujoco.MjModel.from_xml_string(STRIPPED)
    shown = shown_model(model)
    assert model.geom("hull").group == 3
    assert shown.geom("hull").group == 0
    assert shown.geom("hull_of_shin").group == 3


def test_pictures_between_two_rows_are_those_of_an_even_motion():
    model = mujoco.MjModel.from_xml_string(STRIPPED)
    t, q = motion(model)
    even = np.arange(0, 0.5001, 1 / 30)
    poses = poses_between(model, t[[0, 5, 10]], q[[0, 5, 10]], 1 / 30)
    np.testing.assert_allclose(poses[:, 0], 3 * even, atol=1e-12)
    np.testing.assert_allclose(poses[:, 7], 4 * even, atol=1e-12)
    np.testing.assert_allclose(poses[:, 6], np.sin(even), atol=1e-9)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_a_video_has_a_picture_for_each_interval(tmp_path, suffix):
    import imageio.v3 as imageio

    model = mujoco.MjModel.from_xml_string(STRIPPED)
    path = tmp_path / f"run{suffix}"
    try:
        save_video(model, *motion(model), path, VideoOptions(width=63, height=48, fps=20))
    except RenderingError as error:
        assert "no renderer (" in str(error)  # noqa: PT017
        return
    pictures = imageio.imread(path)
    assert pictures.shape[:3] == (11, 48, 64)
    assert np.ptp(pictures.astype(float), axis=(1, 2, 3)).min() > 50  # something is seen
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_video_that_cannot_be_written_says_why(tmp_path, monkeypatch):
    model = mujoco.MjModel.from_xml_string(STRIPPED)
    t, q = motion(model)
    for path, match in (("run.avi", r"\.mp4 or \.gif"), ("none/run.mp4", "no folder")):
        with pytest.raises(ProblemError, match=match):
            save_video(model, t, q, tmp_path / path)
    with pytest.raises(ShapeError, match=r"expected \(nt,\) and \(nt, 8\)"):
        save_video(model, t, q[:3], tmp_path / "run.mp4")
    with pytest.raises(ProblemError, match="fps is 0"):
        VideoOptions(fps=0)
    with pytest.raises(UnknownNameError, match="camera 'side'"):
        save_video(model, t, q, tmp_path / "run.mp4", VideoOptions(camera="side"))
    monkeypatch.setenv("MUJOCO_GL", "nothing")
    with pytest.raises(RenderingError, match="no renderer"):
        save_video(model, t, q, tmp_path / "run.mp4")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("importlib.util.find_spec", {}.get)
    with pytest.raises(MissingExtraError, match=r"imageio_ffmpeg.*mbcasadi\[video\]"):
        save_video(model, t, q, tmp_path / "run.mp4")


class FakeViewer:
    """Counts the pictures, and is closed by a person after some."""

    def __init__(self, pictures):
        self.left, self.angles, self.closed = pictures, [], False
        self.cam = SimpleNamespace(lookat=np.zeros(3), distance=0, azimuth=0, elevation=0)

    def __call__(self, _, data):
        self.data = data
        return self

    def lock(self):
        import threading

        return threading.Lock()

    def is_running(self):
        return self.left > 0

    def sync(self):
        self.left -= 1
        self.angles.append(float(self.data.qpos[-1]))

    def close(self):
        self.closed = True


@pytest.fixture
def viewer(monkeypatch):
    import mujoco.viewer

    fake = FakeViewer(4)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(mujoco.viewer, "launch_passive", fake)
    return fake


def test_the_viewer_follows_a_run_that_goes_on_when_it_is_closed(viewer):
    ticks = []
    options = ReportOptions(viewer=True, observer=lambda _, data: ticks.append(float(data.time)))
    run = validate(push, models.path("four_bar"), 0.12, report=options).runs[0]
    record = run.recording
    np.testing.assert_allclose(ticks, record.t, atol=1e-9)
    shown = [int(np.argmin(np.abs(record.q[:, -1] - angle))) for angle in viewer.angles]
    np.testing.assert_allclose(np.diff(record.t[shown]), 1 / 60, atol=1e-3)
    assert len(shown) == 4
    assert viewer.closed
    assert viewer.cam.distance > 0


def push(t, q, v):
    return [0.3]


def test_a_motion_is_played_until_its_end_or_until_the_window_is_closed(viewer, monkeypatch):
    model, naps = mujoco.MjModel.from_xml_string(STRIPPED), [0.0]
    clock = SimpleNamespace(monotonic=lambda: sum(naps), sleep=naps.append)
    monkeypatch.setattr("mbcasadi.plant.viewer.time", clock)
    play(model, *motion(model), speed=10.0)
    assert sum(naps) == pytest.approx(3 / RATE)
    np.testing.assert_allclose(viewer.angles, [0, 2 / 3, 4 / 3, 2], atol=1e-9)
    assert viewer.closed


def test_without_a_screen_the_viewer_says_so(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    model = mujoco.MjModel.from_xml_string(STRIPPED)
    with pytest.raises(RenderingError, match="needs a screen"):
        play(model, *motion(model))
    with (
        pytest.raises(RenderingError, match="needs a screen"),
        live_viewer(model, mujoco.MjData(model)),
    ):
        pass
    monkeypatch.setattr("importlib.util.find_spec", {}.get)  # nor viser for a browser
    with pytest.raises(RenderingError, match="needs a screen"):
        ReportOptions(viewer=True)


def test_a_report_writes_its_video_or_says_why_not(tmp_path, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "nothing")
    options = ReportOptions(video=tmp_path / "run.mp4")
    report = validate(push, models.path("four_bar"), 0.01, report=options)
    assert any(note.startswith("No video: ") for note in report.runs[0].notes)
    with pytest.raises(RenderingError, match=r"run\.gif was not written"):
        report.video(tmp_path / "run.gif")
    with pytest.raises(ProblemError, match="2 runs"):
        (report + report).video(tmp_path / "run.gif")
    with pytest.raises(ProblemError, match=r"\.mp4 or \.gif"):
        ReportOptions(video="run.mov")
