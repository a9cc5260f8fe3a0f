"""Mechanisms for the tests of kinematics and dynamics, and numbers out of expressions."""

from pathlib import Path

import casadi as ca
import numpy as np

from mbcasadi import mjcf, model

OWN_MODELS = Path(__file__).resolve().parents[2] / "mujoco_models"

EVERY_JOINT = """
<mujoco model="every_joint">
  <option gravity="0.5 -1 -9.81"/>
  <worldbody>
    <site name="ground" pos=".1 .2 .3" quat="1 2 3 4"/>
    <body name="base" pos="0 0 1">
      <freejoint/>
      <geom type="box" size=".1 .2 .15" pos=".02 .03 .01" euler="10 20 30"/>
      <body name="arm" pos=".2 .1 0" quat="1 .1 .2 .3">
        <joint name="arm_a" axis="1 2 3" pos=".01 .02 .03" ref="17" armature=".05"/>
        <joint name="arm_b" type="slide" axis="0 1 1" pos=".1 .2 .3" ref=".05"/>
        <joint name="arm_c" axis="0 1 0" pos="-.02 0 .1"/>
        <geom type="box" size=".1 .05 .2" pos=".1 .1 0" euler="10 20 30"/>
        <site name="on_arm" pos="0 .1 .05" quat="1 .2 .3 .1"/>
        <body name="wrist" pos=".1 0 .2" euler="30 0 0">
          <joint name="wrist" type="ball" pos=".03 .02 .01" damping=".1"/>
          <geom type="capsule" fromto="0 0 0 .1 .2 .3" size=".03"/>
          <body name="plate" pos=".1 .1 .1" euler="0 20 0">
            <geom size=".05" pos=".1 0 0"/>
            <body name="drawer" pos="0 0 .2">
              <joint name="drawer" type="slide" axis="1 0 1"/>
              <joint name="knob" axis="0 0 1"/>
              <geom type="box" size=".1 .05 .02" pos=".1 .1 0"/>
              <site name="on_drawer" pos="0 .1 .05" quat="1 -.2 .3 .1"/>
            </body>
          </body>
        </body>
      </body>
      <body name="leg" pos="-.1 .1 -.1">
        <joint name="hip" axis="1 0 0"/>
        <geom type="capsule" fromto="0 0 0 0 .05 -.2" size=".03"/>
        <body name="shin" pos="0 .05 -.2">
          <joint name="knee" axis="1 0 0" pos="0 0 .01"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02"/>
          <site name="foot" pos="0 0 -.2"/>
        </body>
      </body>
    </body>
    <body name="mast" pos="1 0 0">
      <joint name="mast" axis="0 0 -1" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body name="pendulum" pos=".3 0 0">
        <joint name="pendulum" axis="0 1 0.2"/>
        <geom type="capsule" fromto="0 0 0 .3 0 .1" size=".03"/>
        <site name="bob" pos=".3 0 .1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

NEARLY_PARALLEL = """
<mujoco model="nearly_parallel">
  <worldbody>
    <body name="a"><joint axis="0 0 1"/><geom type="box" size=".1 .2 .3" pos=".1 .05 .2"/>
      <body name="b" pos=".3 .1 .2" euler="1e-5 0 40"><joint axis="0 0 1"/>
        <geom type="box" size=".1 .2 .3" pos=".1 .05 .2"/>
        <body name="c" pos=".3 .1 .2" euler="0 90.0001 3"><joint axis="0 0 1"/>
          <geom type="box" size=".1 .2 .3" pos=".1 .05 .2"/>
          <body name="d" pos=".3 .1 .2" euler="0 3 0"><joint axis="0 0 1"/>
            <geom type="box" size=".1 .2 .3" pos=".1 .05 .2"/>
            <body name="e" pos="0 0 .2"><joint axis="0 0 -1"/>
              <geom type="box" size=".1 .2 .3" pos=".1 .05 .2"/>
              <site name="tip" pos=".1 .2 .3" euler="10 20 30"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

TOP = """
<mujoco model="top">
  <worldbody>
    <body name="top">
      <joint name="tip" type="ball"/>
      <inertial pos="0.1 0 0.4" mass="2" fullinertia=".3 .4 .5 .01 .02 .03"/>
    </body>
  </worldbody>
</mujoco>
"""

MECHANISMS = {"every_joint": EVERY_JOINT, "nearly_parallel": NEARLY_PARALLEL, "top": TOP}


def tree_of(source):
    """Return the tree of XML text or of a file."""
    return mjcf.read(source).tree


class Numbers:
    """Functions of a tree that take and return arrays."""

    def __init__(self, tree):
        self.tree = tree
        self.q, self.v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
        q, v = self.q, self.v
        q1 = ca.SX.sym("q1", tree.nq)
        self.M = self.of(model.mass_matrix(tree, q), q)
        self.h = self.of(model.bias_force(tree, q, v), q, v)
        self.integrate = self.of(model.integrate(tree, q, v), q, v)
        self.difference = self.of(model.difference(tree, q, q1), q, q1)

    @staticmethod
    def of(expression, *symbols):
        """Return an expression as a function of arrays; columns come back as vectors."""
        f = ca.Function("f", list(symbols), [expression])

        def call(*args):
            value = np.array(f(*args))
            return value.ravel() if value.shape[1] == 1 else value

        return call

    def along(self, function, q, v, step=1e-5):
        """Return d/dt function(q) along v, by central differences of second order."""
        ahead = function(self.integrate(q, step * v))
        behind = function(self.integrate(q, -step * v))
        return (ahead - behind) / (2 * step)

    def frame(self, name, kind=None):
        """Return the frame with this name."""
        return next(f for f in self.tree.frames if f.name == name and kind in (None, f.kind))
