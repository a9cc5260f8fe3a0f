"""A Panda comes down on a table, presses with 30 N and slides there and back.

MuJoCo lifts what slides: with a normal force f_n a tip rests on the surface while

    mu |a_t + b v_t| < f_n R,

with the damping b of the contact's friction and the regularisation R of its normal force; beyond,
the surface throws it off. `held_speed` is that speed for the contact of a plant. With the stock
contact it is 0.03 m/s; a friction that is less damped holds the tip at 0.2 m/s.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import casadi as ca
import mujoco
import numpy as np
import scipy

import mbcasadi as mb
from mbcasadi.control import (
    DisturbanceObserver,
    ForceFeedback,
    FrameTask,
    InverseDynamicsQP,
    JointLimits,
    LoadRamp,
    PostureTask,
    touch_down,
)
from mbcasadi.validation import Recording, ScenarioOptions, compile_controller, reaction
from robots.arms.circles import IIWA, Arm
from robots.arms.reach import PANDA
from robots.arms.row import Figure
from robots.references import smooth

PERIOD, KP, POSTURE_KP = 0.002, 400.0, 25.0  # s, 1/s², 1/s²
MU, PRESS = 0.2, 30.0  # N
TABLE, ABOVE, BEFORE = 0.3, 0.03, 0.5  # m: height, the tip's way down, distance from the base
BALL, TOOL = 0.01, 0.15  # m, radius and length
LOWERED, SLIDES, DURATION = 1.5, 2.5, 9.0  # s
BELOW = 0.005  # m below the table, where the way down would end
LENGTH, RATE = 0.2, 2.0  # m, rad/s: there and back; 0.2 m/s in the middle
TOUCHED = 1e-6  # m, depth
NEARNESS = 1e-4  # m/rad, by which a pose stays near another
RAMP = LoadRamp(duration=0.3, force=PRESS + 20.0)
TOUCHES, LOST = 2.0, 0.5  # N


@dataclass(frozen=True)
class Table:
    """The contact of the plant: `solref` and `solreffriction` of MuJoCo's pair, or stock ones."""

    words: str
    normal: tuple[float, float] | None = None
    friction: tuple[float, float] | None = None
    speed: float = 0.2


@dataclass(frozen=True)
class Tool:
    """An arm whose tool ends in a ball.

    Attributes:
        arm: the arm.
        body: that carries the tool, along its z axis.
        begins, ends: m along it, of the tool and of its ball.
        start: joints before the search for the pose above the table; the keyframe's where None.
    """

    arm: Arm
    body: str
    begins: float
    ends: float
    start: tuple[float, ...] | None = None


PANDA_TOOL = Tool(PANDA, "hand", 0.1, TOOL)
IIWA_TOOL = Tool(IIWA, "link7", 0.05, TOOL, (0.0, 0.8, 0.0, -1.5, 0.0, 0.84, 0.0))


@dataclass(frozen=True)
class Trial:
    """One run: the table, the error of all masses, and whether it has a goal."""

    table: Table
    mass: float = 0.1
    delay: int = 1
    judged: bool = True


STOCK = Table("stock contact")
SLOW = Table("stock contact", speed=0.02)
DAMPED_LESS = Table('solreffriction="-1 -10"', friction=(-1.0, -10.0))
STIFF = replace(DAMPED_LESS, words='solref="0.004 1", solreffriction="-1 -10"', normal=(0.004, 1.0))
TRIALS = {
    0: [Trial(DAMPED_LESS, mass=0.0, delay=0)],
    1: [Trial(DAMPED_LESS), Trial(STIFF), Trial(SLOW), Trial(STOCK, judged=False)],
}


