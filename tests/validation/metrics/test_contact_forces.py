"""Planned contact forces beside MuJoCo's, foot by foot."""

import dataclasses

import mujoco
import numpy as np
import pytest
from support.validation_problems import TICKS, crank_controller, recording

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.plant import Plant
from mbcasadi.validation import Criteria, Report, ScenarioOptions
from mbcasadi.validation.metrics.contact_metrics import contact_force_metrics, contact_forces

FOUR_BAR, QUADRUPED = mb.models.path("four_bar"), mb.models.path("quadruped")
FEET = ("FL", "FR", "RL", "RR")
LIFTED = (0.3, 0.5)  # s, while the first foot is not counted on


@pytest.fixture(scope="module")
def plant():
    return Plant(FOUR_BAR)


def weight_of(model):
    return float(np.sum(model.body_mass) * np.linalg.norm(model.opt.gravity))


def two_contacts():
    side = Contact("b", friction=0.5, normal=(0.0, 1.0, 0.0))
    contacts = (Contact("a", friction=0.5), side)
    return dataclasses.replace(crank_controller(), contacts=contacts)


def test_differences_are_those_of_the_contacts_own_axes_over_the_weight(plant):
    planned = np.tile([10.0, 1.0, 2.0, 20.0, 0.0, 0.0], (TICKS, 1))
    measured = np.zeros((TICKS, 2, 3))
    measured[:, 0] = [1.0, 2.0, 13.0]  # x, y, z: the normal is z
    measured[:, 1] = [3.0, 20.0, 4.0]  # the normal is y
    record = recording(
        contact_names=("a", "b"), contact_force=measured, monitor={"contact_force": planned}
    )
    found, weight = contact_forces(two_contacts(), record, plant), weight_of(plant.model)
    first, second = found.rows
    assert found.weight == pytest.approx(weight)
    assert (first.normal_rms, first.tangential_rms) == pytest.approx((3 / weight, 0.0))
    assert (second.normal_rms, second.tangential_rms) == pytest.approx((0.0, 5 / weight))
    values = {metric.name: metric.value for metric in contact_force_metrics(found)}
    assert values["contact.force_normal"] == pytest.approx(3 / weight)
    assert values["contact.force_tangential"] == pytest.approx(5 / weight)
    assert found.to_dict()["planned"][0] == [[10.0, 1.0, 2.0], [20.0, 0.0, 0.0]]


def test_a_force_is_compared_with_the_plan_whose_control_acts(plant):
    force = np.sin(np.arange(TICKS) / 30.0)
    measured, planned = np.zeros((TICKS, 2, 3)), np.zeros((TICKS, 6))
    measured[:, 0, 2], planned[:-3, 0] = force, force[3:]  # planned three ticks before
    fields = {"contact_names": ("a", "b"), "contact_force": measured}
    record = recording(**fields, monitor={"contact_force": planned})
    late, prompt = (contact_forces(two_contacts(), record, plant, delay) for delay in (3, 0))
    assert late.rows[0].normal_worst == pytest.approx(0.0)
    assert prompt.rows[0].normal_worst > 0.09 / weight_of(plant.model)
    assert late.t[0] == pytest.approx(3e-3)


def test_plans_that_were_not_solved_and_the_start_are_left_out(plant):
    measured, planned = np.zeros((TICKS, 2, 3)), np.zeros((TICKS, 6))
    planned[100:200, 0], planned[:50, 3] = 50.0, np.nan
    status = np.zeros(TICKS, dtype=int)
    status[100:200] = two_contacts().safe_statuses[0]
    record = recording(contact_names=("a", "b"), contact_force=measured, status=status,
                       monitor={"contact_force": planned})  # fmt: skip
    found = contact_forces(two_contacts(), record, plant, settle=0.02)
    assert len(found.t) == TICKS - 150
    assert found.rows[0].normal_worst == 0.0
    assert contact_forces(two_contacts(), record, plant, settle=1e3) is None


def test_without_plans_or_contacts_there_is_nothing(plant):
    names = {"contact_names": ("a", "b")}
    assert contact_forces(two_contacts(), recording(**names), plant) is None
    assert contact_forces(crank_controller(), recording(), plant) is None
    assert list(contact_force_metrics(None)) == []


@pytest.fixture(scope="module")
def run():
    """A quadruped that stands and takes the load off one foot for a while."""
    system = mb.read_mjcf(QUADRUPED)
    tasks = [FrameTask("trunk", kind="body", kp=100.0), PostureTask(kp=50.0, weight=1e-3)]
    law = InverseDynamicsQP(system, tasks, [Contact(foot) for foot in FEET], period=0.002)
    stand = np.array(system.tree.keyframes["stand"])

    def mask(t):
        return np.array([0.0 if LIFTED[0] <= t < LIFTED[1] else 1.0, 1.0, 1.0, 1.0])

    options = {"scenario": ScenarioOptions(mask=mask, timestep=0.002), "fast": True, "delay": 1}
    criteria = Criteria({}, settle=0.15)
    return mb.validate(
        law, QUADRUPED, 0.7, reference=law.reference_at(stand), q0=stand, criteria=criteria,
        **options,
    ).runs[0]  # fmt: skip


def test_the_feet_of_a_quadruped_carry_what_was_planned(run):
    forces = run.contact_forces
    model = mujoco.MjModel.from_xml_path(str(QUADRUPED))
    assert forces.weight == pytest.approx(weight_of(model))
    assert [row.name for row in forces.rows] == list(FEET)
    for at in (forces.planned, forces.measured):  # at rest both bear the weight
        assert at[-1, :, 0].sum() == pytest.approx(forces.weight, rel=0.05)
    size = np.sqrt(np.mean(forces.measured[:, :, 1:] ** 2)) / forces.weight
    assert size > 0.01
    late = (forces.measured - forces.planned)[-50:] / forces.weight
    assert np.abs(late).max() < 0.02
    for row in forces.rows:  # the touch-down included
        assert row.normal_rms < 0.1
        assert row.tangential_rms < size


def test_a_foot_that_is_not_counted_on_has_no_plan(run):
    forces, first = run.contact_forces, run.contact_forces.rows[0]
    idle = (forces.t > LIFTED[0] + 0.001) & (forces.t < LIFTED[1] + 0.001)  # one tick late
    assert np.array_equal(forces.active[:, 0], ~idle)
    assert first.planned == pytest.approx(1 - idle.mean())
    loads = np.linalg.norm(forces.measured[idle, 0], axis=1)
    assert first.unplanned == pytest.approx(loads.max() / forces.weight)
    assert [row.planned for row in forces.rows[1:]] == [1.0, 1.0, 1.0]
    assert run.to_dict()["contact_forces"]["contacts"][0]["name"] == "FL"


@pytest.mark.long
def test_the_report_has_the_forces_of_each_foot(run):
    page = Report((run,)).to_html()
    assert "Planned contact forces against MuJoCo's" in page
    assert page.count("<tr><td>FL</td>") == 1
