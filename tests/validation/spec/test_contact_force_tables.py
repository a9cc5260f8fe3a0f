"""Sliding contacts, references of their forces and the feedback of measured ones, from TOML."""

import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.control import RigidSprings
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.system import read_mjcf
from mbcasadi.validation.spec import parse_spec
from mbcasadi.validation.spec.kinds import experiment_for_system

TABLES = {
    "type": "inverse_dynamics_qp",
    "start": {"keyframe": "stand"},
    "task": [{"type": "frame", "frame": "trunk", "kind": "body"}],
    "contact": [
        {"frame": "FL", "slides": True, "slide_speed": 0.02, "force": [40.0, 0.0, 0.0]},
        {
            "frame": "FR on floor",
            "kind": "contact",
            "slides": True,
            "force": [30.0, 0.0, 0.0],
            "slide_task": "trunk",
        },
        {"frame": "RL"},
    ],
    "options": {"force_weight": [1e-2, 0.0, 0.0]},
    "force_feedback": {"limit": 12.0, "gain": 8.0},
}


def experiment(**changes):
    system = read_mjcf(models.path("quadruped"))
    q = np.array(system.tree.keyframes["stand"])
    return experiment_for_system(parse_spec(TABLES | changes), system, q)


def test_sliding_contacts_and_forces_reach_the_controller():
    found = experiment()
    law = found.controller
    assert [contact.slides for contact in law.contacts] == [True, True, False]
    assert [contact.slide_speed for contact in law.contacts] == [0.02, 0.01, 0.01]
    assert [contact.slide_task for contact in law.contacts] == ["", "trunk", ""]
    assert (law.force_feedback.limit, law.force_feedback.gain) == (12.0, 8.0)
    np.testing.assert_allclose(law.contact_weights, np.tile([1e-2, 0, 0], 3))
    force = found.reference(0.3)[law.reference_slices["force"]]
    np.testing.assert_allclose(force, [40, 0, 0, 30, 0, 0, 0, 0, 0])
    assert "f_measured" in law.function.name_in()


def test_a_contact_of_a_file_has_the_defaults_of_python():
    assert experiment().controller.contacts[2] == Contact("RL")


def test_ramps_and_friction_reach_the_controller():
    law = experiment(
        load_ramp={"duration": 0.1, "force": 60.0},
        friction_loss={"losses": {"FL_calf": 0.4}, "share": 0.7},
    ).controller
    assert (law.load_ramp.duration, law.load_ramp.force) == (0.1, 60.0)
    assert (dict(law.friction_loss.losses), law.friction_loss.share) == ({"FL_calf": 0.4}, 0.7)


ELASTIC = """
<mujoco>
  <worldbody><body><joint name="motor" axis="0 1 0"/><geom size=".1"/>
    <body><joint name="spring" axis="0 1 0" stiffness="500"/><geom size=".1" pos=".3 0 0"/></body>
  </body></worldbody>
  <actuator><motor joint="motor"/></actuator>
</mujoco>
"""


def test_springs_reach_the_controller():
    tables = {"type": "inverse_dynamics_qp", "task": [{"type": "posture", "joints": ["motor"]}]}
    tables["rigid_springs"] = {"joints": ["spring"], "damping": 12.0}
    law = experiment_for_system(parse_spec(tables), read_mjcf(ELASTIC), np.zeros(2)).controller
    assert law.rigid_springs == RigidSprings(("spring",), damping=12.0)
    with pytest.raises(ProblemError, match="'FL_calf' has no stiffness"):
        experiment(rigid_springs={"joints": ["FL_calf"]})


def test_a_feedback_without_a_reference_is_refused():
    with pytest.raises(ProblemError, match="without a reference"):
        experiment(contact=[{"frame": "FL"}])
