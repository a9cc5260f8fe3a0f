"""Contacts and tasks of frames given as expressions, against MuJoCo's matrices and a second QP."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import casadi as ca
import mujoco
import numpy as np
import pytest
from full_problem import solve
from mujoco_problem import mujoco_full_problem
from numpy.testing import assert_allclose
from support.kept_solvers import new_solvers
from support.lagrangian_of_mjcf import lagrangian_of
from support.mechanisms_of_control import admissible, closed, with_sites

from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.description import Contact
from mbcasadi.description.status import Status
from mbcasadi.qp import solver as qp_solver
from mbcasadi.system import System, read_mjcf

MILLIMETRES, GRAMS = 1000.0, 1000.0  # in a metre, in a kilogram
FEET = ("foot_1", "foot_2", "foot_3", "foot_4")
SLAB = """<mujoco model="slab"><compiler angle="radian"/>
<default><site size="0.01"/></default>
<worldbody><body name="slab" pos="0 0 0.05">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
  <joint name="z" type="slide" axis="0 0 1"/>
  <joint name="roll" axis="1 0 0"/><joint name="pitch" axis="0 1 0"/>
  <joint name="yaw" axis="0 0 1"/>
  <inertial pos="0.01 0 0.02" mass="6" diaginertia="0.05 0.07 0.1"/>
  <site name="deck" pos="0 0 0.1" euler="0.3 -0.2 0.5"/>
  <site name="foot_1" pos="0.2 0.15 -0.05"/><site name="foot_2" pos="-0.2 0.15 -0.05"/>
  <site name="foot_3" pos="-0.2 -0.15 -0.05" euler="0.4 0 0"/>
  <site name="foot_4" pos="0.2 -0.15 -0.05" euler="0 0.7 0.2"/>
  <body name="pillar" pos="0 0 0.1">
    <joint name="shoulder" axis="0 1 0" damping="0.05" armature="0.01"/>
    <inertial pos="0 0 0.2" mass="1.5" diaginertia="0.02 0.02 0.002"/>
    <body name="arm" pos="0 0 0.4" euler="0.2 0 0">
      <joint name="elbow" axis="1 0 0" damping="0.02" armature="0.01"/>
      <inertial pos="0.05 0 0.15" quat="0.9 0.1 0.3 0.2" mass="1" diaginertia="0.01 0.012 0.004"/>
      <site name="tool" pos="0.05 0 0.3" euler="0 0.4 0"/></body></body></body></worldbody>
<actuator><motor name="shoulder" joint="shoulder" ctrlrange="-40 40"/>
<motor name="elbow" joint="elbow" ctrlrange="-25 25"/></actuator></mujoco>"""


class Twins(NamedTuple):
    """One mechanism twice, with the model that judges both."""

    model: mujoco.MjModel
    tree: System
    lagrangian: System
    contacts: tuple[Contact, ...]
    tasks: tuple[FrameTask, ...]
    loops: tuple[tuple[str, str], ...] = ()

    def lagrangian_state(self, q, v, length=1.0):
        """Return q, v of the Lagrangian: slides in its unit of length."""
        slides = self.model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
        unit = np.where(slides, length, 1.0)
        return unit * q, unit * v


def slab_tasks(length):
    weight = 2.0 / length**2  # 1/m²
    tool = FrameTask("tool", position="xy", orientation="", kp=80.0, weight=weight)
    return (tool, FrameTask("deck", position="", orientation="xyz", kp=50.0, weight=0.5))


@cache
def slab(length=1.0, mass=1.0):
    """A slab on four feet, which motors in a mast on it can tip over: redundant contacts."""
    model = mujoco.MjModel.from_xml_string(SLAB)
    feet = tuple(Contact(name, friction=0.4, sides=6) for name in FEET)
    twin = lagrangian_of(model, length=length, mass=mass)
    return Twins(model, read_mjcf(SLAB), twin, feet, slab_tasks(length))


@cache
def five_bar(length=1.0, mass=1.0):
    """A five-bar whose tool presses on a slope: a loop, and a point without a rotation."""
    spec = with_sites(models.path("five_bar"), [("pin", "right_distal", (-0.24, 0, 0.32))])
    model = spec.compile()
    ends = ("left_distal", (0.24, 0, 0.32), "right_distal", (-0.24, 0, 0.32), "xz")
    twin = lagrangian_of(model, [ends], length=length, mass=mass, points=("tool",))
    wall = Contact("tool", normal=(0.6, 0.0, 0.8), friction=0.2, sides=8)
    task = FrameTask("tool", position="xz", orientation="", kp=60.0, weight=1 / length**2)
    return Twins(model, read_mjcf(spec), twin, (wall,), (task,), (("tool", "pin"),))


def random_state(twins, rng, spread=0.15, speed=0.4):
    """Return q, v near the initial pose, on the loops."""
    q = spread * rng.standard_normal(twins.model.nv)
    v = speed * rng.standard_normal(twins.model.nv)
    if not twins.loops:
        return q, v
    q = closed(twins.lagrangian, q)
    return q, admissible(np.array(twins.lagrangian.constraint_jacobian(q)), v)


def random_reference(law, q, rng, size=1.0):
    ref = law.reference_at(q)
    for name, place in law.reference_slices.items():
        if not name.endswith("quaternion"):
            ref[place] += size * rng.standard_normal(place.stop - place.start)
    return ref


def slices_of(law, ref, task, length=1.0):
    """Return a task's slices of the reference by quantity; lengths in metres."""
    linear = {"position", "velocity", "acceleration"}
    found = {}
    for name, place in law.reference_slices.items():
        owner, quantity = name.split(".")
        if owner == task.name:
            found[quantity] = ref[place] / (length if quantity in linear else 1.0)
    return found


