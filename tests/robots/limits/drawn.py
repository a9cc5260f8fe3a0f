"""Drawn encounters: arms, and limbs of a humanoid, that start as fast as half of the motors stop.

A pose, a direction of motion and what the posture wants are drawn; the motion is made as fast as
can still be stopped with half of the motors' forces, all bodies 10 % heavier than the law's model
and one tick late: a linear program over MuJoCo's inertia has decelerations for all distances and
stops at once. The law, which knows neither, goes on in that direction for 0.8 s.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import mujoco
import numpy as np
import scipy

import mbcasadi as mb
from mbcasadi.control import DistanceLimits, InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.description.status import Flag
from mbcasadi.validation import compile_controller
from robots.arms.row import Figure
from robots.limits.meet import MARGIN, PERIOD, Pair, gaps, two_arms
from robots.limits.models import make_motors, robot_spec

DELAY, MASS, HALF = 1, 0.1, 0.5
DURATION, KP, AHEAD = 0.8, 100.0, 3.0  # s, 1/s², s that the posture is ahead along the motion
FASTEST, SLOWEST = 4.0, 0.3  # rad/s
BRAKING = 3.0  # m/s²
NEAR, CLOSING = 0.12, 0.3  # m, m/s: of what counts as an encounter
TRIES = 200_000
UR5E = Pair(
    "men__universal_robots_ur5e__ur5e",
    (150.0, 150.0, 150.0, 28.0, 28.0, 28.0),
    {"forearm_link": 0.08, "wrist_1_link": 0.07, "wrist_3_link": 0.08},
)


LIMBS = {
    "left_wrist_yaw_link": (0.05, 1),
    "right_wrist_yaw_link": (0.05, 2),
    "left_elbow_link": (0.05, 1),
    "right_elbow_link": (0.05, 2),
    "torso_link": (0.1, 4),
    "left_hip_yaw_link": (0.07, 4),
    "right_hip_yaw_link": (0.07, 4),
}
"""Radius of each limb's ball, m, and its kind: balls of one kind do not meet."""


def g1() -> mujoco.MjModel:
    """Return a G1 that hangs by its pelvis, with motors for servos and balls on its limbs."""
    spec = robot_spec("men__unitree_g1__g1")
    spec.option.timestep, spec.option.integrator = PERIOD, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for key in list(spec.keys):
        spec.delete(key)
    spec.delete(next(x for x in spec.joints if x.type == mujoco.mjtJoint.mjJNT_FREE))
    plain = robot_spec("men__unitree_g1__g1").compile()
    largest = [float(plain.jnt_actfrcrange[plain.actuator_trnid[i, 0], 1]) for i in range(plain.nu)]
    make_motors(spec, largest)
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0
    for name, (size, kind) in LIMBS.items():
        spec.body(name).add_geom(
            name=f"{name} ball", size=[size, 0, 0], mass=0.0, contype=kind, conaffinity=7 - kind
        )
    return spec.compile()


@dataclass(frozen=True)
class Scene:
    """What encounters are drawn from.

    Attributes:
        name, model: of the robots.
        law: that keeps distances and stops.
        pairs: names of the geoms of each distance.
        distances: (q, v) → gaps, their Jacobians and biases.
    """

    name: str
    model: mujoco.MjModel
    law: InverseDynamicsQP
    pairs: tuple[tuple[str, str], ...]
    distances: ca.Function


def scene_of(name: str, model: mujoco.MjModel) -> Scene:
    """Return a scene of a model."""
    system = mb.read_mjcf(model)
    law = InverseDynamicsQP(
        system,
        [PostureTask(kp=KP)],
        distance_limits=DistanceLimits(BRAKING, MARGIN, samples=0),
        joint_limits=JointLimits(),
        period=PERIOD,
        delay=DELAY,
    )
    kept = mb.contacts_of(system)
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    terms = (
        ca.vertcat(*(contact.gap(q)[0] for contact in kept)),
        ca.vertcat(*(contact.gap_jacobian(q) for contact in kept)),
        ca.vertcat(*(contact.gap_bias(q, v) for contact in kept)),
    )
    pairs = tuple((contact.geom1, contact.geom2) for contact in kept)
    return Scene(name, model, law, pairs, ca.Function("distances", [q, v], terms))


