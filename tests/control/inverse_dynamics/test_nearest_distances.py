"""Distances of the nearest of many pairs, and of pairs without a formula."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import DistanceLimits, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.errors import ProblemError
from mbcasadi.linalg.least_entries import least_entries
from mbcasadi.model import geometry
from mbcasadi.plant import Plant

H, BRAKING, MARGIN, SMOOTHING = 0.002, 6.0, 0.02, 5e-3
FAR = 10.0  # m
DEEP = -0.01  # m: deeper, several ways out are as short
SAME = 1e-6  # relative: after 8 steps, and after 16

# An arm of a cylinder, a box and a flat hand beside posts; the hand's way leads through the first.
ARM = """
<mujoco>
  <option timestep="0.001" gravity="0 0 0"/>
  <default><motor ctrllimited="true" ctrlrange="-40 40"/></default>
  <worldbody>
    <geom name="post" type="box" pos=".55 .02 0" size=".05 .06 .2" euler="0 0 30"/>
    <geom name="drum" type="cylinder" pos="-.5 .4 0" size=".1 .2"/>
    <geom name="egg" type="ellipsoid" pos="-.4 -.5 .1" size=".1 .15 .2"/>
    <geom name="rod" type="capsule" pos="0 .8 0" size=".05 .2"/>
    <body name="upper">
      <joint name="shoulder" axis="0 0 1"/>
      <geom name="upper" type="cylinder" fromto=".06 0 0 .34 0 0" size=".03" mass="2"/>
      <body name="lower" pos=".4 0 0">
        <joint name="elbow" axis="0 0 1"/>
        <geom name="lower" type="box" pos=".15 0 0" size=".1 .02 .03" mass="1"/>
        <body name="hand" pos=".3 0 0"><joint name="wrist" axis="0 0 1"/>
          <geom name="hand" type="box" size=".04 .03 .02" mass=".3"/><site name="tool"/></body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/>
    <motor joint="wrist" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
START = np.array([-0.9, 0.5, 0.0])
PAIRS = 13  # hand and upper link, and each of three links with four obstacles
ROWS = 4


@pytest.fixture(scope="module")
def arm():
    return mb.read_mjcf(ARM)


def law_of(arm, name="law", **limits):
    tasks = [
        FrameTask("tool", position="xy", orientation="", kp=100.0, weight=10.0),
        PostureTask(kp=1.0, weight=1e-2),
    ]
    distances = DistanceLimits(BRAKING, MARGIN, smoothing=SMOOTHING, **limits) if limits else None
    return InverseDynamicsQP(arm, tasks, period=H, distance_limits=distances, name=name)


@pytest.fixture(scope="module")
def nearest(arm):
    return law_of(arm, "nearest", nearest=ROWS)


def distance_rows(law, q, v):
    """Return (C, lower): `C a >= lower` of the rows of distances."""
    qp = law.problem(q, v)
    places = [i for i, name in enumerate(qp.row_names) if name.startswith("distance")]
    C = qp.A_qp[places][:, : qp.T.shape[1]] @ np.linalg.pinv(qp.T)
    return C, qp.lba[places] + C @ qp.t


def test_the_rows_are_those_of_the_nearest_pairs(arm, nearest):
    """Each row of the nearest is one of all; what has no row is as far as the farthest bound."""
    every = law_of(arm, nearest=PAIRS)
    contacts = mb.contacts_of(arm, smoothing=SMOOTHING)
    assert len(contacts) == PAIRS
    assert not contacts.left_out
    rng = np.random.default_rng(1)
    for _ in range(20):
        q, v = rng.uniform(-1, 1, 3), rng.standard_normal(3)
        (C, lower), (of_all, lower_of_all) = (distance_rows(law, q, v) for law in (nearest, every))
        assert len(C) == ROWS
        matches = [
            int(np.argmin(np.abs(of_all - row).max(1) + np.abs(lower_of_all - bound)))
            for row, bound in zip(C, lower, strict=True)
        ]
        assert len(set(matches)) == ROWS
        np.testing.assert_allclose(of_all[matches], C, atol=1e-7)
        np.testing.assert_allclose(lower_of_all[matches], lower, atol=1e-5)
        gaps = np.array([float(contact.gap(q)[0]) for contact in contacts])
        assert np.argmin(gaps) in matches