JUDGED = 1e-7  # relative: two solvers and two models, condition numbers up to 1e9
SAME = 1e-6  # of twins, relative: scales are medians over other poses, weights shares of 1e-8
UNITS = 1e-6  # of two systems of units, relative
C = 1e-10  # the C and the Function, relative

# The weight on forces, 1/N², alone determines those that move nothing: the twins agree on it.
BY_FORCES = {"force_weight": 1.0, "internal_force_weight": 1e-8, "torque_weight": 1e-8}


def law_of(system, twins, **options):
    return InverseDynamicsQP(system, twins.tasks, twins.contacts, **options)


def mask_of(law, on):
    return np.concatenate([on, np.ones(len(law.mask_names) - len(on))])


def judged(twins, law, q, v, ref, on, **changes):
    """Return the optimum of the full problem with MuJoCo's M, h, J and J̇v."""
    tasks = [(task, slices_of(law, ref, task)) for task in twins.tasks]
    full = mujoco_full_problem(
        twins.model, q, v, tasks, twins.contacts,
        weights=law.force_weights, loops=twins.loops, on=on,
    )  # fmt: skip
    return solve(replace(full, **changes))


def assert_close(got, expected, tolerance, label, least=1.0):
    size = max(least, np.abs(expected).max(initial=0.0))
    assert_allclose(got, expected, atol=tolerance * size, rtol=0, err_msg=label)


@pytest.mark.parametrize("make", [slab, five_bar])
@pytest.mark.parametrize("form", ["tree", "lagrangian"])
@pytest.mark.every(3)
def test_every_set_of_contacts_gets_the_optimum_of_the_full_problem(make, form):
    twins, rng = make(), np.random.default_rng(3)
    law = law_of(getattr(twins, form), twins)
    solved, pressed, infeasible = 0, 0, 0
    for k in range(24):
        q, v = random_state(twins, rng, speed=4.0 if k % 6 == 0 else 0.4)
        ref = random_reference(law, q, rng)
        on = (rng.random(len(twins.contacts)) < 0.8).astype(float)
        answer, got = judged(twins, law, q, v, ref, on), law.solve(q, v, ref, mask=mask_of(law, on))
        assert answer.feasible == (got.status == Status.SOLVED), got.explain()
        if not answer.feasible:
            infeasible += got.status == Status.INFEASIBLE
            continue
        solved += 1
        assert_close(got.a, answer.a, JUDGED, "a")
        assert_close(got.p, answer.p, JUDGED, "p")
        assert_close(got.contact_forces[on > 0], answer.force, JUDGED, "forces")
        assert not np.any(got.contact_forces[on == 0])
        pressed += bool(np.abs(answer.force).max(initial=0.0) > 1.0)
    assert solved >= 16
    assert pressed >= 8
    assert infeasible or make is five_bar


@pytest.mark.parametrize("make", [five_bar, slab])
@pytest.mark.every(2)
def test_a_lagrangian_gets_the_controls_and_forces_of_its_mjcf(make):
    twins, rng = make(), np.random.default_rng(4)
    laws = [law_of(system, twins, **BY_FORCES) for system in (twins.tree, twins.lagrangian)]
    for _ in range(8):
        q, v = random_state(twins, rng)
        ref = random_reference(laws[0], q, rng, 0.3)
        first, second = (law.solve(q, v, ref) for law in laws)
        assert first.solved, first.explain()
        assert second.solved, second.explain()
        for name in ("u", "a", "contact_forces"):
            assert_close(getattr(second, name), getattr(first, name), SAME, name)
        assert_allclose(laws[1].reference_at(q), laws[0].reference_at(q), atol=1e-12)