def needed(left: np.ndarray, closing: np.ndarray) -> np.ndarray:
    """Return decelerations that stop before a limit, one tick later than now; infinite for none."""
    left, closing = left - PERIOD * closing, np.maximum(closing, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(closing > 0, np.where(left > 0, closing**2 / (2 * left), np.inf), -np.inf)


def can_stop(scene: Scene, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether half of the motors' forces stop all approaches at once, bodies 10 % heavier."""
    model, data = scene.model, mujoco.MjData(scene.model)
    data.qpos, data.qvel = q, v
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    load = data.qfrc_bias - data.qfrc_passive
    gap, J, bias = (np.array(x) for x in scene.distances(q, v))
    rows, least = [J], [needed(gap.ravel() - MARGIN, -(J @ v)) - bias.ravel()]
    limited = np.flatnonzero(model.jnt_limited)
    low, high = model.jnt_range[limited].T
    for sign, left in ((-1.0, high - q[limited]), (1.0, q[limited] - low)):
        rows.append(sign * np.eye(model.nv)[limited])
        least.append(needed(left, -sign * v[limited]))
    A, b = np.vstack(rows), np.concatenate(least)
    if np.any(b == np.inf):
        return False
    asked = b > -np.inf
    bounds = HALF * model.actuator_ctrlrange
    drive = np.zeros((model.nv, model.nu))
    drive[model.jnt_dofadr[model.actuator_trnid[:, 0]], range(model.nu)] = 1.0
    inverse = np.linalg.inv((1 + MASS) * M)
    found = scipy.optimize.linprog(
        np.zeros(model.nu),
        A_ub=-(A[asked] @ inverse @ drive),
        b_ub=-(b[asked] + A[asked] @ inverse @ ((1 + MASS) * load)),
        bounds=bounds,
        method="highs",
    )
    return found.status == 0


def drawn_start(scene: Scene, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return q and v of an encounter, as fast as can be stopped."""
    model = scene.model
    low, high = np.where(model.jnt_limited[:, None], model.jnt_range, [-np.pi, np.pi]).T
    low, high = np.maximum(low, -np.pi) + 0.1, np.minimum(high, np.pi) - 0.1
    for _ in range(TRIES):
        q, way = rng.uniform(low, high), rng.standard_normal(model.nv)
        gap, J, _ = (np.array(x) for x in scene.distances(q, 0 * way))
        near, closing = gap.ravel() - MARGIN, -(J @ way) / np.abs(way).max()
        meets = (near > 0) & (near < NEAR) & (closing > CLOSING / FASTEST)
        if near.min() < 0 or not meets.any() or not can_stop(scene, q, 0 * way):
            continue
        slow, fast = 0.0, FASTEST
        for _ in range(8):
            middle = (slow + fast) / 2
            viable = can_stop(scene, q, middle * way / np.abs(way).max())
            slow, fast = (middle, fast) if viable else (slow, middle)
        if slow > SLOWEST and slow * closing[meets].max() > CLOSING:
            return q, slow * way / np.abs(way).max()
    raise RuntimeError(f"{scene.name}: no viable encounter in {TRIES} draws")


def figures(count: int, seed: int) -> Iterator[Figure]:
    """Yield the figures: three quarters of the encounters are of two arms.

    Args:
        count: number of encounters.
        seed: of what is drawn.
    """
    shares = {
        "two ur5e": (lambda: two_arms(UR5E, "left"), count - count // 4),
        "g1": (g1, count // 4),
    }
    for name, (make, own) in shares.items():
        scene, rng = scene_of(name, make()), np.random.default_rng(seed)
        worst, silent, bad, lost, near = -np.inf, -np.inf, 0, 0, 0
        with compile_controller(scene.law) as compiled:
            for _ in range(own):
                q0, v0 = drawn_start(scene, rng)
                ref = scene.law.reference_at(q0)
                ref[scene.law.reference_slices["posture.q"]] += AHEAD * v0
                report = mb.validate(
                    compiled,
                    scene.model,
                    DURATION,
                    reference=ref,
                    q0=q0,
                    v0=v0,
                    delay=DELAY,
                    perturb={"mass": MASS},
                )
                recording = report.runs[0].recording
                inside = 1e3 * (MARGIN - gaps(scene.model, recording.q, scene.pairs).min())
                flagged = bool(np.any(recording.flags.astype(int) & Flag.UNVIABLE))
                worst, lost, near = max(worst, inside), lost + flagged, near + (inside > -5.0)
                silent = silent if flagged else max(silent, inside)
                bad += int(np.count_nonzero(recording.status))
        words = f"{own} encounters, seed {seed}, mass +{MASS:.0%}, {DELAY} tick late"
        yield Figure(name, words, "into the margin, not flagged", silent, 1.0, "mm")
        yield Figure(name, words, "into the margin", worst, None, "mm")
        yield Figure(name, words, "encounters within 5 mm of the margin", near)
        yield Figure(name, words, "encounters flagged as unviable", lost)
        yield Figure(name, words, "ticks without a solution", bad, 0)
