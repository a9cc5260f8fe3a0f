"""Mechanisms that exist twice: as MJCF, and from their Lagrangian with frames as expressions."""

from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np
from mechanisms import admissible, closed, with_sites
from support.lagrangian_of_mjcf import lagrangian_of

from mbcasadi import models
from mbcasadi.control import FrameTask
from mbcasadi.description import Contact
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
      <site name="tool" pos="0.05 0 0.3" euler="0 0.4 0"/>
    </body></body></body></worldbody>
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
    """Return q, v near the authored pose, on the loops."""
    q = spread * rng.standard_normal(twins.model.nv)
    v = speed * rng.standard_normal(twins.model.nv)
    if not twins.loops:
        return q, v
    q = closed(twins.lagrangian, q)
    return q, admissible(np.array(twins.lagrangian.constraint_jacobian(q)), v)


def random_reference(law, q, rng, size=1.0):
    """Return a reference near the present pose, and its slices by task."""
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