def model(motors: bool, table: Table, tool: Tool = PANDA_TOOL) -> mujoco.MjModel:
    """Return the arm with a ball on its tool, over a table."""
    spec = tool.arm.spec(motors)
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    stick = spec.body(tool.body).add_body(name="tool")
    off = {"contype": 0, "conaffinity": 0}  # only the pair below touches
    stick.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        fromto=[0, 0, tool.begins, 0, 0, tool.ends - BALL],
        size=[0.8 * BALL, 0, 0],
        mass=0.05,
        **off,
    )
    stick.add_geom(name="ball", size=[BALL, 0, 0], pos=[0, 0, tool.ends], mass=0.02, **off)
    stick.add_site(name="tip", pos=[0, 0, tool.ends])
    spec.worldbody.add_geom(
        name="table",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0.5, 0.5, 0.1],
        pos=[BEFORE, 0, TABLE],
        **off,
    )
    pair = spec.add_pair(geomname1="table", geomname2="ball", condim=3)
    pair.friction = [MU, MU, 0.005, 1e-4, 1e-4]
    if table.normal is not None:
        pair.solref = table.normal
    if table.friction is not None:
        pair.solreffriction = table.friction
    return spec.compile()


def pose(
    plant: mujoco.MjModel,
    above: float = ABOVE,
    along: float = -LENGTH / 2,
    tool: Tool = PANDA_TOOL,
    near: np.ndarray | None = None,
) -> np.ndarray:
    """Return the pose with the ball above the table, the hand as at the start, near another."""
    data, site = mujoco.MjData(plant), plant.site("tip").id
    q0 = np.array(plant.key(tool.arm.keyframe).qpos)
    if tool.start is not None:
        q0[:7] = tool.start
    data.qpos = q0
    mujoco.mj_kinematics(plant, data)
    R, place = data.site_xmat[site].copy(), np.array([BEFORE, along, TABLE + BALL + above])

    begin = q0[:7].copy() if near is None else near[:7]

    def error(joints: np.ndarray) -> np.ndarray:
        data.qpos[:7] = joints
        mujoco.mj_kinematics(plant, data)
        away = NEARNESS * (joints - begin)
        return np.r_[data.site_xpos[site] - place, data.site_xmat[site] - R, away]

    q0[:7] = scipy.optimize.least_squares(error, begin, xtol=1e-12).x
    return q0


def law_of(plant: mujoco.MjModel, delay: int) -> InverseDynamicsQP:
    """Return the law: the ball slides on the table, its force is measured."""
    system = mb.read_mjcf(plant)
    ball = mb.contacts_of(system, geoms=["ball"], ground="table")[0].as_contact(friction=MU)
    return InverseDynamicsQP(
        system,
        [FrameTask("tip", kp=KP), PostureTask(kp=POSTURE_KP, weight=1e-4)],
        [replace(ball, slides=True, slide_task="tip")],
        force_weight=(1.0, 0.0, 0.0),
        force_reference=True,
        force_feedback=ForceFeedback(limit=15.0, gain=20.0),
        load_ramp=RAMP,
        joint_limits=JointLimits(),
        observer=DisturbanceObserver(),
        period=PERIOD,
        delay=delay,
    )


def motion(law: InverseDynamicsQP, q0: np.ndarray, speed: float):
    """Return the reference: the tip goes down until the table stops it, waits, and slides."""
    rest = law.reference_at(q0)
    rest[law.reference_slices["force"]] = [PRESS, 0.0, 0.0]
    slots = [law.reference_slices[f"tip.{name}"].start for name in ("position", "velocity")]
    slots.append(law.reference_slices["tip.acceleration"].start)
    amplitude = speed / RATE

    def reference(t: float) -> np.ndarray:
        ref = rest.copy()
        down = smooth(t, 0.0, LOWERED)
        angle = RATE * max(t - SLIDES, 0.0)
        c, s = np.cos(angle), np.sin(angle)
        along = amplitude * np.array([1 - c, RATE * s, RATE**2 * c * (t > SLIDES)])
        for slot, share, way in zip(slots, down, along, strict=True):
            ref[slot + 1] += way
            ref[slot + 2] -= (ABOVE + BELOW) * share
        return ref

    return reference


