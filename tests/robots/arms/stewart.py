"""A Stewart platform of six or seven legs that turns through singular poses of six legs.

Legs are prismatic, on universal joints, with a ball joint at the platform. Their lengths change by
`J` times the platform's twist; where six rows of it lose rank, six legs cannot hold the platform.
The angles of the feet are such that on the way every choice of six of the seven legs is singular
somewhere, while all seven together keep their rank.
"""

from collections.abc import Callable, Iterator
from itertools import combinations

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import DisturbanceObserver, FrameTask, InverseDynamicsQP, JointLimits
from mbcasadi.validation import Recording
from robots.arms.row import Figure

Array = np.ndarray

FEET, CORNERS, HEIGHT = 0.5, 0.3, 0.6  # m: radii at base and platform, height
BASE_ANGLES = np.deg2rad([-8, 42, 95, 162, 212, 241, 297])
PLATFORM_ANGLES = np.deg2rad([216, 31, 274, 267, 65, 355, 291])
PERIOD, STEP, DELAY, MASS = 2e-3, 5e-4, 1, 0.1
UP = np.array([0.0, 0.0, HEIGHT])
FORCE, STROKE = 400.0, 0.35  # N, m to each side
TURN, DURATION = np.deg2rad(100.0), 6.0  # rad from -TURN/2 to TURN/2, s
KP = 900.0  # 1/s²

LEG = """
<body name="cylinder{i}" pos="{foot}" xyaxes="{axes}">
  <joint name="tilt{i}" axis="1 0 0"/><joint name="lean{i}" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 .3" size=".02" mass="1.0"/>
  <body name="rod{i}" pos="0 0 {length}">
    <joint name="leg{i}" type="slide" axis="0 0 1" range="-{stroke} {stroke}" limited="true"/>
    <geom type="capsule" fromto="0 0 -.3 0 0 0" size=".012" mass="0.5"/><site name="tip{i}"/>
  </body>
</body>"""
MODEL = """
<mujoco model="stewart_{count}">
  <compiler angle="radian"/><option timestep="{step}" integrator="implicitfast"/>
  <default><geom contype="0" conaffinity="0"/>
  <equality solref="0.002 1" solimp="0.99 0.9999 0.001"/></default>
  <worldbody>
    <body name="platform" pos="0 0 {height}">
      <freejoint/><geom type="cylinder" size="{corner} .02" mass="6"/>{corners}<site name="tool"/>
    </body>{legs}
  </worldbody>
  <equality>{pins}</equality>
  <actuator>{motors}</actuator>
</mujoco>"""


def _circle(radius: float, angles: Array, z: float) -> Array:
    """Return points (k, 3) on a circle."""
    return np.column_stack(
        [radius * np.cos(angles), radius * np.sin(angles), np.full(len(angles), z)]
    )


def _turned(points: Array, yaw: float) -> Array:
    c, s = np.cos(yaw), np.sin(yaw)
    return points @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]).T


def length_jacobian(yaw: float, legs: Array) -> Array:
    """Return (k, 6) rates of the legs' lengths over the platform's twist, in its own size."""
    feet = _circle(FEET, BASE_ANGLES[legs], 0.0)
    arms = _turned(_circle(CORNERS, PLATFORM_ANGLES[legs], 0.0), yaw)
    along = arms + UP - feet
    along /= np.linalg.norm(along, axis=1)[:, None]
    return np.hstack([along, np.cross(arms, along) / CORNERS])


def model_text(count: int) -> str:
    """Return the platform with its first `count` legs, at yaw -TURN/2."""
    feet = _circle(FEET, BASE_ANGLES[:count], 0.0)
    corners = _circle(CORNERS, PLATFORM_ANGLES[:count], 0.0)
    tips = _turned(corners, -TURN / 2) + UP
    legs = ""
    for i, (foot, tip) in enumerate(zip(feet, tips, strict=True)):
        way = tip - foot
        length = np.linalg.norm(way)
        z = way / length
        x = np.cross([-z[1], z[0], 0] / np.hypot(z[0], z[1]), z)
        axes = " ".join(f"{value:.15g}" for value in (*x, *np.cross(z, x)))
        place = " ".join(f"{value:.15g}" for value in foot)
        legs += LEG.format(i=i, foot=place, axes=axes, length=f"{length:.15g}", stroke=STROKE)
    points = ("".join(f"{x:.15g} " for x in corner) for corner in _turned(corners, -TURN / 2))
    return MODEL.format(
        count=count,
        step=STEP,
        height=HEIGHT,
        corner=CORNERS,
        corners="".join(f'<site name="corner{i}" pos="{p}"/>' for i, p in enumerate(points)),
        legs=legs,
        pins="".join(
            f'<connect name="pin{i}" site1="tip{i}" site2="corner{i}"/>' for i in range(count)
        ),
        motors="".join(
            f'<motor name="leg{i}" joint="leg{i}" ctrlrange="-{FORCE} {FORCE}"/>'
            for i in range(count)
        ),
    )


