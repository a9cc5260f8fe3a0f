"""Distances between bodies: rows against MuJoCo's distance, the nearest of many pairs, in loops."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.loops_in_mujoco import ticks
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.control import DistanceLimits, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.control.inverse_dynamics.viability import SHORTFALL
from mbcasadi.control.limits.distance_limits import limited_distances
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.linalg.least_entries import least_entries
from mbcasadi.model import geometry
from mbcasadi.plant import Plant

H, BRAKING, MARGIN, SMOOTHING = 0.002, 6.0, 0.02, 5e-3
SHARE = 0.75  # of h² a: the model's two steps of a tick advance the velocity first
FAR = 10.0  # m
DEEP = -0.01  # m: deeper, several ways out are as short
SAME = 1e-6  # relative: after 8 steps, and after 16
START = np.array([-0.9, 0.5, 0.0])

# A planar arm beside obstacles; its hand's way to the target leads through the pillar.
ARM = """
<mujoco><option timestep="0.001" gravity="0 0 0"/>
  <default><motor ctrllimited="true" ctrlrange="-40 40"/></default>
  <worldbody>{obstacles}
    <body name="upper"><joint name="shoulder" axis="0 0 1"/>{upper}
      <body name="lower" pos=".4 0 0"><joint name="elbow" axis="0 0 1"/>{lower}
        <body name="hand" pos=".3 0 0"><joint name="wrist" axis="0 0 1"/>{hand}
          <site name="tool"/></body></body></body></worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/><motor joint="wrist"/></actuator>
