"""An iiwa swings its arm by 1.8 rad around a post, two balls and a bar within 1.5 s.

Its stock servos have the torques of its data sheet. A real-time iteration plans with forces at the
end of its steps, torque limits and distances as hard rows; its first guess is the optimum from a
motion through the post, raised by the sine of a half turn. Beside it is inverse dynamics with the
same limits, whose reference goes straight to the goal within 1.5 s.
"""

from collections.abc import Iterator

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
from robots.arms.circles import IIWA
from robots.arms.row import Figure
from robots.references import smooth

PERIOD, HORIZON, DELAY, MASS = 0.05, 30, 1, 0.1  # s, samples: 1.5 s
WITHIN, DURATION, ARRIVED = 1.5, 3.0, 0.01  # s, s, rad
START = np.array([-0.9, 0.8, 0, -1.3, 0, 0.9, 0])
GOAL = np.array([0.9, 0.8, 0, -1.3, 0, 0.9, 0])
RAISED = 0.8  # rad of the second joint, of the first guess
OBSTACLES = {  # ends, m, and radius, m
    "post": ([0.55, 0, 0], [0.55, 0, 0.5], 0.05),
    "left": ([0.5, 0.35, 0.75], None, 0.1),
    "right": ([0.4, -0.4, 0.75], None, 0.1),
    "bar": ([0.2, 0, 1.15], [0.8, 0, 1.15], 0.04),
}
SPHERES = (32, 33, 37, 41, 43, 44, 45)  # geoms of the arm, from the elbow on
LIMITS = DistanceLimits(
    braking=5.0,
    margin=0.05,
    pairs=tuple(f"{name} on geom{i}" for name in OBSTACLES for i in SPHERES),
    nearest=len(OBSTACLES) * len(SPHERES),
)
COST = mpc.Cost(Q=[100.0] * 7 + [2.0] * 7, R=[1e-3] * 7, Q_end=[300.0] * 7 + [30.0] * 7)
TICK, KP = 0.002, 400.0  # s, 1/s²: of inverse dynamics
FINE = 1e-3  # s, at which distances are measured


def model() -> mujoco.MjModel:
    """Return the arm among the obstacles."""
    spec = IIWA.spec(motors=False)
    for actuator, largest in zip(spec.actuators, IIWA.torques, strict=True):
        actuator.forcerange, actuator.forcelimited = [-largest, largest], True
    for name, (place, end, radius) in OBSTACLES.items():
        body = spec.worldbody.add_body(name=name)
        kind, where = mujoco.mjtGeom.mjGEOM_SPHERE, {"pos": place}
        if end is not None:
            kind, where = mujoco.mjtGeom.mjGEOM_CAPSULE, {"fromto": [*place, *end]}
        body.add_geom(name=name, type=kind, size=[radius, 0, 0], **where)
    return spec.compile()


def planner(system: mb.System) -> tuple[mpc.RealTimeIteration, np.ndarray]:
    """Return the iteration that begins with the optimum, and its reference."""
    parts, step = [COST, JointLimits(), LIMITS], mpc.SemiImplicitStep()
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, parts, step=step)
    hold_start, hold_goal = (mb.equilibrium(system, q).u for q in (START, GOAL))
    p = ocp.parameters(setpoint_q=GOAL, setpoint_u=hold_goal)
    share = np.linspace(0, 1, HORIZON + 1)
    X = np.zeros((HORIZON + 1, ocp.nx))
    X[:, :7] = START + np.outer([smooth(s, 0, 1)[0] for s in share], GOAL - START)
    X[:, 1] -= RAISED * np.sin(np.pi * share)
    guess = mpc.initial_guess(ocp, X, X[:-1, :7])
    best = mpc.ocp_solver(ocp, "ipopt").solve(np.r_[START, np.zeros(7)], p, guess)
    pending = [hold_start] * DELAY
    rti = mpc.real_time_iteration(ocp, best, delay=DELAY, pending=pending, solver="stagewise")
    return rti, p.ravel()


def follower(system: mb.System) -> tuple[InverseDynamicsQP, object]:
    """Return inverse dynamics with the same limits, and the way straight to the goal."""
    law = InverseDynamicsQP(
        system,
        [PostureTask(kp=KP)],
        joint_limits=JointLimits(),
        distance_limits=LIMITS,
        observer=DisturbanceObserver(),
        period=TICK,
        delay=DELAY,
    )
    rest = law.reference_at(START)
    names = [slot.name.split(".")[-1] for slot in law.slots]

    def reference(t: float) -> np.ndarray:
        ref = rest.copy()
        for slot, rate in zip(names, smooth(t, 0.0, WITHIN), strict=False):
            ref[law.reference_slices[f"posture.{slot}"]] += rate * (GOAL - START)
        return ref

    return law, reference


def clearance(plant: mujoco.MjModel, recording: Recording) -> float:
    """Return the least distance of the arm from an obstacle, m, between ticks as well."""
    t = np.arange(0, recording.t[-1], FINE)
    q = CubicHermiteSpline(recording.t, recording.q, recording.v)(t)
    own = [plant.geom(name).id for name in OBSTACLES]
    arm = [g for g in np.flatnonzero(plant.geom_contype) if g not in own]
    arm = [g for g in arm if plant.geom_bodyid[g] > plant.body("link1").id]
    data, least = mujoco.MjData(plant), np.inf
    for pose in q:
        data.qpos = pose
        mujoco.mj_kinematics(plant, data)
        gaps = (mujoco.mj_geomDistance(plant, data, g, o, 0.1, None) for g in arm for o in own)
        least = min(least, *gaps)
    return float(least)


def measured(law: ControlLaw, reference: object, words: str, judged: bool) -> Iterator[Figure]:
    """Yield the figures of one law."""
    plant = model()
    run = mb.validate(
        law,
        plant,
        DURATION,
        q0=START,
        reference=reference,
        delay=DELAY,
        perturb={"mass": MASS},
    ).runs[0]
    recording = run.recording
    name, error = "iiwa14 around four obstacles", np.abs(recording.q - GOAL).max(axis=1)
    late = recording.t[error > ARRIVED]
    arrival = late[-1] + law.period if error[-1] <= ARRIVED else np.inf
    forces = np.abs(recording.actuator_force).max(axis=0) / IIWA.torques
    goal = WITHIN if judged else None
    yield Figure(name, words, "within 10 mrad of the goal after", arrival, goal, "s")
    near = 1e3 * clearance(plant, recording)
    yield Figure(name, words, "minus the least distance", -near, 0.0 if judged else None, "mm")
    touched = float(np.abs(recording.other_force).max())
    none = 0.0 if judged else None
    yield Figure(name, words, "force of contacts and stops", touched, none, "N m")
    yield Figure(name, words, "largest share of a torque limit", forces.max(), 1.0)
    yield Figure(name, words, "error at the end", 1e3 * error[-1], None, "mrad")
    bad = int(np.count_nonzero(recording.status))
    yield Figure(name, words, "ticks without a solution", bad, 0 if judged else None)
    yield Figure(name, words, "tick", 1e6 * run.times.median, None, "µs")


def figures() -> Iterator[Figure]:
    """Yield the figures."""
    system = mb.read_mjcf(model())
    yield from measured(*planner(system), "mass +10 %, 1 tick late", True)
    yield from measured(*follower(system), "inverse dynamics, the same", False)
