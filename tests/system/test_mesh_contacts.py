"""Meshes by few points with balls: what these add, distances of hulls in MuJoCo, feet on planes."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.anatomy.links import Links
from mbcasadi.anatomy.possible_feet import lowest_point
from mbcasadi.codegen import export_c
from mbcasadi.control import DistanceLimits, FrameTask, InverseDynamicsQP
from mbcasadi.model.geometry import mesh_points
from mbcasadi.plant import Plant

ROUNDING = 1e-9
SOLVER = 1e-6  # m, of MuJoCo's iteration between hulls
VERTICES = 300
FAR = 10.0


def barrel(count=VERTICES):
    """Return the vertices of a link: a rounded barrel with a flat end, 0.12 by 0.1 by 0.5 m."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x[:, 2] = np.maximum(x[:, 2], -0.3)
    return x * [0.06, 0.05, 0.25]


def text(more="", count=VERTICES):
    vertices = " ".join(f"{x:.9g}" for x in barrel(count).ravel())
    return f"""
    <mujoco>
      <option timestep="0.001" gravity="0 0 0"/>
      <asset><mesh name="barrel" vertex="{vertices}"/></asset>
      <worldbody>
        <geom name="floor" type="plane" size="1 1 1" contype="2" conaffinity="2"/>
        <geom name="post" type="box" size=".1 .1 .4" pos=".4 0 .5"/>
        <body name="link" pos="0 0 .5"><freejoint/>
          <geom name="link" type="mesh" mesh="barrel" contype="3" conaffinity="3"/></body>
        <body name="rod" pos="0 .4 .5"><freejoint/>
          <geom name="rod" type="mesh" mesh="barrel" euler="0 40 0"/></body>
      </worldbody>{more}
    </mujoco>"""


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(text())


@pytest.fixture(scope="module")
def system(model):
    return mb.read_mjcf(model)


def test_points_with_balls_contain_the_hull_and_reach_beyond_it_by_no_more_than_they_say():
    vertices = barrel()
    points, radius = mesh_points(vertices)
    assert 0 < radius <= 5e-3
    assert len(points) < len(vertices) / 4
    n = np.random.default_rng(1).normal(size=(20_000, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    beyond = (n @ points.T).max(1) + radius - (n @ vertices.T).max(1)
    assert beyond.min() >= -ROUNDING
    assert beyond.max() <= radius + ROUNDING
    exact = mesh_points(vertices[:8])
    assert len(exact.points) == 8
    assert exact.radius == 0


def test_gaps_are_those_of_the_hulls_less_the_excess(model, system):
    data, rng = mujoco.MjData(model), np.random.default_rng(2)
    contacts = [c for c in mb.contacts_of(system, smoothing=0.0) if c.is_pair]
    assert {c.name for c in contacts} == {"link on post", "rod on post", "rod on link"}
    smaller = []
    for contact in contacts:
        for _ in range(8):
            q = np.array(system.integrate(system.tree.q0, rng.normal(size=12) * 0.7)).ravel()
            data.qpos[:] = q
            mujoco.mj_kinematics(model, data)
            ids = [model.geom(name).id for name in (contact.geom1, contact.geom2)]
            theirs = mujoco.mj_geomDistance(model, data, *ids, FAR, np.zeros(6))
            if theirs > 0:
                smaller.append(theirs - float(contact.gap(q)[0]) - contact.excess)
    assert len(smaller) > 12
    assert min(smaller) >= -contact.excess - SOLVER
    assert max(smaller) <= SOLVER


def test_a_mesh_stands_on_the_vertices_that_mujoco_reports(model, system):
    q = system.tree.q0.copy()
    contacts = mb.contacts_of(system, ground="floor", q=q)
    assert 3 <= len(contacts) <= 4
    q[2] += 1e-4 - min(float(contact.gap(q)[0]) for contact in contacts)
    data = mujoco.MjData(model)
    model.geom_margin[:] = 5e-3
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    floor = model.geom("floor").id
    theirs = [c for c in data.contact[: data.ncon] if floor in c.geom]
    gaps = [float(contact.gap(q)[0]) for contact in contacts]
    assert min(gaps) == pytest.approx(min(c.dist for c in theirs), abs=ROUNDING)
    (link,) = (geom for geom in system.tree.geoms if geom.name == "link")
    assert lowest_point(Links(system.tree, q), link) == pytest.approx(min(gaps), abs=ROUNDING)
    points = np.array([np.array(contact.gap(q)[1]).ravel()[:2] for contact in contacts])
    assert np.min(np.ptp(points, axis=0)) > 0.05  # a polygon that carries, 0.12 by 0.1 m


@pytest.mark.long
def test_limits_of_distances_keep_meshes_apart_in_generated_c(tmp_path):
    joint = '<joint name="x" type="slide" axis="1 0 0"/>'
    motor = '<actuator><motor joint="x" ctrlrange="-50 50" ctrllimited="true"/></actuator>'
    moved = text(motor, count=40)
    moved = moved.replace("<freejoint/>", joint, 1).replace("<freejoint/>", "", 1)
    system = mb.read_mjcf(moved)
    limits = DistanceLimits(braking=3.0, margin=0.02, bodies=("link",), nearest=1)
    law = InverseDynamicsQP(
        system,
        [FrameTask("link", kind="body", position="x", orientation="", kp=100.0)],
        period=0.002,
        distance_limits=limits,
    )
    exported = export_c(law, tmp_path / "law").load()
    (contact,) = mb.contacts_of(system, geoms=["post"], smoothing=0.0)
    plant, z, least = Plant(moved), law.z0, np.inf
    ref = law.reference_at(system.tree.q0)
    ref[law.reference_slices["link.position"]] = 0.6
    for k in range(600):
        inputs = [plant.q, plant.v, ref, np.zeros(0), z]
        u, z, status, *_ = (np.array(x).ravel() for x in exported(*inputs))
        assert status[0] == 0
        if k % 100 == 0:
            ours = np.array(law.function(*inputs)[0]).ravel()
            np.testing.assert_allclose(u, ours, rtol=1e-6, atol=1e-6)
        plant.step(u, 2)
        if k % 5 == 0:
            least = min(least, float(contact.gap(plant.q)[0]))
    assert limits.margin - 5e-4 < least < limits.margin + limits.smoothing + 5e-3
