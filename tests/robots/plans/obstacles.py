"""An iiwa and a Panda swing by 1.8 rad around a post, two balls and a bar within 1.5 s.

Their stock servos have the torques of their data sheets. The file of the Panda has meshes where
its links are; capsules of about their size are added. A real-time iteration plans with forces at
the end of its steps, torque limits and distances as hard rows; its first guess is the optimum
from a motion through the post, raised by the sine of a half turn. Beside it is inverse dynamics
with the same limits, whose reference goes straight to the goal within 1.5 s.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np
from scipy.interpolate import CubicHermiteSpline

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import (
    DistanceLimits,
    DisturbanceObserver,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
)
from mbcasadi.control.law_interface.control_law import ControlLaw
from mbcasadi.validation import Recording
from robots.arms.circles import IIWA, Arm
from robots.arms.reach import PANDA
from robots.arms.row import Figure
from robots.references import smooth

PERIOD, HORIZON, DELAY, MASS = 0.05, 30, 1, 0.1  # s, samples: 1.5 s
WITHIN, DURATION, ARRIVED = 1.5, 3.0, 0.01  # s, s, rad
OBSTACLES = {  # ends, m, and radius, m
    "post": ([0.55, 0, 0], [0.55, 0, 0.5], 0.05),
    "left": ([0.5, 0.35, 0.75], None, 0.1),
    "right": ([0.4, -0.4, 0.75], None, 0.1),
    "bar": ([0.2, 0, 1.15], [0.8, 0, 1.15], 0.04),
}
BRAKING, MARGIN = 5.0, 0.05  # m/s², m
TICK, KP = 0.002, 400.0  # s, 1/s²: of inverse dynamics
FINE = 1e-3  # s, at which distances are measured


@dataclass(frozen=True)
class Scene:
    """An arm among the obstacles.

    Attributes:
        name: of the arm.
        arm: the arm.
        start: joints, the first seven; at the goal the first one has the other sign.
        raised: rad of the second joint, of the first guess.
        geoms: of the arm that keep a distance.
        capsules: ends, m, and radius, m, of geoms that are added to bodies.
        torques: largest ones of the joints, N m.
        speed: largest one of the joints, rad/s; None where the file's limits of joints are all.
    """

    name: str
    arm: Arm
    start: tuple[float, ...]
    raised: float
    geoms: tuple[str, ...]
    capsules: dict[str, tuple[list[float], list[float], float]]
    torques: tuple[float, ...]
    speed: float | None = None

    @cached_property
    def plant(self) -> mujoco.MjModel:
        """The arm among the obstacles."""
        spec = self.arm.spec(motors=False)
        for actuator, largest in zip(spec.actuators, self.torques, strict=False):
            actuator.forcerange, actuator.forcelimited = [-largest, largest], True
        for body, (begin, end, radius) in self.capsules.items():
            spec.body(body).add_geom(
                name=f"{body}_capsule",
                type=mujoco.mjtGeom.mjGEOM_CAPSULE,
                fromto=[*begin, *end],
                size=[radius, 0, 0],
                mass=0.0,
                contype=0,  # they touch obstacles, not each other
            )
        for name, (place, end, radius) in OBSTACLES.items():
            body = spec.worldbody.add_body(name=name)
            kind, where = mujoco.mjtGeom.mjGEOM_SPHERE, {"pos": place}
            if end is not None:
                kind, where = mujoco.mjtGeom.mjGEOM_CAPSULE, {"fromto": [*place, *end]}
            body.add_geom(name=name, type=kind, size=[radius, 0, 0], **where)
        return spec.compile()

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(nq,) poses at the start and at the goal."""
        start = np.zeros(self.plant.nq)
        if self.plant.nkey:
            start[:] = self.plant.key(self.arm.keyframe).qpos
        start[: len(self.start)] = self.start
        goal = start.copy()
        goal[0] = -start[0]
        return start, goal

    def limits(self, system: mb.System) -> DistanceLimits:
        """Return the distances that are kept."""
        own, others = set(self.geoms), set(OBSTACLES)
        pairs = tuple(
            contact.name
            for contact in mb.contacts_of(system)
            if {contact.geom1, contact.geom2} & own and {contact.geom1, contact.geom2} & others
        )
        return DistanceLimits(braking=BRAKING, margin=MARGIN, pairs=pairs, nearest=len(pairs))


SCENES = (
    Scene(
        "iiwa14",
        IIWA,
        (-0.9, 0.8, 0, -1.3, 0, 0.9, 0),
        0.8,
        tuple(f"geom{i}" for i in (32, 33, 37, 41, 43, 44, 45)),  # from the elbow on
        {},
        IIWA.torques,
    ),
    Scene(
        "panda",
        PANDA,
        (-0.9, 0.5, 0, -1.8, 0, 2.3, 0.8),
        0.8,
        (
            "link5_capsule",
            "link6_capsule",
            "link7_capsule",
            "hand_capsule",
            "left_finger_capsule",
            "right_finger_capsule",
        ),
        {
            "link5": ([0, 0, -0.26], [0, 0, 0], 0.06),
            "link6": ([0, 0, 0], [0.088, 0, 0], 0.06),
            "link7": ([0, 0, 0], [0, 0, 0.1], 0.05),
            "hand": ([0, -0.08, 0.05], [0, 0.08, 0.05], 0.04),
            "left_finger": ([0, 0, 0], [0, 0, 0.045], 0.02),
            "right_finger": ([0, 0, 0], [0, 0, 0.045], 0.02),
        },
        (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0),
        2.175,  # of its data sheet, joints 1 to 4
    ),
)


