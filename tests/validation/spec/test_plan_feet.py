"""Which points of a foot are contacts of a plan."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.system import contacts_of
from mbcasadi.validation.spec.inverse_dynamics import Touch
from mbcasadi.validation.spec.plan_feet import contacts_of_plan, corners

SQUARE = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
FOOT = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="foot" pos="0 0 .02"><freejoint/>{shapes}</body></worldbody></mujoco>"""
BALL = '<geom name="{name}" size=".02" pos="{x} {y} 0"/>'


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([[0.0, 0.0], [0.1, 0.0]], [0, 1]),
        ([[0.1, 0.001], [0.2, 0.0], [0.0, 0.0]], [1, 2]),  # one between two others
        ([*SQUARE, [0.5, 0.4]], [0, 1, 2, 3]),
        ([[0.5, 0.4], *SQUARE[:3]], [1, 2, 3]),
        (SQUARE, [0, 1, 2, 3]),
    ],
)
def test_points_that_others_span_are_left_out(places, expected):
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert corners([turn @ np.array(place) + [3.0, -2.0] for place in places]) == expected


@pytest.mark.parametrize("way", [1, -1])
def test_an_arched_foot_has_heel_and_toe(way):
    shapes = [("heel", -0.1), ("arch", 0.0), ("toe", 0.1)][::way]
    balls = "".join(BALL.format(name=name, x=x, y=0) for name, x in shapes)
    system = mb.read_mjcf(FOOT.format(shapes=balls))
    q = np.array(system.tree.q0)
    feet = contacts_of(system, ground="floor", q=q)
    names = {geom.name for geom in system.tree.geoms}
    found = [foot.frame for foot in contacts_of_plan(system, feet, names, q)]
    assert found == ["heel", "toe"][::way]


LYING = '<geom name="{name}" type="capsule" size=".02 .08" pos="0 {y} 0" euler="0 90 0"/>'


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([0.0], ["sole on floor, rim +0", "sole on floor, rim -0"]),
        ([0.0, 0.1], ["sole", "side"]),
    ],
)
def test_a_foot_that_is_one_lying_capsule_stands_on_its_two_ends(places, expected):
    shapes = "".join(
        LYING.format(name=n, y=y) for n, y in zip(["sole", "side"], places, strict=False)
    )
    system = mb.read_mjcf(FOOT.format(shapes=shapes))
    q = np.array(system.tree.q0)
    feet = contacts_of(system, ground="floor", q=q)
    names = {geom.name for geom in system.tree.geoms}
    found = [foot.frame for foot in contacts_of_plan(system, feet, names, q)]
    assert found == expected
    if len(places) == 1:
        touch = [Touch.of(frame=name, kind="contact").contacts(system, q) for name in found]
        points = [np.array(system.frame(c.frame, c.kind).pose(q)[0]) for (c,) in touch]
        np.testing.assert_allclose(np.hstack(points).T, [[0.08, 0, 0], [-0.08, 0, 0]], atol=1e-12)


def test_a_point_of_a_rim_is_one_contact():
    """Of two cylinders that lie side by side the points are fixed, without being named so."""
    shapes = "".join(LYING.format(name=n, y=y) for n, y in (("left", 0.0), ("right", 0.1)))
    system = mb.read_mjcf(FOOT.format(shapes=shapes.replace("capsule", "cylinder")))
    q = np.array(system.tree.q0)
    names = [each.name for each in contacts_of(system, ground="floor", q=q)]
    assert all(", rim " in name for name in names)
    for name in names:
        (contact,) = Touch.of(frame=name, kind="contact").contacts(system, q)
        assert contact.frame == name
