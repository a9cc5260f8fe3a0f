"""A page shows the geoms of the model where MuJoCo has them, and the forces that act on them."""

import http.client
import threading

import mujoco
import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.errors import MissingExtraError, ProblemError, RenderingError, ShapeError
from mbcasadi.plant import browse, browser, browser_server
from mbcasadi.plant.browser import browse_motion, live_browser
from mbcasadi.plant.browser_player import RecordedMotion
from mbcasadi.plant.browser_scene import contact_lines
from mbcasadi.plant.geom_shapes import geom_color, geom_triangles
from mbcasadi.plant.motion_paths import motion_paths
from mbcasadi.validation import ReportOptions, validate

TETRAHEDRON = "0 0 0  1 0 0  0 1 0  0 0 1"
SHAPES = f"""
<mujoco>
  <asset>
    <material name="red" rgba=".9 .1 .2 .5"/>
    <mesh name="tetrahedron" vertex="{TETRAHEDRON}"/>
    <hfield name="hills" nrow="3" ncol="4" size="2 1 .5 .1" elevation="0 1 0 1  1 0 1 0  0 0 1 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="3 2 .1" pos="0 0 -1"/>
    <geom name="hills" type="hfield" hfield="hills" pos="0 0 -9"/>
    <body name="all" pos=".1 .2 .3" euler="10 20 30"><freejoint/>
      <geom name="sphere" size=".3" pos="1 0 0" material="red"/>
      <geom name="capsule" type="capsule" fromto="0 0 0 0 .5 .5" size=".1"/>
      <geom name="ellipsoid" type="ellipsoid" size=".1 .2 .3" euler="40 0 20" rgba="0 1 0 1"/>
      <geom name="cylinder" type="cylinder" size=".1 .4" euler="0 50 0"/>
      <geom name="box" type="box" size=".1 .2 .3" pos="0 0 2" material="red" rgba="0 0 1 1"/>
      <body pos="0 0 .7" euler="0 30 0"><joint axis="0 1 0"/>
        <geom name="mesh" type="mesh" mesh="tetrahedron"/>
        <geom name="hidden" size=".5" group="3"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
VOLUMES = {
    "sphere": 4 / 3 * np.pi * 0.3**3,
    "capsule": np.pi * 0.1**2 * np.sqrt(0.5) + 4 / 3 * np.pi * 0.1**3,
    "ellipsoid": 4 / 3 * np.pi * 0.006,
    "cylinder": np.pi * 0.1**2 * 0.8,
    "box": 8 * 0.006,
    "mesh": 1 / 6,
}
RESTING = """
<mujoco>
  <option gravity="2 0 -9.81" cone="elliptic" timestep=".002"/>
  <worldbody>
    <geom name="floor" %s friction=".8 .01 .01"/>
    <body name="stone" pos="0 0 .1"><freejoint/><geom name="stone" size=".1" mass="2" friction=".8"
      condim="6"/></body>
  </worldbody>
