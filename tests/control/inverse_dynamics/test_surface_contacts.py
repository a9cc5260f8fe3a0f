"""Flat feet as wrenches: the cone against linear programs, the law against corners, C."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.contacts.soles import edges_of, wrench_cone
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError

STANDING = """
<mujoco><option timestep="0.001"/>
  <worldbody><geom type="plane" size="3 3 .1"/>
    <body name="foot" pos="0 0 .03">
      <freejoint/>
      <geom name="sole" type="box" size=".12 .05 .03" mass="2"/>
      <site name="a" pos=".12 .05 -.03"/><site name="b" pos=".12 -.05 -.03"/>
      <site name="c" pos="-.12 .05 -.03"/><site name="d" pos="-.12 -.05 -.03"/>
      <body name="shank" pos="0 0 .06">
        <joint name="pitch" axis="0 1 0"/><joint name="roll" axis="1 0 0"/>
        <joint name="yaw" axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0 0 .6" size=".04" mass="8"/>
        <site name="head" pos="0 0 .6"/></body></body></worldbody>
  <actuator><motor joint="pitch" ctrlrange="-60 60"/><motor joint="roll" ctrlrange="-60 60"/>
    <motor joint="yaw" ctrlrange="-30 30"/></actuator></mujoco>
"""
SOLES = {
    "rectangle": [[0.1, 0.05, 0], [0.1, -0.05, 0], [-0.06, 0.05, 0], [-0.06, -0.05, 0]],
    "triangle": [[0.1, 0.0, 0.02], [-0.05, 0.06, 0.02], [-0.05, -0.06, 0.02]],
    "pentagon": [[np.cos(a), np.sin(a), 0] for a in 2 * np.pi * np.arange(5) / 5],
}


@pytest.mark.parametrize("name", SOLES)
@pytest.mark.parametrize(("sides", "cone"), [(3, "inner"), (4, "inner"), (6, "outer")])
@pytest.mark.every(3)
def test_the_cone_holds_exactly_the_wrenches_that_its_corners_can_give(name, sides, cone):
    arms, rng = np.array(SOLES[name]), np.random.default_rng(sides)
    axes = contact_axes(rng.standard_normal(3))
    arms = arms @ axes[[1, 2, 0]]
    edges = edges_of(Contact("foot", friction=0.6, sides=sides, cone=cone))
    faces = wrench_cone(arms, axes, edges)
    rays = np.array([np.r_[f, np.cross(r, f)] for r in arms for f in edges @ axes])
    found = [0, 0]
    for k in range(200):
        inside = rng.dirichlet(np.full(len(rays), 0.2)) @ rays
        spread = 0.01 if k % 2 else 0.5
        wrench = inside + spread * rng.standard_normal(6) * np.abs(rays).max(axis=0)
        excess = faces @ wrench
        if np.abs(excess).max() and np.abs(excess.max()) < 1e-6:
            continue  # on the border
        reached = linprog(np.zeros(len(rays)), A_eq=rays.T, b_eq=wrench, method="highs").status == 0
        assert reached == (excess.max() <= 0)
        found[reached] += 1
    assert min(found) > 15


system = pytest.fixture(scope="module")(lambda: mb.read_mjcf(STANDING))


def controller(system, *, contact=None, **options):
    tasks = [
        FrameTask("head", position="xyz", orientation="", kp=60.0, weight=1.0),
        PostureTask(["yaw"], kp=40.0),
    ]
    feet = [Contact(name, friction=0.5, sides=4, **(contact or {})) for name in "abcd"]
    return InverseDynamicsQP(system, tasks, feet, torque_weight=1e-9, **options)


def states(system, count, reach):
    rng = np.random.default_rng(2)
    for _ in range(count):
        q = np.array(system.tree.q0)
        q[7:] = 0.05 * rng.standard_normal(3)
        yield q, np.r_[np.zeros(6), 0.1 * rng.standard_normal(3)], reach * rng.standard_normal(3)


def test_a_wrench_moves_as_forces_on_the_corners_do(system):
    wrench, points = (
        controller(system, internal_forces=kind, internal_force_weight=1e-9)
        for kind in ("wrench", "body")
    )
    assert wrench.stages.qp.n < points.stages.qp.n
    bound = 0
    for q, v, reach in states(system, 60, 0.3):
        answers = []
        for law in (wrench, points):
            ref = law.reference_at(q)
            ref[law.reference_slices["head.position"]] += reach
            answers.append(law.solve(q, v, ref=ref))
        ours, theirs = answers
        assert ours.status == theirs.status == 0
        assert_allclose(ours.a, theirs.a, atol=2e-5 * max(1, np.abs(theirs.a).max()))
        total = ours.contact_forces.sum(axis=0), theirs.contact_forces.sum(axis=0)
        assert_allclose(*total, atol=1e-4 * np.abs(total[1]).max())
        bound += np.abs(ours.z_next[: len(wrench.row_names)]).max() > 0
    assert bound > 20


@pytest.mark.long
def test_the_generated_c_has_the_wrench(system, tmp_path):
    law = controller(system, internal_forces="wrench")
    compiled = export_c(law, tmp_path / "law").load()
    for k, (q, v, reach) in enumerate(states(system, 40, 0.3)):
        ref = law.reference_at(q)
        ref[law.reference_slices["head.position"]] += reach
        mask = np.ones(4) if k % 4 else np.array([1.0, 1.0, 0.0, 1.0])
        inputs = {"q": q, "v": v, "ref": ref, "mask": mask, "z": law.z0}
        in_c, expected = compiled(**inputs), law.function(**inputs)
        assert float(in_c["status"]) == float(expected["status"]) == 0
        assert_allclose(np.array(in_c["u"]), np.array(expected["u"]), rtol=1e-6, atol=1e-6)


def test_a_sole_stands_in_mujoco(system):
    law = controller(system, internal_forces="wrench")
    q0 = np.array(system.tree.q0)
    report = mb.validate(law, STANDING, 1.0, reference=law.reference_at(q0), q0=q0)
    recording = report.runs[0].recording
    assert np.all(recording.status == 0)
    assert np.abs(recording.monitor["error"][-1]).max() < 2e-3


@pytest.mark.long
def test_a_contact_that_holds_by_adhesion_may_pull(system):
    """Upside down: the weight pulls at the corners, each at most by its adhesion."""
    spec = mujoco.MjSpec.from_string(STANDING)
    spec.option.gravity = [0, 0, 9.81]
    hanging, q = mb.read_mjcf(spec), system.tree.q0
    weight = 10 * 9.81
    for cone in ("inner", "quadratic"):
        weak, strong = (
            controller(hanging, contact={"adhesion": share * weight, "cone": cone})
            for share in (0.2, 0.3)
        )
        assert weak.solve(q, np.zeros(9)).status == 2
        held = strong.solve(q, np.zeros(9))
        assert held.status == 0
        assert_allclose(held.contact_forces[:, 0].sum(), -weight, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"contact": {"cone": "quadratic"}}, "one normal"),
        ({"contact": {"adhesion": 1.0}}, "one normal"),
        ({"tunable": ("friction",)}, "tunable friction"),
    ],
)
def test_what_a_wrench_cannot_be_is_refused(system, options, words):
    refused(ProblemError, words, lambda: controller(system, internal_forces="wrench", **options))


def test_a_foot_without_a_surface_is_no_wrench(system):
    tasks, feet = [PostureTask()], [Contact(name) for name in "ab"]
    with pytest.raises(ProblemError, match="without a flat foot"):
        InverseDynamicsQP(system, tasks, feet, internal_forces="wrench")


def test_a_sole_on_its_edge_needs_a_key_frame_that_tells_the_side_of_the_ground():
    on_edge = STANDING.replace('pos="0 0 .03"', 'pos="0 0 .05" euler="90 0 0"')
    with pytest.raises(ProblemError, match="a, b, c, d is turned by 90°"):
        controller(mb.read_mjcf(on_edge), internal_forces="wrench")
    flat = '<keyframe><key qpos="0 0 .03 1 0 0 0 0 0 0"/></keyframe></mujoco>'
    law = controller(mb.read_mjcf(on_edge.replace("</mujoco>", flat)), internal_forces="wrench")
    stands = law.solve(np.r_[0, 0, 0.03, 1, np.zeros(6)], np.zeros(9))
    assert stands.status == 0
    assert stands.contact_forces[:, 0].sum() == pytest.approx(10 * 9.81, rel=1e-6)
