"""An unknown name gets the valid ones, the closest one, or the kind of thing that has the name."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import control, models, mpc
from mbcasadi.errors import UnknownNameError
from mbcasadi.plant import Plant
from mbcasadi.unknown_names import LISTED, unknown_name


@pytest.fixture(scope="module")
def quadruped():
    return mb.read_mjcf(models.path("quadruped"))


def law(quadruped, **options):
    return control.InverseDynamicsQP(quadruped, [control.PostureTask()], **options)


CASES = {
    "frame of another kind": (
        lambda q: q.frame("FL_foot"), r"unknown site 'FL_foot': it is the name of a body",
    ),
    "close frame": (lambda q: q.frame("trnk", "body"), r"did you mean 'trunk'\?"),
    "key frame instead of frame": (lambda q: q.frame("stand"), "is the name of a key frame"),
    "joint": (
        lambda q: control.PostureTask(("fl_hips",)).components(q), r"did you mean 'FL_hip'\?",
    ),
    "body instead of joint": (
        lambda q: control.PostureTask(("FL_foot",)).components(q), "is the name of a body",
    ),
    "actuator": (
        lambda q: law(q, actuator_limits=control.ActuatorLimits(("FL_hips",), rate=1.0)),
        "unknown actuator 'FL_hips'; valid: .*; did you mean",
    ),
    "geom": (
        lambda q: mb.contacts_of(q, geoms=["FL_foot"]), "'FL_foot' is the name of a body",
    ),
    "body": (lambda q: mb.contacts_of(q, ["FL_foots"]), r"did you mean 'FL_foot'\?"),
    "ground": (lambda q: mb.contacts_of(q, ground="floors"), r"did you mean 'floor'\?"),
    "contact": (lambda q: law(q, contacts=[mb.Contact("FL_foot")]), "is the name of a body"),
    "slice": (
        lambda q: law(q).reference(posture_p=0.0), r"valid: 'posture.q', .*did you mean",
    ),
    "task of a level": (lambda q: law(q, levels=[["postur"]]), r"did you mean 'posture'\?"),
    "packaged model": (lambda _: models.path("quadruple"), r"did you mean 'quadruped'\?"),
    "key frame": (
        lambda _: Plant(models.path("quadruped")).keyframe("stnd"), r"did you mean 'stand'\?",
    ),
    "frame of the plant": (
        lambda _: Plant(models.path("quadruped")).frame_position("FL_foot"), "name of a body",
    ),
    "parameter": (
        lambda _: mpc.optimal_control_problem(
            mb.read_mjcf(models.path("four_bar")), 2, 0.01, [mpc.Cost(Q=np.ones(6), R=1.0)]
        ).parameters(setpoint_w=0.0),
        "did you mean",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_unknown_name_gets_a_suggestion(quadruped, case):
    call, words = CASES[case]
    with pytest.raises(UnknownNameError, match=words):
        call(quadruped)


def test_of_many_names_the_closest_are_listed():
    names = [f"joint_{i:03}" for i in range(200)]
    message = str(unknown_name("joint", "joint_17x", names))
    assert "did you mean 'joint_1" in message
    assert message.count("'joint_") == LISTED + 2  # the unknown one, and the one that is meant
    assert f"... {200 - LISTED} more" in message


def test_nothing_is_suggested_where_nothing_is_close():
    message = str(unknown_name("joint", "wheel", ["hip", "knee"]))
    assert message == "unknown joint 'wheel'; valid: 'hip', 'knee'"
    assert str(unknown_name("joint", 3, [])) == "unknown joint 3; valid: none"