@pytest.mark.parametrize("make", [five_bar, slab])
@pytest.mark.every(2)
def test_millimetres_and_grams_change_nothing(make):
    metres, others = make(), make(MILLIMETRES, GRAMS)
    laws = [law_of(twins.lagrangian, twins) for twins in (metres, others)]
    newton = GRAMS * MILLIMETRES
    weights = [law.force_weights for law in laws]
    by_torques = weights[0].actuators / weights[1].actuators
    assert_allclose(by_torques, (newton * MILLIMETRES) ** 2, rtol=UNITS)
    assert weights[0].internal / weights[1].internal == pytest.approx(newton**2, rel=UNITS)
    rng, linear = np.random.default_rng(5), ("position", "velocity", "acceleration")
    for _ in range(6):
        q, v = random_state(metres, rng)
        ref = random_reference(laws[0], q, rng, 0.3)
        scaled = ref.copy()
        for name, place in laws[0].reference_slices.items():
            scaled[place] *= MILLIMETRES if name.split(".")[1] in linear else 1.0
        first = laws[0].solve(q, v, ref)
        second = laws[1].solve(*others.lagrangian_state(q, v, MILLIMETRES), scaled)
        assert first.status == second.status
        assert_close(second.u / (newton * MILLIMETRES), first.u, UNITS, "u")
        assert_close(second.contact_forces / newton, first.contact_forces, UNITS, "forces")


@pytest.mark.long
def test_the_generated_c_answers_as_the_function_does(tmp_path, monkeypatch):
    """The Function solves by its second method: DAQP's plugin loses digits that are compared."""
    monkeypatch.setattr(qp_solver, "REFINED", -1.0)
    twins, rng = slab(), np.random.default_rng(6)
    with new_solvers():
        law = law_of(twins.lagrangian, twins, name="law")
    exported = export_c(law, tmp_path / "law").load()
    seen = set()
    for k in range(60):
        q, v = random_state(twins, rng, speed=4.0 if k % 6 == 0 else 0.4)
        if k % 20 == 7:
            q[0] = np.nan
        ref = law.reference_at(np.zeros(8))
        mask = rng.random(4) < 0.9
        ours, theirs = (
            [np.array(out).ravel() for out in call(q, v, ref, mask, law.z0)]
            for call in (law.function, exported)
        )
        assert ours[2] == theirs[2]
        assert_close(theirs[0], ours[0], C, "u")
        seen.add(int(ours[2][0]))
    assert {Status.SOLVED, Status.INFEASIBLE, Status.BAD_INPUT} <= seen


@pytest.mark.long
def test_sites_and_expressions_on_one_body_share_its_load():
    """A site of the body tells its axes: a point beside it needs none of its own."""
    twins, rng = slab(), np.random.default_rng(7)
    q = ca.SX.sym("q", 8)
    system = twins.tree
    p, R = system.frame("foot_2").pose(q)
    system = system.with_frame("turned", q, p, R @ R.T @ R)
    system = system.with_frame("point", q, system.frame("foot_3").pose(q)[0])
    renamed = {"foot_2": "turned", "foot_3": "point"}
    contacts = [replace(c, frame=renamed.get(c.frame, c.frame)) for c in twins.contacts]
    mixed, plain = law_of(system, twins._replace(contacts=contacts)), law_of(system, twins)
    (group,) = mixed.contact_groups
    assert group.members == (0, 1, 2, 3)
    assert_allclose(group.arms, plain.contact_groups[0].arms, atol=1e-14)
    for on in ((1, 1, 1, 1), (1, 0, 1, 1), (0, 1, 1, 0)):
        q, v = random_state(twins, rng)
        ref = random_reference(plain, q, rng, 0.3)
        first, second = (law.solve(q, v, ref, mask=on) for law in (plain, mixed))
        assert first.status == second.status
        assert_close(second.u, first.u, C, "u")
        assert_close(second.contact_forces, first.contact_forces, C, "forces")


def test_points_of_a_lagrangian_are_grouped_by_their_bodies():
    """The deck's feet are one body; the tool is another, although its site is an expression too."""
    twins = slab()
    contacts = [twins.contacts[0], replace(twins.contacts[1], frame="tool"), twins.contacts[2]]
    law = law_of(twins.lagrangian, twins._replace(contacts=contacts))
    assert [group.members for group in law.contact_groups] == [(0, 2), (1,)]
    by_tree = law_of(twins.tree, twins._replace(contacts=contacts)).contact_groups
    assert [group.members for group in by_tree] == [(0, 2), (1,)]
    feet = [twins.model.site(FEET[k]).pos for k in (0, 2)]
    apart = np.linalg.norm(law.contact_groups[0].arms[0] - law.contact_groups[0].arms[1])
    assert apart == pytest.approx(np.linalg.norm(feet[0] - feet[1]), rel=1e-12)
