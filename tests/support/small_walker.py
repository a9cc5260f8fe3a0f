"""A walker of four legs with three joints each, of any size."""

import numpy as np

import mbcasadi as mb

LEGS = {"FL": (0.2, 0.12), "FR": (0.2, -0.12), "RL": (-0.2, 0.12), "RR": (-0.2, -0.12)}
LEAN, KNEE = 0.6, -1.2  # rad, of thigh and shank when it stands


def small_walker(scale: float = 1.0, damping: float = 0.05) -> str:
    """Return its MJCF: lengths grow as `scale`, masses as its cube, times as its root."""
    s, mass, torque = scale, scale**3, scale**4
    inertia, rate = scale**5, scale**4.5
    legs = "".join(
        f"""
      <body name="{name}_thigh" pos="{s * x} {s * y} 0">
        <joint name="{name}_roll" axis="1 0 0" range="-1 1"/>
        <joint name="{name}_hip" axis="0 1 0" range="-2 2"/>
        <geom type="capsule" fromto="0 0 0 0 0 {-0.15 * s}" size="{0.015 * s}" mass="{0.5 * mass}"/>
        <body name="{name}_shank" pos="0 0 {-0.15 * s}">
          <joint name="{name}_knee" axis="0 1 0" range="-2.5 0"/>
          <geom type="capsule" fromto="0 0 0 0 0 {-0.15 * s}" size="{0.01 * s}"
                mass="{0.15 * mass}"/>
          <geom name="{name}_ball" type="sphere" pos="0 0 {-0.15 * s}" size="{0.015 * s}"
                mass="{0.03 * mass}" contype="1" conaffinity="0"/>
          <site name="{name}" pos="0 0 {-0.15 * s}"/>
        </body>
      </body>"""
        for name, (x, y) in LEGS.items()
    )
    motors = "".join(
        f'<motor joint="{name}_{joint}" ctrlrange="{-12 * torque} {12 * torque}"/>'
        for name in LEGS
        for joint in ("roll", "hip", "knee")
    )
    return f"""
<mujoco model="small_walker">
  <option timestep="{0.001 * s**0.5}" integrator="implicitfast" cone="elliptic" impratio="20"/>
  <default>
    <joint armature="{0.005 * inertia}" damping="{damping * rate}"/>
    <geom contype="0" conaffinity="0"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1" contype="0" conaffinity="1" friction="0.8"/>
    <body name="trunk" pos="0 0 {0.3 * s}">
      <freejoint name="trunk"/>
      <geom type="box" size="{0.25 * s} {0.1 * s} {0.05 * s}" mass="{5 * mass}"/>{legs}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>"""


def standing_pose(system: mb.System, scale: float = 1.0) -> np.ndarray:
    """Return the pose (nq,) in which the balls of its feet touch the floor."""
    q = np.array(system.tree.q0)
    for joint in system.tree.joints:
        q[joint.qpos] = {"hip": LEAN, "knee": KNEE}.get(joint.name[3:], q[joint.qpos])
    foot = np.array(system.frame("FL").pose(q)[0]).ravel()
    q[2] += 0.015 * scale - foot[2]
    return q
