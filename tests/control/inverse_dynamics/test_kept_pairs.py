"""Distances without arguments: which pairs are kept apart, planes, and an arm driven at itself."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.loops_in_mujoco import ticks

import mbcasadi as mb
from mbcasadi.control import DistanceLimits, InverseDynamicsQP, PostureTask
from mbcasadi.model import geometry
from mbcasadi.plant import Plant

H = 0.002
POSES = 3000
FAR = 10.0  # m
SHARP = 1e-7  # m

# A shroud about the elbow always overlaps the turret; the turret turns on its fixed pedestal.
FOLDING = """
<mujoco><option timestep="0.001"/>
  <default><geom mass="0.5"/><motor ctrllimited="true" ctrlrange="-60 60"/></default>
  <worldbody><geom name="floor" type="plane" size="2 2 .1" pos="0 0 -.3"/>
    <body name="base"><geom name="pedestal" type="cylinder" size=".08 .12" pos="0 0 -.18"/>
      <body name="turret"><joint name="yaw" axis="0 0 1"/>
        <geom name="turret" type="box" size=".06 .07 .05"/>
        <body name="upper"><joint name="shoulder" axis="0 1 0" range="-100 100"/>
          <geom name="upper" type="capsule" fromto="0 0 .12 0 0 .25" size=".04"/>
          <body name="lower" pos="0 0 .3"><joint name="elbow" axis="0 1 0" range="-170 170"/>
            <geom name="shroud" type="sphere" size=".26" mass="0"/>
            <geom name="lower" type="cylinder" fromto="0 0 .05 0 0 .2" size=".03"/>
            <body name="hand" pos="0 0 .25"><joint name="wrist" axis="0 1 0" range="-90 90"/>
              <geom name="hand" type="box" size=".05 .03 .02"/>
            </body></body></body></body></body></worldbody>
  <actuator><motor joint="yaw"/><motor joint="shoulder"/><motor joint="elbow"/>
    <motor joint="wrist"/></actuator>
</mujoco>
"""

PARALLELOGRAM = """
<mujoco><option gravity="0 0 0"/><compiler angle="radian"/>
  <default><joint axis="0 1 0"/><motor ctrllimited="true" ctrlrange="-20 20"/></default>
  <worldbody>
    <body name="left" pos="0 0 0"><joint name="a" range="-1 1"/>
      <geom name="left" type="capsule" fromto="0 0 .05 0 0 .25" size=".02"/>
      <body name="bar" pos="0 0 .3"><joint name="b"/>
        <geom name="bar" type="capsule" fromto=".1 0 0 .3 0 0" size=".02"/></body></body>
    <body name="right" pos=".4 0 0"><joint name="c" range="-1 1"/>
      <geom name="right" type="capsule" fromto="0 0 .05 0 0 .25" size=".02"/></body>
  </worldbody>
  <equality><connect name="pin" body1="bar" body2="right" anchor=".4 0 0"/></equality>
  <actuator><motor joint="a"/></actuator>
</mujoco>
"""


def distances(model, q, pairs):
    """Return MuJoCo's distances (n, k) of pairs of geoms at poses (n, nq)."""
    data, found = mujoco.MjData(model), []
    ids = [[model.geom(name).id for name in pair] for pair in pairs]
    for pose in q:
        data.qpos = pose
        mujoco.mj_kinematics(model, data)
        found.append([mujoco.mj_geomDistance(model, data, *each, FAR, None) for each in ids])
    return np.array(found)


def test_pairs_are_kept_that_come_near_and_no_others():
    """MuJoCo's distances at other poses than those that were sampled are the reference."""
    limits, model = DistanceLimits(), mujoco.MjModel.from_xml_string(FOLDING)
    kept = limits.kept(mb.read_mjcf(FOLDING))
    reasons = {(each.geom1, each.geom2): each.reason for each in kept.left_out}
    assert set(kept.pairs).isdisjoint(reasons)
    low, high = model.jnt_range.T.copy()
    low[0], high[0] = -np.pi, np.pi  # the turret has no range
    q = np.random.default_rng(7).uniform(low, high, (POSES, model.nq))
    names = [*kept.pairs, *reasons]
    measured = dict(zip(names, distances(model, q, names).T, strict=True))
    for pair in kept.pairs:
        assert measured[pair].min() < limits.margin + limits.reach + limits.smoothing, pair
        assert measured[pair].max() > limits.margin, pair
    kinds = dict.fromkeys(("farther", "within", "fixed"), 0)
    for pair, reason in reasons.items():
        kind = next(kind for kind in kinds if kind in reason)
        kinds[kind] += 1
        if kind == "farther":
            assert measured[pair].min() > limits.margin, pair
        if kind == "within":
            assert measured[pair].max() <= limits.margin, pair
    assert all(kinds.values()), reasons
    assert ("floor", "hand") in kept.pairs
    assert ("turret", "hand") in kept.pairs
    law = InverseDynamicsQP(
        mb.read_mjcf(FOLDING), [PostureTask()], period=H, distance_limits=limits
    )
    assert law.controller.notes["distances"] == kept.text