def cost(system: mb.System) -> mpc.Cost:
    """Return the cost of a pose, of speeds, and of controls about what holds the goal."""
    state = np.concatenate([np.full(system.nv, 100.0), np.full(system.nv, 2.0)])
    end = np.concatenate([np.full(system.nv, 300.0), np.full(system.nv, 30.0)])
    return mpc.Cost(Q=state, R=np.full(system.nu, 1e-3), Q_end=end)


def planner(scene: Scene, system: mb.System) -> tuple[mpc.RealTimeIteration, np.ndarray]:
    """Return the iteration that begins with the optimum, and its reference."""
    parts, step = (
        [cost(system), JointLimits(velocity=scene.speed), scene.limits(system)],
        mpc.SemiImplicitStep(),
    )
    start, goal = scene.ends
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, parts, step=step)
    hold_start, hold_goal = (mb.equilibrium(system, q).u for q in (start, goal))
    p = ocp.parameters(setpoint_q=goal, setpoint_u=hold_goal)
    share = np.linspace(0, 1, HORIZON + 1)
    X = np.zeros((HORIZON + 1, ocp.nx))
    nq, moved = system.nq, np.outer([smooth(s, 0, 1)[0] for s in share], goal - start)
    X[:, :nq] = start + moved
    X[:, 1] -= scene.raised * np.sin(np.pi * share)
    U = np.tile(hold_start, (HORIZON, 1))
    U[:, :7] = X[:-1, :7]
    guess = mpc.initial_guess(ocp, X, U)
    best = mpc.ocp_solver(ocp, "ipopt").solve(np.r_[start, np.zeros(system.nv)], p, guess)
    pending = [hold_start] * DELAY
    rti = mpc.real_time_iteration(ocp, best, delay=DELAY, pending=pending, solver="stagewise")
    return rti, p.ravel()


def follower(scene: Scene, system: mb.System) -> tuple[InverseDynamicsQP, object]:
    """Return inverse dynamics with the same limits, and the way straight to the goal."""
    law = InverseDynamicsQP(
        system,
        [PostureTask(kp=KP)],
        joint_limits=JointLimits(velocity=scene.speed),
        distance_limits=scene.limits(system),
        observer=DisturbanceObserver(),
        period=TICK,
        delay=DELAY,
    )
    start, goal = scene.ends
    rest = law.reference_at(start)
    names = [slot.name.split(".")[-1] for slot in law.slots]

    def reference(t: float) -> np.ndarray:
        ref = rest.copy()
        for slot, rate in zip(names, smooth(t, 0.0, WITHIN), strict=False):
            ref[law.reference_slices[f"posture.{slot}"]] += rate * (goal - start)
        return ref

    return law, reference


def clearance(plant: mujoco.MjModel, recording: Recording) -> float:
    """Return the least distance of the arm from an obstacle, m, between ticks as well."""
    t = np.arange(0, recording.t[-1], FINE)
    q = CubicHermiteSpline(recording.t, recording.q, recording.v)(t)
    own = [plant.geom(name).id for name in OBSTACLES]
    arm = [g for g in np.flatnonzero(plant.geom_contype | plant.geom_conaffinity) if g not in own]
    arm = [g for g in arm if plant.geom_bodyid[g] > plant.body("link1").id]
    data, least = mujoco.MjData(plant), np.inf
    for pose in q:
        data.qpos = pose
        mujoco.mj_kinematics(plant, data)
        gaps = (mujoco.mj_geomDistance(plant, data, g, o, 0.1, None) for g in arm for o in own)
        least = min(least, *gaps)
    return float(least)


def measured(
    scene: Scene, law: ControlLaw, reference: object, words: str, judged: bool
) -> Iterator[Figure]:
    """Yield the figures of one law."""
    plant, (start, goal_pose) = scene.plant, scene.ends
    run = mb.validate(
        law,
        plant,
        DURATION,
        q0=start,
        reference=reference,
        delay=DELAY,
        perturb={"mass": MASS},
    ).runs[0]
    recording = run.recording
    name = f"{scene.name} around four obstacles"
    error = np.abs(recording.q - goal_pose).max(axis=1)
    late = recording.t[error > ARRIVED]
    arrival = late[-1] + law.period if error[-1] <= ARRIVED else np.inf
    forces = np.abs(recording.actuator_force[:, :7]).max(axis=0) / scene.torques
    goal = WITHIN if judged else None
    yield Figure(name, words, "within 10 mrad of the goal after", arrival, goal, "s")
    near = 1e3 * clearance(plant, recording)
    yield Figure(name, words, "minus the least distance", -near, 0.0 if judged else None, "mm")
    touched = float(np.abs(recording.other_force[:, :7]).max())
    none = 0.0 if judged else None
    yield Figure(name, words, "force of contacts and stops", touched, none, "N m")
    yield Figure(name, words, "largest share of a torque limit", forces.max(), 1.0)
    yield Figure(name, words, "error at the end", 1e3 * error[-1], None, "mrad")
    bad = int(np.count_nonzero(recording.status))
    yield Figure(name, words, "ticks without a solution", bad, 0 if judged else None)
    yield Figure(name, words, "tick", 1e6 * run.times.median, None, "µs")


def figures() -> Iterator[Figure]:
    """Yield the figures."""
    for scene in SCENES:
        system = mb.read_mjcf(scene.plant)
        yield from measured(scene, *planner(scene, system), "mass +10 %, 1 tick late", True)
        law, reference = follower(scene, system)
        yield from measured(scene, law, reference, "inverse dynamics, the same", False)
