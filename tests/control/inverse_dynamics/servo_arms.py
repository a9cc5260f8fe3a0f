"""Arms with stiff servos, and MuJoCo's motion of one tick."""

from dataclasses import dataclass
from functools import cache

import mujoco
import numpy as np

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast")
if hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"):  # from MuJoCo 4 on
    INTEGRATORS += ("discrete",)

ARM = """
<mujoco><compiler autolimits="true"/>
  <option timestep="{step}" integrator="{integrator}"/>
  <default><joint armature="{armature}" damping="{damping}"/></default>
  <worldbody><body>
      <joint name="shoulder" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="2"/>
      <body pos="0.4 0 0">
        <joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1"/>
        <body pos="0.3 0 0">
          <joint name="wrist" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.02" mass="0.3"/></body></body>
    </body></worldbody>
  <tendon><fixed name="coupled"><joint joint="elbow" coef="1"/><joint joint="wrist" coef="0.5"/>
  </fixed></tendon>
  <actuator><position name="shoulder" joint="shoulder" kp="{kp}" kv="{kv}" {range}/>
    <position name="coupled" tendon="coupled" kp="{kp}" kv="{kv}" gear="2"/>
    <position name="wrist" joint="wrist" kp="{kp}" kv="{kv}" gear="3" {range}/></actuator>
</mujoco>
"""


def arm(
    integrator: str = "implicitfast",
    step: float = 0.002,
    *,
    kp: float = 800.0,
    kv: float = 60.0,
    armature: float = 0.02,
    damping: float = 0.0,
    force_range: str = "",
) -> str:
    """Return an arm of three joints, with servos on two joints and on a tendon."""
    return ARM.format(
        integrator=integrator,
        step=step,
        kp=kp,
        kv=kv,
        armature=armature,
        damping=damping,
        range=force_range,
    )


@dataclass(frozen=True)
class Tick:
    """What MuJoCo does during a tick: mean acceleration, forces at its start and end."""

    acceleration: np.ndarray
    start: np.ndarray
    end: np.ndarray
    q: np.ndarray
    v: np.ndarray


@cache
def model_of(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


def mujoco_tick(xml: str, q: np.ndarray, v: np.ndarray, u: np.ndarray, steps: int) -> Tick:
    model = model_of(xml)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
    mujoco.mj_forward(model, data)
    start = np.array(data.actuator_force)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    period = steps * model.opt.timestep
    return Tick(
        (np.array(data.qvel) - v) / period,
        start,
        np.array(data.actuator_force),
        np.array(data.qpos),
        np.array(data.qvel),
    )
