"""A robot with a free base on three telescopic legs: the least that an IMU and feet observe."""

from functools import cache

import numpy as np

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.estimation import Encoders, Imu, base_estimator, encoder_noise

LEGS, PERIOD = ("a", "b", "c"), 0.004
PLACES = ((0.2, 0.0), (-0.1, 0.17), (-0.1, -0.17))  # m

_LEG = """
<body name="leg_{name}" pos="{x} {y} -0.2">
  <joint name="{name}" type="slide" axis="0 0 -1" range="-0.1 0.1"/>
  <geom type="capsule" fromto="0 0 0.1 0 0 -0.1" size="0.02" mass="0.3" contype="0"
    conaffinity="0"/>
  <geom name="foot_{name}" type="sphere" size="0.02" pos="0 0 -0.12" mass="0.05"/>
  <site name="{name}" pos="0 0 -0.12"/>
</body>"""

MODEL = f"""
<mujoco model="tripod"><option timestep="0.002"/><worldbody>
  <geom type="plane" size="5 5 .1"/>
  <body name="trunk" pos="0 0 0.34"><freejoint name="base"/>
    <geom type="box" size="0.15 0.12 0.03" mass="4"/>
    <site name="imu" pos="0.03 0.01 0.02" euler="0 0 40"/>
    {"".join(_LEG.format(name=n, x=x, y=y) for n, (x, y) in zip(LEGS, PLACES, strict=True))}
  </body></worldbody>
  <actuator>{"".join(f'<motor joint="{n}" ctrlrange="-60 60"/>' for n in LEGS)}</actuator>
</mujoco>"""
"""The trunk at rest is 0.34 m above the ground."""

START = np.array([0, 0, 0.34, 1, 0, 0, 0, 0, 0, 0], dtype=float)


@cache
def tripod():
    """Return the system and its feet."""
    return mb.read_mjcf(MODEL), tuple(mb.Contact(name, friction=0.7) for name in LEGS)


@cache
def standing():
    """Return a law that holds the trunk, and the estimator of its state."""
    system, feet = tripod()
    law = InverseDynamicsQP(
        system, [FrameTask("trunk", kp=100.0, kind="body")], feet, period=PERIOD, name="hold"
    )
    imu, encoders = Imu("imu"), Encoders(noise=encoder_noise(16), rate_noise=5e-3)
    estimator = base_estimator(
        system, feet, imu=imu, encoders=encoders, q0=START, period=PERIOD, name="hold_estimator"
    )
    return law, estimator