def test_rows_of_a_tick_are_those_of_the_contacts(arm):
    """Gap, J and bias by formulas of the motion, and by derivatives of `contacts_of`."""
    contacts = mb.contacts_of(arm, smoothing=SMOOTHING)
    state = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    pairs = [contact.geoms for contact in contacts]
    rows = geometry.nearest_rows(arm.tree, pairs, PAIRS, SMOOTHING, state)
    function = ca.Function("rows", [*state], [*rows])
    rng, overlapping = np.random.default_rng(3), 0
    for _ in range(20):
        q, v = rng.uniform(-1, 1, 3), rng.standard_normal(3)
        J, gaps, biases = (np.array(x) for x in function(q, v))
        for k, contact in enumerate(contacts):
            gap = float(contact.gap(q)[0])
            overlapping += gap < 0
            if gap < DEEP:
                continue
            found = np.r_[gaps[k], J[k], biases[k]]
            parts = [contact.gap(q)[0], contact.gap_jacobian(q), contact.gap_bias(q, v)]
            expected = np.concatenate([np.array(part).ravel() for part in parts])
            np.testing.assert_allclose(found, expected, atol=SAME * (1 + np.abs(expected).max()))
    assert overlapping


def gap_in_mujoco(model, data, q, geom):
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    ids = [model.geom(name).id for name in ("post", geom)]
    return mujoco.mj_geomDistance(model, data, *ids, FAR, np.zeros(6))


@pytest.mark.parametrize("limited", [False, True])
def test_in_mujoco_boxes_stay_off_a_box_that_is_in_their_way(arm, nearest, limited):
    """The pairs were refused before there was an iteration."""
    law = nearest if limited else law_of(arm)
    free = ARM.replace('name="post"', 'name="post" contype="0" conaffinity="0"')
    plant, model = Plant(free), mujoco.MjModel.from_xml_string(ARM)
    plant.reset(START)
    data, z, least = mujoco.MjData(model), law.z0, np.inf
    ref = law.reference_at(START)
    ref[law.reference_slices["tool.position"]] = [0.56, 0.15]
    for _ in range(1500):
        u, z, status, *_ = (
            np.array(x).ravel() for x in law.function(plant.q, plant.v, ref, np.zeros(0), z)
        )
        assert status[0] == 0
        plant.step(u, 2)
        least = min(
            *(gap_in_mujoco(model, data, plant.q, geom) for geom in ("lower", "hand")), least
        )
    if not limited:
        assert least < -0.02
        return
    assert MARGIN - 5e-4 < least < MARGIN + SMOOTHING + 0.02


def test_the_exported_law_chooses_the_pairs_that_the_function_does(nearest, tmp_path):
    exported = export_c(nearest, tmp_path / "nearest").load()
    rng, ref = np.random.default_rng(2), nearest.reference_at(START)
    for _ in range(40):
        q, v = rng.uniform(-1, 1, 3), rng.standard_normal(3)
        ours, theirs = (
            [np.array(out).ravel() for out in call(q, v, ref, np.zeros(0), nearest.z0)]
            for call in (nearest.function, exported)
        )
        assert ours[2] == theirs[2]
        np.testing.assert_allclose(theirs[0], ours[0], rtol=0, atol=1e-6 * np.abs(ours[0]).max())


def test_the_least_entries_come_in_order_and_equal_ones_by_place():
    x = ca.MX.sym("x", 11)
    f = ca.Function("least", [x], [least_entries(x, 5)])
    values = np.array([3.0, -1, 5, -1, 0, 7, 0, 9, -2, 4, 4])
    np.testing.assert_array_equal(np.array(f(values)).ravel(), [8, 1, 3, 4, 6])


def test_numbers_of_rows_and_smoothing_are_checked():
    with pytest.raises(ProblemError, match="nearest = 0"):
        DistanceLimits(1.0, nearest=0)
    with pytest.raises(ProblemError, match="smoothing = 0"):
        DistanceLimits(1.0, smoothing=0.0)
