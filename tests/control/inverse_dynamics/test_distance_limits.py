"""Distances between bodies: the row against MuJoCo's distance, and a closed loop that keeps it."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import DistanceLimits, FrameTask, InverseDynamicsQP, PostureTask, SoftLimit
from mbcasadi.control.inverse_dynamics.viability import SHORTFALL
from mbcasadi.control.limits.distance_limits import limited_distances
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.plant import Plant

H, BRAKING, MARGIN = 0.002, 6.0, 0.02
SHARE = 0.75  # of h² a: the model's two steps of a tick advance the velocity first

# A planar arm beside a pillar; its hand's way to the target leads through it.
ARM = """
<mujoco>
  <option timestep="0.001" gravity="0 0 0"/>
  <default><motor ctrllimited="true" ctrlrange="-40 40"/></default>
  <worldbody>
    <geom name="pillar" type="sphere" pos=".55 .02 0" size=".08"/>
    <body name="upper">
      <joint name="shoulder" axis="0 0 1"/>
      <geom name="upper" type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="2"/>
      <body name="lower" pos=".4 0 0">
        <joint name="elbow" axis="0 0 1"/>
        <geom name="lower" type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
        <body name="hand" pos=".3 0 0"><joint name="wrist" axis="0 0 1"/>
          <geom name="hand" type="sphere" size=".04" mass=".3"/><site name="tool"/></body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/><motor joint="wrist"/></actuator>