</mujoco>
"""
PILLAR = ARM.format(
    obstacles='<geom name="pillar" type="sphere" pos=".55 .02 0" size=".08"/>',
    upper='<geom name="upper" type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>',
    lower='<geom name="lower" type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>',
    hand='<geom name="hand" type="sphere" size=".04" mass=".3"/>',
)
BOXES = ARM.format(
    obstacles='<geom name="pillar" type="box" pos=".55 .02 0" size=".05 .06 .2" euler="0 0 30"/>'
    '<geom name="drum" type="cylinder" pos="-.5 .4 0" size=".1 .2"/>'
    '<geom name="egg" type="ellipsoid" pos="-.4 -.5 .1" size=".1 .15 .2"/>'
    '<geom name="rod" type="capsule" pos="0 .8 0" size=".05 .2"/>',
    upper='<geom name="upper" type="cylinder" fromto=".06 0 0 .34 0 0" size=".03" mass="2"/>',
    lower='<geom name="lower" type="box" pos=".15 0 0" size=".1 .02 .03" mass="1"/>',
    hand='<geom name="hand" type="box" size=".04 .03 .02" mass=".3"/>',
).replace('<motor joint="wrist"/>', '<motor joint="wrist" ctrlrange="-1 1"/>')
PAIRS = 13  # of boxes: hand and upper link, and each of three links with four obstacles
ROWS = 4
LIMITED = {
    PILLAR: {"bodies": ("lower", "hand"), "reserve": 0.0},
    BOXES: {"nearest": ROWS, "smoothing": SMOOTHING},
}


def law_of(text, limited=True, **limits):
    tasks = [
        FrameTask("tool", position="xy", orientation="", kp=100.0, weight=10.0),
        PostureTask(kp=1.0, weight=1e-2),
    ]
    limits = DistanceLimits(BRAKING, MARGIN, **(LIMITED[text] | limits)) if limited else None
    return InverseDynamicsQP(mb.read_mjcf(text), tasks, period=H, distance_limits=limits)


@pytest.fixture(scope="module", params=[PILLAR, BOXES], ids=["pillar", "boxes"])
def text(request):
    return request.param


def gap_in_mujoco(model, data, q, pair):
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    ids = [model.geom(name).id for name in pair]
    return mujoco.mj_geomDistance(model, data, *ids, FAR, np.zeros(6))


def test_a_row_holds_the_gap_of_mujoco_viable_until_the_margin():
    """At the bound of a row, braking from the end of the tick on stops exactly at the margin."""
    law, rng = law_of(PILLAR), np.random.default_rng(1)
    model = mujoco.MjModel.from_xml_string(PILLAR)
    data, checked = mujoco.MjData(model), 0
    pairs = limited_distances(law.system, law.distance_limits, ()).contacts
    names = {f"distance '{c.name}'": (c.geom1, c.geom2) for c in pairs}
    assert {("pillar", "lower"), ("pillar", "hand")} <= set(names.values())
    for _ in range(200):
        q, v, t = rng.uniform(-1, 1, 3), rng.standard_normal(3), 1e-4
        qp = law.problem(q, v)
        a, own = qp.T @ np.zeros(3) + qp.t, qp.row_names.index(SHORTFALL)
        none = np.where(qp.A_qp[own], qp.lba[own] / qp.A_qp[own].max(), 0.0)
        for i in [i for i, name in enumerate(qp.row_names) if name in names]:
            ends = [q + s * t * v + (s * t) ** 2 * a / 2 for s in (-1, 0, 1)]
            at = [gap_in_mujoco(model, data, end, names[qp.row_names[i]]) for end in ends]
            rate, acceleration = (at[2] - at[0]) / (2 * t), (at[2] - 2 * at[1] + at[0]) / t**2
            held = qp.lba[i] - qp.A_qp[i] @ none  # the shortfall is zero
            least = acceleration + held  # of the gap's acceleration, at A y = lba
            gap, end = at[1] + H * rate + SHARE * H**2 * least, rate + H * least
            if end < -0.05 and at[1] > MARGIN and least < 0.99 * BRAKING:
                assert gap - end**2 / (2 * BRAKING) == pytest.approx(MARGIN, abs=1e-5)
                checked += 1
    assert checked > 30


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.every(3)
def test_in_mujoco_an_arm_stays_off_what_is_in_its_way(text, limited):
    law = law_of(text, limited)
    plant = Plant(text.replace('name="pillar"', 'name="pillar" contype="0" conaffinity="0"'))
    model, least = mujoco.MjModel.from_xml_string(text), np.inf
    data = mujoco.MjData(model)
    plant.reset(START)
    ref = law.reference_at(START, {"tool.position": [0.56, 0.15]})
    for out in ticks(law, plant, 1500, ref, steps=2):
        assert out["status"] == 0
        gaps = [gap_in_mujoco(model, data, plant.q, ("pillar", g)) for g in ("lower", "hand")]
        least = min(least, *gaps)
    if limited:
        assert MARGIN - 5e-4 < least < MARGIN + 0.02 + SMOOTHING * (text is BOXES)
    else:
        assert least < -0.02


def distance_rows(law, q, v):
    """Return (C, lower): `C a >= lower` of the rows of distances."""
    qp = law.problem(q, v)
    places = [i for i, name in enumerate(qp.row_names) if name.startswith("distance")]
    C = qp.A_qp[places][:, : qp.T.shape[1]] @ np.linalg.pinv(qp.T)
    return C, qp.lba[places] + C @ qp.t


@pytest.mark.long
def test_the_rows_are_those_of_the_nearest_pairs():
    """Each row of the nearest is one of all; what has no row is as far as the farthest bound."""
    nearest, every = (law_of(BOXES, samples=0, nearest=n) for n in (ROWS, PAIRS))
    contacts = mb.contacts_of(nearest.system, smoothing=SMOOTHING)
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
        assert_allclose(of_all[matches], C, atol=1e-7)
        assert_allclose(lower_of_all[matches], lower, atol=1e-5)
        assert np.argmin([float(contact.gap(q)[0]) for contact in contacts]) in matches


def test_rows_of_a_tick_are_those_of_the_contacts():
    """Gap, J and bias by formulas of the motion, and by derivatives of `contacts_of`."""
    arm = mb.read_mjcf(BOXES)
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
            parts = [contact.gap(q)[0], contact.gap_jacobian(q), contact.gap_bias(q, v)]
            expected = np.concatenate([np.array(part).ravel() for part in parts])
            tolerance = SAME * (1 + np.abs(expected).max())
            assert_allclose(np.r_[gaps[k], J[k], biases[k]], expected, atol=tolerance)
    assert overlapping


def test_the_least_entries_come_in_order_and_equal_ones_by_place():
    x = ca.MX.sym("x", 11)
    f = ca.Function("least", [x], [least_entries(x, 5)])
    values = np.array([3.0, -1, 5, -1, 0, 7, 0, 9, -2, 4, 4])
    assert_array_equal(np.array(f(values)).ravel(), [8, 1, 3, 4, 6])


def test_distances_of_nothing_or_unknown_pairs_are_refused():
    def law(text=PILLAR, **limits):
        limits = DistanceLimits(**({"braking": 1.0} | limits))
        return InverseDynamicsQP(mb.read_mjcf(text), [PostureTask()], distance_limits=limits)

    refused(UnknownNameError, "body 'arm'", lambda: law(bodies=("arm",)))
    refused(UnknownNameError, "pair 'hand'", lambda: law(pairs=("hand",)))
    refused(ProblemError, "braking = 0", lambda: law(braking=0.0))
    refused(ProblemError, "margin = -1", lambda: law(margin=-1.0))
    refused(ProblemError, "expected one of them", lambda: law(bodies=(), pairs=()))
    refused(ProblemError, "nearest = 0", lambda: DistanceLimits(1.0, nearest=0))
    refused(ProblemError, "smoothing = 0", lambda: DistanceLimits(1.0, smoothing=0.0))
    field = '<asset><hfield name="hills" nrow="2" ncol="2" size="1 1 1 1"/></asset><worldbody>'
    hills = (
        PILLAR.replace('type="sphere" pos=".55 .02 0" size=".08"', 'type="hfield" hfield="hills"')
        .replace("<default>", '<default><geom contype="1" conaffinity="2"/>')
        .replace('hfield="hills"', 'hfield="hills" contype="2" conaffinity="1"')
        .replace("<worldbody>", field)
    )
    refused(ProblemError, r"without a formula: .*lower on pillar", lambda: law(hills))
    one = law(pairs=("hand on pillar",))
    assert [x for x in one.row_names if x.startswith("distance")] == ["distance 'hand on pillar'"]