</mujoco>
"""


FLOORS = ('type="plane" size="3 2 .1"', 'type="box" size="3 2 .1" pos="0 0 -.1"')
"""As the first geom of the contact, and as the second one."""


@pytest.fixture(scope="module")
def shapes():
    return mujoco.MjModel.from_xml_string(SHAPES)


def rotation(quaternion):
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.array(quaternion, dtype=float))
    return matrix.reshape(3, 3)


@pytest.mark.parametrize("name", VOLUMES)
def test_triangles_enclose_the_volume_of_the_geom_from_outside(shapes, name):
    vertices, faces = geom_triangles(shapes, shapes.geom(name).id)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    volume = np.einsum("ni,ni->", a, np.cross(b, c)) / 6
    assert 0.96 * VOLUMES[name] < volume < 1.0001 * VOLUMES[name]  # inscribed, 32 sectors


def test_a_height_field_has_its_heights_above_its_grid(shapes):
    vertices, faces = geom_triangles(shapes, shapes.geom("hills").id)
    data = mujoco.MjData(shapes)
    mujoco.mj_forward(shapes, data)
    for x, y, z in vertices + shapes.geom("hills").pos:
        inner = np.array([np.clip(x, -1.9999, 1.9999), np.clip(y, -0.9999, 0.9999), 0])
        down = mujoco.mj_rayHfield(
            shapes, data, shapes.geom("hills").id, inner, np.array([0.0, 0, -1]), None
        )
        assert -down == pytest.approx(z, abs=1e-3)
    assert len(faces) == 2 * 2 * 3


def test_colours_are_those_of_mujocos_own_scene(shapes):
    data, scene = mujoco.MjData(shapes), mujoco.MjvScene(shapes, 100)
    mujoco.mj_forward(shapes, data)
    mujoco.mjv_updateScene(
        shapes,
        data,
        mujoco.MjvOption(),
        None,
        mujoco.MjvCamera(),
        mujoco.mjtCatBit.mjCAT_ALL,
        scene,
    )
    shown = [g for g in scene.geoms[: scene.ngeom] if g.objtype == mujoco.mjtObj.mjOBJ_GEOM]
    assert len(shown) == 8
    for geom in shown:
        np.testing.assert_allclose(geom_color(shapes, geom.objid), geom.rgba, atol=1e-6)


def test_all_visible_geoms_stand_where_mujoco_has_them(shapes):
    t, q = np.array([0.0, 0.5, 1.0]), np.tile(shapes.qpos0, (3, 1))
    q[1, :3], q[1, 3:7], q[1, 7] = [1, 2, 3], [0.6, 0, 0.8, 0], 0.4
    data = mujoco.MjData(shapes)
    data.qpos[:] = q[1]
    mujoco.mj_kinematics(shapes, data)
    with browse(shapes, t, q, port=0) as view:
        scene = view._player.scene
        assert len(scene.geoms) == 8  # all but the hidden one
        view.show(0.7)
        for geom, handle in scene.geoms.items():
            body = scene.bodies[int(shapes.geom_bodyid[geom])]
            turn = rotation(body.wxyz)
            place = body.position + turn @ handle.position
            np.testing.assert_allclose(place, data.geom_xpos[geom], atol=1e-9)
            turned = turn @ rotation(handle.wxyz)
            np.testing.assert_allclose(turned.ravel(), data.geom_xmat[geom], atol=1e-9)
        assert scene.geoms[shapes.geom("sphere").id].opacity == pytest.approx(0.5)
        assert len(scene.arrows.points) == 0  # no state, no forces


def test_a_page_is_served_until_the_view_is_closed(shapes, capsys):
    before = threading.active_count()
    view = browse(shapes, [0.0], [shapes.qpos0], port=0)
    place = view.url.removeprefix("http://")
    connection = http.client.HTTPConnection(place, timeout=5)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.status == 200
    assert b"<html" in answer.read()
    connection.close()
    assert place in repr(view)
    view.close()
    view.close()
    view.wait()  # at once
    with pytest.raises(OSError, match="refused"):
        http.client.HTTPConnection(place, timeout=5).connect()
    with pytest.raises(ProblemError, match="closed"):
        view.show(0.0)
    assert threading.active_count() <= before
    assert capsys.readouterr().out == ""


def test_a_motion_plays_when_it_is_switched_on(shapes):
    t = np.linspace(0, 10, 101)
    q = np.tile(shapes.qpos0, (101, 1))
    q[:, 0] = t
    with browse(shapes, t, q, port=0) as view:
        player = view._player
        moved = threading.Event()
        player._slider.on_update(lambda _: moved.set())
        player._playing.value = True
        assert moved.wait(5)
        player._playing.value = False
        time, place = player._slider.value, player.scene.bodies[1].position[0]
        assert 0 < time < 10
        assert place == pytest.approx(time, abs=0.2)
    with pytest.raises(ProblemError, match="from 0 to 10 s"):
        view.show(11.0)


@pytest.mark.parametrize("floor", FLOORS)
def test_arrows_are_the_contact_forces_inside_their_cones(floor):
    model = mujoco.MjModel.from_xml_string(RESTING % floor)
    data = mujoco.MjData(model)
    for _ in range(300):
        data.xfrc_applied[1, :3] = [-4, 0, 0]  # against the sideways gravity: at rest
        mujoco.mj_step(model, data)
    data.xfrc_applied[1, :3] = 0  # now the floor has to hold the stone
    mujoco.mj_forward(model, data)
    arrows, cones = contact_lines(model, data)
    length = model.vis.map.force / model.stat.meanmass
    assert arrows.shape == (1, 2, 3)
    force = (arrows[0, 1] - arrows[0, 0]) / length
    np.testing.assert_allclose(force, data.qfrc_constraint[:3], rtol=1e-9)  # of the stone, world
    assert force[2] == pytest.approx(2 * 9.81, rel=0.01)
    assert force[0] < -0.5
    assert arrows[0, 0, 2] == pytest.approx(0, abs=1e-3)
    spokes = cones[: len(cones) // 2]
    np.testing.assert_allclose(spokes[:, 0], np.tile(arrows[0, 0], (len(spokes), 1)))
    ring = (spokes[:, 1] - arrows[0, 0]) / length
    np.testing.assert_allclose(ring[:, 2], force[2])
    np.testing.assert_allclose(np.hypot(ring[:, 0], ring[:, 1]), 0.8 * force[2])


def hold(t, q, v):
    """Hold the quadruped's joints where they stand, and sway."""
    return np.clip(200 * (STAND[7:] - q[7:]) - 5 * v[6:] + 5 * np.sin(6 * t), -23, 23)


QUADRUPED = mujoco.MjModel.from_xml_path(str(models.path("quadruped")))
STAND = QUADRUPED.key_qpos[0]


@pytest.fixture(scope="module")
def run():
    options = ReportOptions(timing=False, explain=False)
    return validate(hold, QUADRUPED, 0.2, period=0.002, q0=STAND, report=options).runs[0]