def measured_mask(law: InverseDynamicsQP) -> ca.Function:
    """Return the mask by what the tip feels, as a reaction."""
    names = law.contact_names
    touch = touch_down(names, on_force=TOUCHES, off_force=LOST)
    force, mask = ca.SX.sym("f_measured", 3), ca.SX.sym("mask", len(law.mask_names))
    z = ca.SX.sym("z", 2)
    on, z_next = touch(mask[0], force[0], z)
    return ca.Function(
        "touches",
        [force, mask, z],
        [ca.vertcat(on, mask[1:]), z_next],
        ["f_measured", "scheduled_mask", "z"],
        ["mask", "z_next"],
    )


def held_speed(plant: mujoco.MjModel, tool: Tool = PANDA_TOOL, press: float = PRESS) -> float:
    """Return the steady speed at which MuJoCo's contact still holds the tip, m/s."""
    data = mujoco.MjData(plant)
    data.qpos = pose(plant, above=-TOUCHED, tool=tool)
    mujoco.mj_forward(plant, data)
    kinds = np.array(data.efc_type)
    row = int(np.flatnonzero(kinds == mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC)[0])
    damping = data.efc_KBIP.reshape(-1, 4)[row + 1, 1]
    return float(press * data.efc_R[row] / (MU * damping))


def run(law: InverseDynamicsQP, compiled, plant: mujoco.MjModel, trial: Trial) -> Recording:
    """Return the recording of the generated C in MuJoCo."""
    q0 = pose(plant)
    with reaction(measured_mask(law), z0=[0.0, 0.0]) as touches:
        report = mb.validate(
            compiled,
            plant,
            DURATION,
            reference=motion(law, q0, trial.table.speed),
            q0=q0,
            delay=law.delay_ticks,
            perturb={"mass": trial.mass} if trial.mass else None,
            scenario=ScenarioOptions(reaction=touches),
        )
    return report.runs[0].recording


def measured(name: str, trial: Trial, plant: mujoco.MjModel, recording: Recording):
    """Yield the figures of one run."""
    table, goal = trial.table, 1.0 if trial.judged else None
    words = f"{PRESS:g} N, {table.speed:g} m/s, {table.words}, mass +{trial.mass:.0%}, "
    words += f"{trial.delay} ticks late"
    if recording.events or not recording.mask[:, 0].any():
        yield Figure(name, words, "seconds until the run ended", recording.t[-1], 0, "s")
        return
    touched = recording.t[np.flatnonzero(recording.mask[:, 0])[0]]
    force, slides = recording.contact_normal[:, 0], recording.t >= SLIDES
    error = force[slides] - PRESS
    kept = force[recording.t >= touched + RAMP.duration] > 0
    yield Figure(name, words, "RMS error of the force", np.sqrt(np.mean(error**2)), goal, "N")
    yield Figure(name, words, "largest error of the force", np.abs(error).max(), None, "N")
    lost = 100 * float(np.mean(~kept))
    yield Figure(name, words, "contact lost", lost, 0.0 if trial.judged else None, "%")
    away = 1e3 * np.linalg.norm(recording.monitor["error"][slides, :2], axis=1)
    yield Figure(name, words, "largest error along the table", away.max(), None, "mm")
    bad = int(np.count_nonzero(recording.status))
    yield Figure(name, words, "ticks without a solution", bad, 0)
    yield Figure(name, words, "speed that the contact holds", held_speed(plant), None, "m/s")


def figures() -> Iterator[Figure]:
    """Yield the figures, run by run."""
    for motors in (False, True):
        name = f"panda, {'motors' if motors else 'servos'}, press"
        for delay, trials in TRIALS.items():
            law = law_of(model(motors, STOCK), delay)
            with compile_controller(law) as compiled:
                for trial in trials:
                    plant = model(motors, trial.table)
                    yield from measured(name, trial, plant, run(law, compiled, plant, trial))