def test_contacts_of_the_controller_and_pairs_within_the_margin_at_the_start_are_left_out():
    text = FOLDING.replace("</mujoco>", '<keyframe><key qpos="0 0 2.9 0"/></keyframe></mujoco>')
    system = mb.read_mjcf(text)
    feet = [mb.Contact("hand", kind="geom")]
    kept = DistanceLimits().kept(system, feet)
    reasons = {(each.geom1, each.geom2): each.reason for each in kept.left_out}
    assert reasons["floor", "hand"] == "a contact of the controller"
    assert "at the start" in reasons["turret", "hand"]
    elsewhere = DistanceLimits(start=(0.0, 0.0, 0.0, 0.0)).kept(system, feet)
    assert ("turret", "hand") in elsewhere.pairs
    by_body = DistanceLimits(samples=0).kept(system, [mb.Contact("hand", kind="body")])
    assert ("floor", "hand") not in by_body.pairs


def test_loops_are_closed_at_the_poses_that_judge():
    """The cranks of a parallelogram stay parallel; with the loop open they cross."""
    kept = DistanceLimits().kept(mb.read_mjcf(PARALLELOGRAM))
    opened = PARALLELOGRAM.replace("connect name", 'connect active="false" name')
    assert kept.poses
    assert ("left", "right") not in kept.pairs
    assert ("left", "right") in DistanceLimits().kept(mb.read_mjcf(opened)).pairs


def test_rows_of_shapes_on_a_plane_are_mujocos():
    """Gap, its rate and its second derivative at zero acceleration, of each kind of shape."""
    system, model = mb.read_mjcf(FOLDING), mujoco.MjModel.from_xml_string(FOLDING)
    contacts = {c.geom2: c for c in mb.contacts_of(system, ground="floor")}
    names = ["upper", "lower", "hand"]
    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    rows = geometry.nearest_rows(
        system.tree, [contacts[name].geoms for name in names], 3, SHARP, (q, v)
    )
    function, rng, t = ca.Function("rows", [q, v], [*rows]), np.random.default_rng(2), 1e-4
    for _ in range(20):
        pose, rates = rng.uniform(-1, 1, 4), rng.standard_normal(4)
        J, gaps, biases = (np.array(x) for x in function(pose, rates))
        at = distances(
            model, [pose + s * t * rates for s in (-1, 0, 1)], [("floor", name) for name in names]
        )
        assert_allclose(gaps.ravel(), at[1], atol=1e-6)
        assert_allclose(J @ rates, (at[2] - at[0]) / (2 * t), atol=1e-5)
        assert_allclose(biases.ravel(), (at[2] - 2 * at[1] + at[0]) / t**2, atol=2e-3)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.long
def test_an_arm_that_is_driven_at_itself_stops_before_contact(limited, tmp_path):
    """The generated C folds the arm towards its turret and the floor, in MuJoCo."""
    free = FOLDING.replace("<geom ", '<geom contype="0" conaffinity="0" ')
    free = free.replace('<geom contype="0" conaffinity="0" mass', "<geom mass")
    system, model = mb.read_mjcf(FOLDING), mujoco.MjModel.from_xml_string(FOLDING)
    limits = DistanceLimits() if limited else None
    law = InverseDynamicsQP(system, [PostureTask(kp=50.0)], period=H, distance_limits=limits)
    pairs = DistanceLimits().kept(system).pairs
    plant, least = Plant(free), np.inf
    generated = mb.export_c(law, tmp_path / "law").load() if limited else None
    for target in ([0.0, 0.5, 2.9, 1.0], [1.0, 1.7, 1.5, 0.0], [0.0, -1.7, -2.0, -1.5]):
        plant.reset(np.array([0.0, -0.3, 0.5, 0.2]))
        ref = law.reference_at(np.array(target))
        for out in ticks(law, plant, 400, ref, steps=2, function=generated):
            assert out["status"] == 0
            least = min(least, distances(model, [plant.q], pairs).min())
    if limited:
        assert DistanceLimits().margin - 1e-3 < least < 0.03
    else:
        assert least < -0.01