def turning(law: InverseDynamicsQP, q0: Array, length: float) -> Callable[[float], Array]:
    """Return the reference: the platform turns by TURN within `length` seconds."""
    rest = law.reference_at(q0)
    rotation, spin, change = (
        law.reference_slices[f"tool.{part}"]
        for part in ("quaternion", "angular_velocity", "angular_acceleration")
    )

    def reference(t: float) -> Array:
        s = min(t / length, 1.0)
        share, rate = s**3 * (10 - 15 * s + 6 * s**2), 30 * (s * (1 - s)) ** 2
        bend = 60 * s * (1 - s) * (1 - 2 * s)
        yaw, ref = TURN * share, rest.copy()
        ref[rotation] = [np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)]
        ref[spin] = [0, 0, TURN * rate / length]
        ref[change] = [0, 0, TURN * bend / length**2]
        return ref

    return reference


def law_of(system: mb.System) -> InverseDynamicsQP:
    """Return the law: the platform's pose, limits of the legs, an observer."""
    return InverseDynamicsQP(
        system,
        [FrameTask("tool", kp=KP)],
        joint_limits=JointLimits(velocity=3.0),
        observer=DisturbanceObserver(),
        period=PERIOD,
        delay=DELAY,
    )


def run(count: int, duration: float = DURATION) -> Recording:
    """Return the recording of the generated C in MuJoCo."""
    text = model_text(count)
    law = law_of(mb.read_mjcf(text))
    q0 = np.array(law.system.tree.q0)
    report = mb.validate(
        law,
        text,
        duration,
        reference=turning(law, q0, duration - 1.0),
        q0=q0,
        delay=DELAY,
        perturb={"mass": MASS},
    )
    return report.runs[0].recording


def turned_configuration(text: str, yaw: float) -> Array:
    """Return the configuration in which the platform is turned to this yaw, its loops closed."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    J = np.zeros((3, model.nv))
    for share in np.linspace(0, 1, 21)[1:]:  # in small steps: Newton's method stays near
        angle = share * (yaw + TURN / 2)
        data.qpos[:7] = [0, 0, HEIGHT, np.cos(angle / 2), 0, 0, np.sin(angle / 2)]
        for _ in range(6):
            mujoco.mj_forward(model, data)
            for i in range((model.nv - 6) // 3):
                gap = data.site(f"corner{i}").xpos - data.site(f"tip{i}").xpos
                mujoco.mj_jacSite(model, data, J, None, model.site(f"tip{i}").id)
                joints = slice(6 + 3 * i, 9 + 3 * i)
                data.qpos[7 + 3 * i : 10 + 3 * i] += np.linalg.solve(J[:, joints], gap)
    return np.array(data.qpos)


def singular_choices() -> int:
    """Return how many choices of six of the seven legs are singular somewhere on the way."""
    yaws = np.linspace(-TURN / 2, TURN / 2, 201)
    signs = [
        [np.sign(np.linalg.det(length_jacobian(yaw, np.array(legs)))) for yaw in yaws]
        for legs in combinations(range(7), 6)
    ]
    return sum(len(set(each)) > 1 for each in signs)


def figures() -> Iterator[Figure]:
    """Yield the figures, run by run."""
    words = f"turn of {np.rad2deg(TURN):.0f}°, mass +{MASS:.0%}, {DELAY} tick late"
    for count in (7, 6):
        name, recording = f"Stewart platform, {count} legs", run(count)
        if recording.events:
            yield Figure(name, words, "seconds until the run ended", recording.t[-1], 0, "s")
            continue
        error = recording.monitor["error"]
        place = 1e3 * np.linalg.norm(error[:, :3], axis=1)
        goal = 1.0 if count == 7 else None
        if count == 7:
            left = 7 - singular_choices()
            yield Figure(name, words, "choices of six legs that stay regular", left, 0)
        rms = float(np.sqrt(np.mean(place**2)))
        yield Figure(name, words, "RMS error", rms, goal, "mm")
        yield Figure(name, words, "largest error", place.max(), goal, "mm")
        turn = 1e3 * np.linalg.norm(error[:, 3:], axis=1).max()
        yield Figure(name, words, "largest error of the turn", turn, None, "mrad")
        yield Figure(name, words, "largest force of a leg", np.abs(recording.u).max(), FORCE, "N")
        bad = int(np.count_nonzero(recording.status))
        yield Figure(name, words, "ticks without a solution", bad, 0 if count == 7 else None)
