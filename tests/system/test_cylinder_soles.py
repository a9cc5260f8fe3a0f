"""Cylinders side by side under one body are a sole; alone, or in a line, they roll."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.contacts.groups import contact_groups_of
from mbcasadi.errors import UnknownNameError

FOOT = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="foot" pos="0 0 .0299" euler="0 0 20"><freejoint/>{geoms}</body></worldbody></mujoco>"""
BAR = '<geom name="{name}" type="cylinder" size=".03 .1" euler="0 90 0" pos="{pos}"/>'
BESIDE, IN_LINE, ABOVE = "0 .08 0", ".25 0 0", "0 .08 .05"
DEGREE = 0.03 * np.deg2rad(0.51)  # m, by which a point on a rim is off at most
ROUNDING = 1e-9


def foot(other):
    """Return the model of a foot on two cylinders, and its system."""
    places = {"left": "0 0 0", "right": other}
    geoms = "".join(BAR.format(name=name, pos=pos) for name, pos in places.items())
    model = mujoco.MjModel.from_xml_string(FOOT.format(geoms=geoms))
    return model, mb.read_mjcf(model)


def test_points_of_a_sole_are_mujocos_and_one_rigid_body():
    model, system = foot(BESIDE)
    contacts = mb.contacts_of(system)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = np.array([contact.pos for contact in data.contact[: data.ncon]])
    assert len(contacts) == len(theirs) == 4
    names = [contact.as_contact().frame for contact in contacts]
    for contact in contacts:
        ours = np.array(contact.gap(system.tree.q0)[1]).ravel()
        assert np.linalg.norm(theirs - ours, axis=1).min() < DEGREE
    v = np.ones(system.nv)
    for name in names:
        frame = system.frame(name, "contact")
        assert not frame.carrier.rolling
        velocity, J = frame.velocity(system.tree.q0, v), frame.jacobian(system.tree.q0)
        assert np.array(velocity).ravel() == pytest.approx(np.array(J @ v).ravel())
    groups = contact_groups_of(system, [contact.as_contact() for contact in contacts])
    assert [group.rows for group in groups] == [6]  # those of one body: none can contradict another


@pytest.mark.parametrize("other", [IN_LINE, ABOVE])
def test_cylinders_in_a_line_and_one_beside_what_does_not_touch_roll(other):
    labels = [contact.label for contact in mb.contacts_of(foot(other)[1])]
    assert labels == ["edge +", "edge -"] * 2


def test_a_rim_has_a_point_at_each_degree_and_no_others():
    _, system = foot(BESIDE)
    (first, *_) = mb.contacts_of(system)
    assert first.label.startswith("rim")
    point = system.frame("left on floor, rim +15", "contact").pose(system.tree.q0)[0]
    turn, yaw = np.deg2rad(15), np.deg2rad(20)
    # euler 0 90 0: x of the cylinder is -z of the body, its z is x
    place = np.array([0.1, 0.03 * np.sin(turn), -0.03 * np.cos(turn)])
    R = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    assert np.array(point).ravel() == pytest.approx(R @ place + [0, 0, 0.0299], abs=ROUNDING)
    for label in ("rim +360", "rim +015", "rim 15", "rim +"):
        with pytest.raises(UnknownNameError, match="contact"):
            system.frame(f"left on floor, {label}", "contact")
