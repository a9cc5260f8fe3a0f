"""An arm's tool on a circle at 1.1 m/s, position and orientation, by its stock servos or motors."""

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import (
    DisturbanceObserver,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
)
from mbcasadi.validation import Recording
from robots.arms.row import Figure
from robots.models import path as robot_path

RADIUS, SPEED = 0.15, 1.1  # m, m/s
PERIOD, DURATION = 0.002, 5.0  # s
SETTLED = {True: 2.0, False: 1.5}  # s, with an observer and without
KP, POSTURE_KP = 900.0, 25.0  # 1/s²
BANDWIDTH = 10.0  # 1/s, of the observer


@dataclass(frozen=True)
class Arm:
    """A robot arm of MuJoCo Menagerie.

    Attributes:
        model: file name.
        frame: site or body of the tool.
        keyframe: start.
        kind: of the frame.
        torques: largest torques of the motors in the place of servos, N m; the servos' where None.
    """

    model: str
    frame: str
    keyframe: str = "home"
    kind: str = "site"
    torques: tuple[float, ...] | None = None

    def spec(self, motors: bool) -> mujoco.MjSpec:
        """Return the model, with a motor in the place of each servo of a joint if asked."""
        spec = mujoco.MjSpec.from_file(str(robot_path(self.model)))
        if motors:
            driven = [x for x in spec.actuators if x.trntype == mujoco.mjtTrn.mjTRN_JOINT]
            torques = self.torques or [float(x.forcerange[1]) for x in driven]
            for actuator, largest in zip(driven, torques, strict=True):
                actuator.set_to_motor()
                actuator.ctrlrange = -largest, largest
        return spec


IIWA_TORQUES = 320.0, 320.0, 176.0, 176.0, 110.0, 40.0, 40.0  # N m, of its data sheet
IIWA = Arm("men__kuka_iiwa_14__iiwa14", "attachment_site", torques=IIWA_TORQUES)


def circle(law: InverseDynamicsQP, q0: np.ndarray, frame: str):
    """Return the reference over time: a circle in the y-z plane whose speed grows within 1 s."""
    rest = law.reference_at(q0)
    names = (f"{frame}.{part}" for part in ("position", "velocity", "acceleration"))
    slices = [law.reference_slices[name] for name in names]
    rate = SPEED / RADIUS

    def reference(t: float) -> np.ndarray:
        s = min(t, 1.0)
        angle = rate * ((s**3 - s**4 / 2) if t < 1 else t - 0.5)
        turn, gain = rate * (3 * s**2 - 2 * s**3), rate * 6 * (s - s**2)
        c, d = np.cos(angle), np.sin(angle)
        ref = rest.copy()
        ref[slices[0]] += RADIUS * np.array([0, d, c - 1])
        ref[slices[1]] = RADIUS * turn * np.array([0, c, -d])
        bend = gain * np.array([0, c, -d]) - turn**2 * np.array([0, d, c])
        ref[slices[2]] = RADIUS * bend
        return ref

    return reference


def run(arm: Arm, motors: bool, delay: int, mass: float, observer: bool) -> Recording:
    """Return the recording of the generated C in MuJoCo."""
    model = arm.spec(motors).compile()
    learned = DisturbanceObserver(BANDWIDTH) if observer else None
    law = InverseDynamicsQP(
        mb.read_mjcf(model),
        [FrameTask(arm.frame, kind=arm.kind, kp=KP), PostureTask(kp=POSTURE_KP, weight=1e-4)],
        joint_limits=JointLimits(),
        observer=learned,
        period=PERIOD,
        delay=delay,
    )
    q0 = np.array(model.key(arm.keyframe).qpos)
    reference = circle(law, q0, arm.frame)
    errors = {"mass": mass} if mass else None
    report = mb.validate(
        law, model, DURATION, reference=reference, q0=q0, delay=delay, perturb=errors
    )
    return report.runs[0].recording


def rms(recording: Recording, since: float) -> float:
    """Return the RMS error of the tool's position, mm; infinite where the run ended early."""
    if recording.events:
        return np.inf
    error = recording.monitor["error"][recording.t >= since, :3]
    return 1e3 * float(np.sqrt(np.mean(np.sum(error**2, axis=1))))


def figures() -> Iterator[Figure]:
    """Yield the figures, run by run."""
    conditions = [(0, 0.0, False), (1, 0.0, False), (1, 0.1, False), (1, 0.1, True)]
    for motors in (False, True):
        for delay, mass, observer in conditions:
            words = f"{delay} ticks late" + (f", mass +{mass:.0%}" if mass else "")
            words += ", observer" if observer else ""
            recording = run(IIWA, motors, delay, mass, observer)
            name = f"iiwa14, {'motors' if motors else 'servos'}, circle at {SPEED} m/s"
            goal = 1.0 if observer or not mass else None
            yield Figure(name, words, "RMS error", rms(recording, SETTLED[observer]), goal, "mm")
            bad = int(np.count_nonzero(recording.status))
            yield Figure(name, words, "ticks without a solution", bad, 0)