</mujoco>
"""
START = np.array([-0.9, 0.5, 0.0])


@pytest.fixture(scope="module")
def arm():
    return mb.read_mjcf(ARM)


def law_of(arm, limited=True, **options):
    tasks = [
        FrameTask("tool", position="xy", orientation="", kp=100.0, weight=10.0),
        PostureTask(kp=1.0, weight=1e-2),
    ]
    if limited:
        options["distance_limits"] = DistanceLimits(
            BRAKING, MARGIN, bodies=("lower", "hand"), reserve=0.0
        )
    return InverseDynamicsQP(arm, tasks, period=H, **options)


def gap_of(model, data, names, q):
    """Return the distance of two geoms, one of them a sphere, from their poses in MuJoCo."""
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    sphere, other = sorted((model.geom(name) for name in names), key=lambda geom: geom.type[0])
    centre, middle = data.geom_xpos[sphere.id], data.geom_xpos[other.id]
    half = other.size[1] if other.type[0] == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0
    axis = data.geom_xmat[other.id].reshape(3, 3)[:, 2]
    nearest = middle + np.clip(axis @ (centre - middle), -half, half) * axis
    return np.linalg.norm(centre - nearest) - sphere.size[0] - other.size[0]


def test_a_row_holds_the_gap_of_mujoco_viable_until_the_margin(arm):
    """At the bound of a row, braking from the end of the tick on stops exactly at the margin."""
    law, rng = law_of(arm), np.random.default_rng(1)
    model = mujoco.MjModel.from_xml_string(ARM)
    data, checked = mujoco.MjData(model), 0
    pairs = limited_distances(arm, law.distance_limits, ()).contacts
    names = {f"distance '{c.name}'": (c.geom1, c.geom2) for c in pairs}
    assert {("pillar", "lower"), ("pillar", "hand")} <= set(names.values())
    for _ in range(200):
        q, v = rng.uniform(-1, 1, 3), rng.standard_normal(3)
        qp = law.problem(q, v)
        a, own = qp.T @ np.zeros(3) + qp.t, qp.row_names.index(SHORTFALL)
        none = np.where(qp.A_qp[own], qp.lba[own] / qp.A_qp[own].max(), 0.0)
        for i in [i for i, name in enumerate(qp.row_names) if name in names]:
            pair, t = names[qp.row_names[i]], 1e-4
            at = [
                gap_of(model, data, pair, q + s * t * v + (s * t) ** 2 * a / 2) for s in (-1, 0, 1)
            ]
            rate, acceleration = (at[2] - at[0]) / (2 * t), (at[2] - 2 * at[1] + at[0]) / t**2
            held = qp.lba[i] - qp.A_qp[i] @ none  # the shortfall is zero
            least = acceleration + held  # of the gap's acceleration, at A y = lba
            gap, end = at[1] + H * rate + SHARE * H**2 * least, rate + H * least
            if not (end < -0.05 and at[1] > MARGIN and least < 0.99 * BRAKING):
                continue
            assert gap - end**2 / (2 * BRAKING) == pytest.approx(MARGIN, abs=1e-5)
            checked += 1
    assert checked > 30


@pytest.mark.parametrize("limited", [False, True])
def test_in_mujoco_an_arm_stays_off_a_pillar_that_is_in_its_way(arm, limited):
    law, plant = (
        law_of(arm, limited),
        Plant(ARM.replace('size=".08"', 'size=".08" contype="0" conaffinity="0"')),
    )
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    plant.reset(START)
    ref = law.reference_at(START)
    ref[law.reference_slices["tool.position"]] = [0.56, 0.15]
    z, least = law.z0, np.inf
    for _ in range(1500):
        u, z, status, *_ = (
            np.array(x).ravel() for x in law.function(plant.q, plant.v, ref, np.zeros(0), z)
        )
        assert status[0] == 0
        plant.step(u, 2)
        for geom in ("lower", "hand"):
            least = min(least, gap_of(model, data, ("pillar", geom), plant.q))
    if not limited:
        assert least < -0.02
        return
    assert MARGIN - 5e-4 < least < MARGIN + 0.02


def test_the_exported_law_keeps_soft_distances_as_the_function_does(arm, tmp_path):
    law = law_of(arm, soft=[SoftLimit("distances", price=10.0)], name="apart")
    exported = export_c(law, tmp_path / "apart").load()
    rng, relaxed = np.random.default_rng(2), 0
    for _ in range(40):
        q, v = rng.uniform(-0.6, 0.6, 3), 3 * rng.standard_normal(3)
        ref = law.reference_at(START)
        ours, theirs = (
            [np.array(out).ravel() for out in call(q, v, ref, np.zeros(0), law.z0)]
            for call in (law.function, exported)
        )
        assert ours[2] == theirs[2] == 0
        np.testing.assert_allclose(theirs[0], ours[0], rtol=0, atol=1e-7 * np.abs(ours[0]).max())
        np.testing.assert_array_equal(theirs[5], ours[5])
        relaxed += bool(ours[5][0])
    assert 3 <= relaxed < 40


def test_distances_of_nothing_or_unknown_pairs_are_refused(arm):
    def law(**limits):
        return InverseDynamicsQP(arm, [PostureTask()], distance_limits=DistanceLimits(**limits))

    with pytest.raises(UnknownNameError, match="body 'arm'"):
        law(braking=1.0, bodies=("arm",))
    with pytest.raises(UnknownNameError, match="pair 'hand'"):
        law(braking=1.0, pairs=("hand",))
    with pytest.raises(ProblemError, match="braking = 0"):
        law(braking=0.0)
    with pytest.raises(ProblemError, match="margin = -1"):
        law(braking=1.0, margin=-1.0)
    with pytest.raises(ProblemError, match="expected one of them"):
        law(braking=1.0, bodies=(), pairs=())
    hills = mb.read_mjcf(
        ARM.replace('type="sphere" pos=".55 .02 0" size=".08"', 'type="hfield" hfield="hills"')
        .replace("<default>", '<default><geom contype="1" conaffinity="2"/>')
        .replace('hfield="hills"', 'hfield="hills" contype="2" conaffinity="1"')
        .replace(
            "<worldbody>",
            '<asset><hfield name="hills" nrow="2" ncol="2" size="1 1 1 1"/></asset><worldbody>',
        )
    )
    with pytest.raises(ProblemError, match=r"without a formula: .*lower on pillar"):
        InverseDynamicsQP(hills, [PostureTask()], distance_limits=DistanceLimits(1.0))
    one = law(braking=1.0, pairs=("hand on pillar",))
    assert [x for x in one.row_names if x.startswith("distance")] == ["distance 'hand on pillar'"]
