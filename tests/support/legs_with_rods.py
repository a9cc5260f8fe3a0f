"""A robot on two soles whose knees are driven by light rods from the hips; feet wider than hips."""

import numpy as np

import mbcasadi as mb

SIDES = {"left": 1.0, "right": -1.0}
ROLL, BEND = 0.1, 0.3  # rad: legs lean outward, and how far thighs and shanks are bent
LENGTH, CRANK, ROD = 0.4, 0.05, 0.02  # m, m, kg
POINTS = ("toe", "heel")


def _leg(side: str, sign: float, stiffness: float) -> str:
    """Return the bodies of a leg: rod and crank are parallel to thigh and shank."""
    spring = f'<joint name="{side}_spring" axis="0 1 0" stiffness="{stiffness}"/>' * (stiffness > 0)
    return f"""
<body name="{side}_hip" pos="0 {0.1 * sign} 0"><joint name="{side}_roll" axis="1 0 0"/>
 <inertial pos="0 0 0" mass="1" diaginertia=".004 .004 .004"/>
 <body name="{side}_thigh"><joint name="{side}_pitch" axis="0 1 0"/>
  <inertial pos="0 0 -.2" mass="2" diaginertia=".03 .03 .005"/>
  <body name="{side}_shank" pos="0 0 -{LENGTH}"><joint name="{side}_knee" axis="0 1 0"/>
   <inertial pos="0 0 -.2" mass="1" diaginertia=".015 .015 .002"/>
   <site name="{side}_pin" pos="{CRANK} 0 0"/>
   <body name="{side}_shin" pos="0 0 -.2">{spring}
    <inertial pos="0 0 -.1" mass=".3" diaginertia=".001 .001 .001"/>
    <body name="{side}_foot" pos="0 0 -{LENGTH - 0.2}"><joint name="{side}_ankle" axis="0 1 0"/>
     <joint name="{side}_ankle_roll" axis="1 0 0"/>
     <inertial pos="0 0 -.02" mass=".5" diaginertia=".001 .001 .001"/>
     <site name="{side}_toe" pos=".1 0 -.04"/><site name="{side}_heel" pos="-.08 0 -.04"/>
    </body></body></body></body>
 <body name="{side}_crank"><joint name="{side}_crank" axis="0 1 0"/>
  <inertial pos="{CRANK / 2} 0 0" mass=".1" diaginertia="1e-4 1e-4 1e-4"/>
  <body name="{side}_rod" pos="{CRANK} 0 0"><joint name="{side}_rod" axis="0 1 0"/>
   <inertial pos="0 0 -.2" mass="{ROD}" diaginertia="3e-4 3e-4 1e-6"/>
   <site name="{side}_end" pos="0 0 -{LENGTH}"/></body></body></body>"""


def _motors(side: str) -> str:
    joints = ("roll", "pitch", "crank", "ankle", "ankle_roll")
    names = (f"{side}_{joint}" for joint in joints)
    limits = 'ctrllimited="true" ctrlrange="-300 300"'
    return "".join(f'<motor name="{name}" joint="{name}" {limits}/>' for name in names)


def model(stiffness: float = 0.0) -> str:
    """Return its MJCF; with a spring of so much, N m/rad, in each shank above zero."""
    legs = "".join(_leg(side, sign, stiffness) for side, sign in SIDES.items())
    loops = "".join(f'<connect site1="{side}_pin" site2="{side}_end"/>' for side in SIDES)
    return f"""<mujoco><worldbody><body name="trunk"><freejoint name="root"/>
<inertial pos="0 0 .2" mass="20" diaginertia=".5 .5 .3"/>{legs}</body></worldbody>
<equality>{loops}</equality><actuator>{"".join(map(_motors, SIDES))}</actuator></mujoco>"""


def standing(stiffness: float = 0.0) -> tuple[mb.System, np.ndarray, list[mb.Contact]]:
    """Return the robot, its pose with level soles on the ground, and its contacts."""
    system = mb.read_mjcf(model(stiffness))
    q = np.array(system.tree.q0, dtype=float)
    place = {joint.name: joint.qpos for joint in system.tree.joints}
    for side, sign in SIDES.items():
        bent = {"pitch": -BEND, "knee": 2 * BEND, "ankle": -BEND, "crank": BEND, "rod": -2 * BEND}
        for name, angle in (bent | {"roll": sign * ROLL, "ankle_roll": -sign * ROLL}).items():
            q[place[f"{side}_{name}"]] = angle
    feet = [mb.Contact(f"{s}_{point}", friction=0.6) for s in SIDES for point in POINTS]
    q[2] -= float(system.frame(feet[0].frame).pose(q)[0][2])
    return system, q, feet
