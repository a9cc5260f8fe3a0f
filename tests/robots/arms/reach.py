"""Arms whose references are too fast and too far: 3 m/s, then 1 m beyond reach, then back."""

from collections.abc import Callable, Iterator

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
from robots.arms.circles import IIWA, Arm
from robots.arms.row import Figure

PERIOD, DELAY, MASS = 0.002, 1, 0.1
KP, POSTURE_KP = 400.0, 25.0  # 1/s²
SPEED, AMPLITUDE = 3.0, 0.4  # m/s, m: 22 m/s² at the ends
FAST, EACH, BACK = 3.0, 1.5, 2.0  # s: there and back, in each direction beyond reach, at home again
FAR = 2.0  # m from home
DIRECTIONS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, -1, 0]])
DURATION = FAST + EACH * len(DIRECTIONS) + BACK
SPEED_LIMIT, PANDA_SPEED = 6.0, 3.0  # rad/s
PANDA = Arm("men__franka_emika_panda__panda", "hand", kind="body")

Reference = Callable[[float], np.ndarray]


def path(law: InverseDynamicsQP, q0: np.ndarray, frame: str) -> Reference:
    """Return the reference: there and back along y, then out and back at 3 m/s, then at rest."""
    rest = law.reference_at(q0)
    place, speed, change = (
        law.reference_slices[f"{frame}.{part}"] for part in ("position", "velocity", "acceleration")
    )
    rate = SPEED / AMPLITUDE

    def reference(t: float) -> np.ndarray:
        ref = rest.copy()
        if t < FAST:
            fade, angle = min(t, 1.0), rate * t
            gain = fade**2 * (3 - 2 * fade)
            ref[place.start + 1] += gain * AMPLITUDE * np.sin(angle)
            ref[speed.start + 1] = gain * SPEED * np.cos(angle)
            ref[change.start + 1] = -gain * SPEED * rate * np.sin(angle)
        elif t < DURATION - BACK:
            which, since = divmod(t - FAST, EACH)
            way = DIRECTIONS[int(which)]
            out = min(SPEED * since, SPEED * (EACH - since), FAR)
            ref[place] += way * out
            if out < FAR:
                ref[speed] = way * SPEED * (1 if since < EACH / 2 else -1)
        return ref

    return reference


def run(arm: Arm, motors: bool) -> tuple[mujoco.MjModel, Recording]:
    """Return the plant's model, and the recording of the generated C in MuJoCo."""
    model = arm.spec(motors).compile()
    system = mb.read_mjcf(model)
    law = InverseDynamicsQP(
        system,
        [FrameTask(arm.frame, kind=arm.kind, kp=KP), PostureTask(kp=POSTURE_KP, weight=5e-4)],
        joint_limits=JointLimits(velocity=PANDA_SPEED if arm is PANDA else SPEED_LIMIT),
        observer=DisturbanceObserver(),
        period=PERIOD,
        delay=DELAY,
    )
    q0 = np.array(model.key(arm.keyframe).qpos)
    reference = path(law, q0, arm.frame)
    report = mb.validate(
        law, model, DURATION, reference=reference, q0=q0, delay=DELAY, perturb={"mass": MASS}
    )
    return model, report.runs[0].recording


def beyond_stops(model: mujoco.MjModel, recording: Recording) -> np.ndarray:
    """Return by how much each joint with a range was beyond it at most, rad or m."""
    limited = np.flatnonzero(model.jnt_limited)
    q = recording.q[:, model.jnt_qposadr[limited]]
    low, high = model.jnt_range[limited].T
    return np.maximum(low - q, q - high).max(axis=0)


def measured(arm: Arm, motors: bool) -> Iterator[Figure]:
    """Yield the figures of one run."""
    model, recording = run(arm, motors)
    name = f"{arm.model.split('__')[-1]}, {'motors' if motors else 'servos'}"
    words = f"{SPEED:g} m/s, then {FAR:g} m away, mass +{MASS:.0%}, {DELAY} tick late"
    if recording.events:
        yield Figure(name, words, "time until the run ended", -recording.t[-1], -DURATION, "s")
        return
    error = 1e3 * np.linalg.norm(recording.monitor["error"][:, :3], axis=1)
    fast = error[(recording.t > 1.0) & (recording.t < FAST)]
    yield Figure(name, words, "beyond a stop", beyond_stops(model, recording).max(), 1e-3, "rad")
    yield Figure(name, words, "at 3 m/s: RMS error", np.sqrt(np.mean(fast**2)), None, "mm")
    yield Figure(name, words, "largest error", error.max(), None, "mm")
    yield Figure(name, words, "error back at home", error[-1], 1.0, "mm")
    bad = int(np.count_nonzero(recording.status))
    yield Figure(name, words, "ticks without a solution", bad, 0)


def figures() -> Iterator[Figure]:
    """Yield the figures, run by run."""
    for arm in (IIWA, PANDA):
        for motors in (False, True):
            yield from measured(arm, motors)
