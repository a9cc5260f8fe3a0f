"""Arms sent 1.1 m away within 1 s, beyond their reach, and back: by default no joint passes a stop.

Each way begins at home: outwards, to both sides and upwards, there and back by a smooth step. Each
arm is driven with `kp` 400, and with the gains that `propose_gains` gives for its ticks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import models as own_models
from mbcasadi.control import (
    DisturbanceObserver,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
    propose_gains,
)
from mbcasadi.description.status import Flag
from mbcasadi.errors import ProblemError
from robots.arms.row import Figure
from robots.limits.models import make_motors, robot_spec
from robots.references import displace, smooth
from robots.stops import beyond_stops

PERIOD, DELAY, MASS = 0.002, 1, 0.1
KP, POSTURE_KP, POSTURE_WEIGHT = 400.0, 25.0, 5e-4
FAR, OUT, EACH, REST = 1.1, 1.0, 4.0, 1.0  # m; s there, there and back with a rest, at the end
WAYS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, -1, 0]], float)


@dataclass(frozen=True)
class Arm:
    """An arm: its model, the frame of its tool, and the torques of motors in place of servos."""

    model: str
    frame: str
    kind: str = "site"
    motors: tuple[float, ...] | None = None
    plane: bool = False


FR3_TORQUES = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
ARMS = {
    "scara": Arm("scara", "tool", plane=True),
    "gen3": Arm("men__kinova_gen3__gen3", "pinch_site"),
    "fr3": Arm("men__franka_fr3__fr3", "attachment_site"),
    "fr3v2, motors": Arm("men__franka_fr3_v2__fr3v2", "fr3v2_link8", "body", FR3_TORQUES),
    "ur5e": Arm("men__universal_robots_ur5e__ur5e", "attachment_site"),
    "ur10e": Arm("men__universal_robots_ur10e__ur10e", "attachment_site"),
    "panda": Arm("men__franka_emika_panda__panda", "hand", "body"),
    "iiwa14": Arm("men__kuka_iiwa_14__iiwa14", "attachment_site"),
    "xarm7": Arm("men__ufactory_xarm7__xarm7", "link_tcp"),
    "xarm7, no hand": Arm("men__ufactory_xarm7__xarm7_nohand", "attachment_site"),
    "sawyer": Arm("men__rethink_robotics_sawyer__sawyer", "attachment_site"),
    "rizon4": Arm("men__flexiv_rizon4__flexiv_rizon4", "link7", "body"),
    "lite6": Arm("men__ufactory_lite6__lite6", "attachment_site"),
    "so100": Arm("men__trs_so_arm100__so_arm100", "Fixed_Jaw", "body"),
    "so101": Arm("men__robotstudio_so101__so101", "gripperframe"),
    "z1": Arm("men__unitree_z1__z1", "link06", "body"),
    "vx300s": Arm("men__trossen_vx300s__vx300s", "pinch"),
    "wx250s": Arm("men__trossen_wx250s__wx250s", "wx250s/gripper_link", "body"),
    "piper": Arm("men__agilex_piper__piper", "link6", "body"),
    "arx l5": Arm("men__arx_l5__arx_l5", "link6", "body"),
    "yam": Arm("men__i2rt_yam__yam", "tcp_site"),
}


def model_of(arm: Arm) -> mujoco.MjModel:
    """Return an arm's model."""
    if arm.model in own_models.names():
        return mujoco.MjModel.from_xml_path(str(own_models.path(arm.model)))
    spec = robot_spec(arm.model)
    if arm.motors is not None:
        make_motors(spec, arm.motors)
    return spec.compile()


def law_of(arm: Arm, model: mujoco.MjModel, gains: dict[str, float]) -> InverseDynamicsQP:
    """Return the law with default limits; of driven joints alone where others are refused."""
    orientation = "z" if arm.plane else "xyz"
    law_options = {"observer": DisturbanceObserver(), "period": PERIOD, "delay": DELAY}
    tasks = [
        FrameTask(arm.frame, kind=arm.kind, orientation=orientation, name="tool", **gains),
        PostureTask(kp=POSTURE_KP, weight=POSTURE_WEIGHT),
    ]
    system = mb.read_mjcf(model)
    try:
        return InverseDynamicsQP(system, tasks, joint_limits=JointLimits(), **law_options)
    except ProblemError:
        joints = [model.actuator_trnid[i, 0] for i in range(model.nu)]
        of_joint = model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT
        driven = [j for j, own in zip(joints, of_joint, strict=True) if own]
        names = tuple(model.joint(int(j)).name for j in driven if model.jnt_limited[j])
        limits = JointLimits(joints=names)
        return InverseDynamicsQP(system, tasks, joint_limits=limits, **law_options)


def start_of(model: mujoco.MjModel) -> np.ndarray:
    """Return the first key frame, or the initial pose."""
    return np.array(model.key(0).qpos if model.nkey else model.qpos0)


def run(arm: Arm, gains: dict[str, float], ways: np.ndarray = WAYS):
    """Return the model, the law and the recording of the generated C in MuJoCo."""
    model = model_of(arm)
    law, q0 = law_of(arm, model, gains), start_of(model)
    rest = law.reference_at(q0)

    def reference(t: float) -> np.ndarray:
        ref, which = rest.copy(), min(int(t // EACH), len(ways) - 1)
        since = t - which * EACH
        there, back = smooth(since, 0.0, OUT), smooth(since, OUT, 2 * OUT)
        rates = tuple(a - b for a, b in zip(there, back, strict=True))
        displace(ref, law, "tool", FAR * ways[which], rates)
        return ref

    duration = EACH * len(ways) + REST
    report = mb.validate(
        law, model, duration, reference=reference, q0=q0, delay=DELAY, perturb={"mass": MASS}
    )
    return model, law, report.runs[0].recording


def measured(name: str, arm: Arm, words: str, gains: dict[str, float]) -> Iterator[Figure]:
    """Yield the figures of one run."""
    model, law, recording = run(arm, gains)
    words = f"{FAR:g} m away in {OUT:g} s, {words}"
    beyond = 1e3 * beyond_stops(model, law, recording.q)
    flagged = (recording.flags.astype(int) & Flag.UNVIABLE) > 0
    silent = beyond.max() if not flagged.any() else beyond[: int(np.argmax(flagged)) + 1].max()
    yield Figure(name, words, "beyond a stop", beyond.max(), 1.0, "mrad")
    if flagged.any():
        yield Figure(name, words, "beyond a stop before it is flagged", silent, 1.0, "mrad")
    error = 1e3 * np.linalg.norm(recording.monitor["error"][:, :3], axis=1)
    ends = [int(np.searchsorted(recording.t, EACH * (k + 1))) - 1 for k in range(len(WAYS))]
    yield Figure(name, words, "error back at home, outwards", error[ends[0]], 1.0, "mm")
    yield Figure(name, words, "error back at home, all ways", error[ends].max(), 1.0, "mm")
    yield Figure(name, words, "largest speed", np.abs(recording.v).max(), None, "rad/s")
    bad = int(np.count_nonzero(recording.status))
    yield Figure(name, words, "ticks without a solution", bad, 0)


def trials(name: str, arm: Arm) -> Iterator[Figure]:
    """Yield the figures of an arm."""
    proposed = propose_gains(PERIOD, delay=DELAY)
    yield from measured(name, arm, f"kp {KP:g}", {"kp": KP})
    gains = {"kp": proposed.kp, "kd": proposed.kd}
    yield from measured(name, arm, f"proposed gains, kp {proposed.kp:.0f}", gains)
