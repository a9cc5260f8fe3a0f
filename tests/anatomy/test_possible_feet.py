"""Geoms that could be feet, and actuators by kind: what `mbcasadi inspect` tells of a model."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.anatomy.links import Links, standing
from mbcasadi.anatomy.possible_feet import lowest_point, possible_feet
from mbcasadi.system.actuator_kinds import actuator_kinds

SHAPES = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" margin="9"/>
    <body name="base" pos="0 0 1">
      <freejoint/>
      <geom name="ball" type="sphere" size=".1" pos=".4 0 0"/>
      <geom name="rod" type="capsule" size=".05 .2" euler="40 30 0"/>
      <geom name="can" type="cylinder" size=".08 .15" euler="25 70 10" pos="0 .5 0"/>
      <geom name="egg" type="ellipsoid" size=".1 .2 .05" euler="20 50 30" pos="0 -.5 0"/>
      <geom name="crate" type="box" size=".1 .2 .05" euler="15 35 60" pos="-.5 0 .2"/>
    </body>
  </worldbody>
</mujoco>
"""

ROBOT = """
<mujoco>
  <worldbody>{floor}
    <body name="trunk" pos="0 0 .6">{base}
      <geom name="trunk" type="box" size=".3 .1 .1"/>
      <body name="leg" pos=".2 0 -.1">
        <joint name="leg" axis="0 1 0"/>
        <geom name="shin" type="capsule" fromto="0 0 0 0 0 -.4" size=".02"/>
        <body name="sole" pos="0 0 -.4"><geom name="sole" size=".03" {sole}/></body>
      </body>
      <body name="arm" pos="-.2 0 .1">
        <joint name="arm" axis="0 1 0"/>
        <geom name="hand" type="capsule" fromto="0 0 0 0 0 .3" size=".02"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

FLOOR = '<geom name="floor" type="plane" size="5 5 .1"/>'


def feet(floor=FLOOR, base="<freejoint/>", sole=""):
    system = mb.read_mjcf(ROBOT.format(floor=floor, base=base, sole=sole))
    return [foot.geom for foot in possible_feet(standing(system.tree))]


def test_the_lowest_point_of_a_shape_is_where_mujoco_finds_it():
    """MuJoCo's contacts with the plane z = 0 have the height as their distance."""
    model = mujoco.MjModel.from_xml_string(SHAPES)
    tree, data = mb.read_mjcf(SHAPES).tree, mujoco.MjData(model)
    data.qpos[3:] = np.array([0.9, 0.2, -0.3, 0.1]) / np.linalg.norm([0.9, 0.2, -0.3, 0.1])
    mujoco.mj_forward(model, data)
    heights = {}
    for contact in data.contact:
        name = model.geom(max(contact.geom)).name
        heights[name] = min(contact.dist, heights.get(name, np.inf))
    assert set(heights) == {"ball", "rod", "can", "egg", "crate"}
    links = Links(tree, data.qpos)
    for geom in tree.geoms[1:]:
        np.testing.assert_allclose(lowest_point(links, geom), heights[geom.name], atol=1e-6)


def test_the_feet_of_the_packaged_quadruped_are_its_four_feet():
    found = possible_feet(standing(mb.read_mjcf(models.path("quadruped")).tree))
    assert [foot.geom for foot in found] == ["FL", "FR", "RL", "RR"]
    assert [foot.body for foot in found] == ["FL_foot", "FR_foot", "RL_foot", "RR_foot"]
    assert all(foot.kind == "sphere" and abs(foot.lowest) < 0.02 for foot in found)


def test_a_foot_is_low_outermost_and_may_touch_the_ground():
    assert feet() == ["sole"]
    assert feet(sole='contype="0" conaffinity="0"') == ["shin"]
    assert feet(sole='contype="2" conaffinity="2"') == ["shin"]  # not the floor's bits


def test_without_a_ground_what_may_touch_anything_may_touch_it():
    assert feet(floor="", sole='contype="2" conaffinity="4"') == ["sole"]


def test_shapes_that_only_pairs_of_a_scene_let_touch_are_feet():
    nothing = 'contype="0" conaffinity="0"'
    robot = ROBOT.replace('size=".02"/>', f'size=".02" {nothing}/>')
    system = mb.read_mjcf(robot.format(floor="", base="<freejoint/>", sole=nothing))
    assert [foot.geom for foot in possible_feet(standing(system.tree))] == ["sole"]


def test_a_robot_whose_base_stands_fast_has_no_feet():
    assert feet(base="") == []
    slides = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>'
    assert feet(base=slides) == ["sole"]
    assert feet(base=slides.replace("0 0 1", "0 1 0")) == []  # it cannot rise


ACTUATORS = """
<mujoco>
  <worldbody><body><joint name="a" axis="0 1 0" range="-1 1"/><geom size=".1"/></body></worldbody>
  <actuator>
    <motor name="motor" joint="a"/>
    <position name="position" joint="a" kp="3" kv="1"/>
    <position name="slow position" joint="a" kp="3" timeconst="0.1"/>
    <velocity name="velocity" joint="a" kv="2"/>
    <intvelocity name="intvelocity" joint="a" kp="2" actrange="-1 1"/>
    <damper name="damper" joint="a" kv="1" ctrlrange="0 1"/>
    <muscle name="muscle" joint="a" lengthrange="0 1"/>
    <general name="spring" joint="a" gainprm="2" biastype="affine" biasprm="0 -1 0"/>
    <cylinder name="cylinder" joint="a"/>
  </actuator>
</mujoco>
"""


def test_actuators_have_the_kind_of_their_element_in_mjcf():
    assert actuator_kinds(mb.read_mjcf(ACTUATORS)) == {
        "motor": ("motor",),
        "position": ("position", "slow position"),
        "velocity": ("velocity",),
        "intvelocity": ("intvelocity",),
        "damper": ("damper",),
        "muscle": ("muscle",),
        "general": ("spring", "cylinder"),
    }


@pytest.mark.parametrize("name", ["four_bar", "quadruped"])
def test_packaged_models_have_motors(name):
    system = mb.read_mjcf(models.path(name))
    assert actuator_kinds(system) == {"motor": system.actuator_names}
