"""Two UR10e that are sent to one point, and drawn encounters: no body comes into the margin."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import (
    DistanceLimits,
    DisturbanceObserver,
    FrameTask,
    InverseDynamicsQP,
    PostureTask,
)
from mbcasadi.description.status import Flag
from robots.arms.row import Figure
from robots.limits.models import make_motors, robot_spec
from robots.references import displace, smooth

PERIOD = 0.001  # s
APART, MARGIN, BRAKING = 0.7, 0.01, 3.0  # m, m, m/s²
WAIT, REST = 0.5, 1.0  # s
HOME = (0.0, -1.3, 1.9, -2.2, -1.57, 0.0)
HALF_TURN = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Pair:
    """Two arms of one kind: model, torques of their motors, radii of balls on bodies, m."""

    model: str
    torques: tuple[float, ...]
    balls: dict[str, float]


UR10E = Pair(
    "men__universal_robots_ur10e__ur10e",
    (330.0, 330.0, 150.0, 56.0, 56.0, 56.0),
    {"wrist_3_link": 0.1},
)


def two_arms(pair: Pair, turned: str) -> mujoco.MjModel:
    """Return two arms that face each other; only balls of different arms have distances.

    Args:
        pair: which.
        turned: "left" or "right", whose base is turned by half a turn.
    """
    world = mujoco.MjSpec()
    world.option.timestep, world.option.integrator = PERIOD, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for side, x in (("left", -APART), ("right", APART)):
        arm = robot_spec(pair.model)
        arm.option.integrator, arm.option.timestep = world.option.integrator, PERIOD
        make_motors(arm, pair.torques)
        for key in list(arm.keys):
            arm.delete(key)
        for geom in arm.geoms:
            geom.contype = geom.conaffinity = 0
        own, other = (1, 2) if side == "left" else (2, 1)
        for name, size in pair.balls.items():
            arm.body(name).add_geom(
                name=f"{name} ball", size=[size, 0, 0], mass=0.0, contype=own, conaffinity=other
            )
        frame = world.worldbody.add_frame(pos=[x, 0, 0])
        if side == turned:
            frame.quat = HALF_TURN
        world.attach(arm, prefix=f"{side}_", frame=frame)
    return world.compile()


def law_of(model: mujoco.MjModel, delay: int) -> InverseDynamicsQP:
    """Return the law of the encounter."""
    sites = [FrameTask(f"{s}_attachment_site", kp=400.0, name=s) for s in ("left", "right")]
    return InverseDynamicsQP(
        mb.read_mjcf(model),
        [*sites, PostureTask(kp=50.0, weight=1e-3)],
        observer=DisturbanceObserver(5.0),
        distance_limits=DistanceLimits(BRAKING, MARGIN, samples=0),
        period=PERIOD,
        delay=delay,
    )


def gaps(model: mujoco.MjModel, q: np.ndarray, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return MuJoCo's distance of each pair of geoms (n, k), m, at the configurations q (n, nq)."""
    data, found = mujoco.MjData(model), np.zeros((len(q), len(pairs)))
    ids = [(model.geom(a).id, model.geom(b).id) for a, b in pairs]
    for i, pose in enumerate(q):
        data.qpos = pose
        mujoco.mj_kinematics(model, data)
        found[i] = [mujoco.mj_geomDistance(model, data, a, b, 1.0, None) for a, b in ids]
    return found


def meet(turned: str, duration: float, mass: float, delay: int):
    """Return the least gap, m, and the recording of the generated C in MuJoCo."""
    model = two_arms(UR10E, turned)
    law, q0 = law_of(model, delay), np.tile(HOME, 2)
    data = mujoco.MjData(model)
    data.qpos = q0
    mujoco.mj_kinematics(model, data)
    places = {s: data.site(f"{s}_attachment_site").xpos.copy() for s in ("left", "right")}
    middle = (places["left"] + places["right"]) / 2
    rest = law.reference_at(q0)

    def reference(t: float) -> np.ndarray:
        ref = rest.copy()
        there = smooth(t, 0.0, duration)
        back = smooth(t, duration + WAIT, 2 * duration + WAIT)
        rates = tuple(a - b for a, b in zip(there, back, strict=True))
        for side, place in places.items():
            displace(ref, law, side, middle - place, rates)
        return ref

    report = mb.validate(
        law,
        model,
        2 * duration + WAIT + REST,
        reference=reference,
        q0=q0,
        delay=delay,
        perturb={"mass": mass} if mass else None,
    )
    recording = report.runs[0].recording
    balls = [f"{side}_{name} ball" for side in ("left", "right") for name in UR10E.balls]
    return gaps(model, recording.q, [tuple(balls)]).min(), recording


def figures() -> Iterator[Figure]:
    """Yield the figures, run by run."""
    for turned, way in (("left", "elbows inwards"), ("right", "elbows outwards")):
        for duration in (1.0, 4.0):
            for mass, delay in ((0.0, 0), (0.1, 1)):
                least, recording = meet(turned, duration, mass, delay)
                words = f"{way}, {duration:g} s, mass +{mass:.0%}, {delay} ticks late"
                inside = 1e3 * (MARGIN - least)
                yield Figure("two ur10e", words, "into the margin", inside, 1.0, "mm")
                bad = int(np.count_nonzero(recording.status))
                yield Figure("two ur10e", words, "ticks without a solution", bad, 0)
                lost = int(np.count_nonzero(recording.flags.astype(int) & Flag.UNVIABLE))
                yield Figure("two ur10e", words, "ticks flagged as unviable", lost)
