"""A report says where the plant's steps damp what contact forces were found for."""

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.validation import ReportOptions, ScenarioOptions

DAMPING = 100.0  # N m s/rad, that leave 0.18 at 1 ms


def notes(damping, **scenario):
    """Return the notes on a stand whose joints are damped."""
    spec = mujoco.MjSpec.from_file(str(mb.models.path("quadruped")))
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_HINGE:
            joint.damping = [damping, 0, 0]
    system = mb.read_mjcf(spec)
    feet = [mb.Contact(name, friction=0.6) for name in ("FL", "FR", "RL", "RR")]
    law = InverseDynamicsQP(system, [FrameTask("trunk", kp=100.0)], feet, period=0.002)
    report = mb.validate(
        law, spec, 0.01, q0=np.array(system.tree.keyframes["stand"]), fast=True,
        scenario=ScenarioOptions(**scenario), report=ReportOptions(explain=False),
    )  # fmt: skip
    return [note for note in report.runs[0].notes if "contact forces" in note]


def test_a_report_says_where_contacts_get_little_of_what_their_forces_were_found_for():
    (note,) = notes(DAMPING)
    step = float(note.partition("timestep=")[2].partition(")")[0])
    assert step < 0.001
    assert not notes(DAMPING, timestep=step)


def test_a_report_says_nothing_of_it_where_they_get_enough():
    assert not notes(0.1)