def test_a_run_shows_the_forces_that_accelerate_it(run):
    """By Newton's law for the whole robot, from the recorded velocities."""
    recording, k = run.recording, 60
    with run.browse(port=0) as view:
        view.show(float(recording.t[k]) + 1e-4)
        points = np.array(view._player.scene.arrows.points, dtype=float)
    assert len(points) == 4
    length = QUADRUPED.vis.map.force / QUADRUPED.stat.meanmass
    force = (points[:, 1] - points[:, 0]).sum(axis=0) / length
    data, momentum = mujoco.MjData(QUADRUPED), []
    for row in (k, k + 1):
        data.qpos[:], data.qvel[:] = recording.q[row], recording.v[row]
        mujoco.mj_forward(QUADRUPED, data)
        mujoco.mj_subtreeVel(QUADRUPED, data)
        momentum.append(data.subtree_linvel[0] * QUADRUPED.body_subtreemass[0])
    mass = QUADRUPED.body_subtreemass[0]
    rate = (momentum[1] - momentum[0]) / (recording.t[k + 1] - recording.t[k])
    np.testing.assert_allclose(force, rate - mass * QUADRUPED.opt.gravity, atol=0.03 * 9.81 * mass)


def test_the_plan_that_acts_is_drawn():
    q = np.tile(STAND, (5, 1))
    later = q.copy()
    later[:, 0] = np.linspace(0, 0.4, 5)
    motion = RecordedMotion(
        np.linspace(0, 1, 5), q, np.zeros((5, 0)), plans=((0.2, q), (0.6, later))
    )
    bases, ends = motion_paths(QUADRUPED, later)
    np.testing.assert_allclose(bases[:, 0], later[:, :3])
    with browse_motion(QUADRUPED, motion, "127.0.0.1", 0) as view:
        base, feet = view._player.scene.paths
        assert len(base.points) == 0
        view.show(0.7)
        assert base.points.shape == (4, 2, 3)
        assert feet.points.shape == (4 * ends.shape[1], 2, 3)
        np.testing.assert_allclose(base.points[:, 1], bases[1:, 0], atol=1e-6)
        np.testing.assert_allclose(feet.points[-1, 1], ends[-1, -1], atol=1e-6)


def test_a_live_run_is_shown_where_there_is_no_screen(monkeypatch, capsys):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(browser, "_await_page", lambda *_: None)
    shown = []

    class Scene(browser.BrowserScene):
        def show(self, data, *, forces=True):
            super().show(data, forces=forces)
            shown.append((data.time, np.array(self.bodies[1].position), len(self.arrows.points)))

    monkeypatch.setattr(browser, "BrowserScene", Scene)
    options = ReportOptions(viewer=True, timing=False, explain=False)
    run = validate(hold, QUADRUPED, 0.1, period=0.002, q0=STAND, report=options).runs[0]
    assert "open http://127.0.0.1:" in capsys.readouterr().err
    times = [time for time, *_ in shown[1:]]
    np.testing.assert_allclose(np.diff(times), 1 / browser_server.RATE, atol=2e-3)
    for time, place, arrows in shown[1:]:
        k = int(np.argmin(np.abs(run.recording.t - time)))
        np.testing.assert_allclose(place, run.recording.q[k, :3], atol=1e-6)
        assert arrows == 4


def test_a_run_begins_when_a_page_is_open():
    data = mujoco.MjData(QUADRUPED)
    with live_browser(QUADRUPED, data, port=0, patience=0.0) as show:
        show(QUADRUPED, data)


def test_what_cannot_be_shown_says_why(shapes, run, monkeypatch):
    with pytest.raises(ProblemError, match="port is 70000; expected"):
        browse(shapes, [0.0], [shapes.qpos0], port=70000)
    with pytest.raises(ProblemError, match=r"host is '256\.1\.1\.1', where nothing"):
        browse(shapes, [0.0], [shapes.qpos0], host="256.1.1.1")
    with pytest.raises(ShapeError, match=r"expected \(nt,\) and \(nt, 8\)"):
        browse(shapes, [0.0], [0.0])
    wrong = RecordedMotion(
        np.zeros(1), shapes.qpos0[None], np.zeros((1, 0)), state={"qvel": np.zeros((1, 3))}
    )
    with pytest.raises(
        ShapeError, match=r"qvel of the motion has shape \(1, 3\), expected \(1, 7\)"
    ):
        browse_motion(shapes, wrong, "127.0.0.1", 0)
    monkeypatch.setattr("importlib.util.find_spec", {}.get)
    with pytest.raises(MissingExtraError, match=r"viser, which.*mbcasadi\[browser\]"):
        ReportOptions(browser=True)
    monkeypatch.setattr("mbcasadi.plant.viewer.has_screen", lambda: False)
    with pytest.raises(RenderingError, match=r"needs a screen.*mbcasadi\[browser\]"):
        ReportOptions(viewer=True)
