"""Inverse dynamics on contacts of the model's own geometry, with MuJoCo as the plant."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.errors import ProblemError
from mbcasadi.validation import validate

QUADRUPED = models.path("quadruped")
WEIGHT_SHARE = 0.01  # the standing robot has come to rest to this share of its weight


def standing_law(feet):
    system = mb.read_mjcf(QUADRUPED)
    tasks = [FrameTask("trunk", kind="body", name="trunk"), PostureTask(weight=1e-3)]
    return InverseDynamicsQP(system, tasks, feet, period=0.002)


def run_of(law, duration):
    stand = law.system.tree.keyframes["stand"]
    reference = law.reference_at(stand)
    return validate(law, QUADRUPED, duration, q0=stand, reference=reference, fast=True).runs[0]


@pytest.mark.long
def test_a_quadruped_stands_on_the_feet_of_its_geometry():
    found = mb.contacts_of(mb.read_mjcf(QUADRUPED), ground="floor")
    run = run_of(standing_law([foot.as_contact(sides=4) for foot in found]), 0.5)
    weight = 9.81 * sum(body.mass for body in mb.read_mjcf(QUADRUPED).tree.bodies)
    record = run.recording
    assert run.passed
    assert record.contact_names == ("FL on floor", "FR on floor", "RL on floor", "RR on floor")
    assert record.contact_normal[-1].sum() == pytest.approx(weight, rel=WEIGHT_SHARE)
    assert np.all(record.contact_normal[-1] > 0.15 * weight)
    centres = record.contact_position[-1].reshape(4, 3)
    np.testing.assert_allclose(centres[:, 2], 0.022, atol=1e-3)  # the radius of a foot


def test_a_contact_made_by_hand_without_a_place_is_refused_by_the_plant():
    law = standing_law([mb.Contact("FL on floor", kind="contact")])
    with pytest.raises(ProblemError, match="'FL on floor' has no place on a body"):
        run_of(law, 0.01)
