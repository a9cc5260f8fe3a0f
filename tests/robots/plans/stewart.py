"""The Stewart platform of six legs turns by 100° through a pose in which six legs cannot hold it.

The model, and inverse dynamics beside it, are those of `robots.arms.stewart`. The real-time
iteration has all 24 coordinates and the 18 rows of the loops as they are; its setpoint over the
horizon is the pose of all joints on the way, its forces those of the limited legs.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.interpolate import CubicSpline

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import DisturbanceObserver
from mbcasadi.validation import Recording
from robots.arms import stewart
from robots.arms.row import Figure
from robots.references import smooth

LEGS, PERIOD, HORIZON, DELAY = 6, 0.01, 15, 1  # s, samples, ticks
TURNED, DURATION = 5.0, 6.0  # s
BANDWIDTH, SETTLED = 80.0, 0.5  # 1/s, s
POSES = 81  # on the way, between which joints are interpolated
PLATFORM, RATES = [1e6] * 3 + [1e5] * 3, [1e3] * 3 + [1e2] * 3
FORCE = 1e-4  # weight of the square of a leg's force, per N² and second


@cache
def way(count: int) -> CubicSpline:
    """Return the configuration by the platform's turn."""
    text = stewart.model_text(count)
    yaws = np.linspace(0, stewart.TURN, POSES)
    poses = [stewart.turned_configuration(text, yaw - stewart.TURN / 2) for yaw in yaws]
    return CubicSpline(yaws, np.array(poses))


def motion(count: int, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return q and v on the way."""
    share, rate, _ = np.array([smooth(time, 0.0, TURNED) for time in t]).T
    q, slope = way(count)(stewart.TURN * share), way(count)(stewart.TURN * share, 1)
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    v = np.hstack([0 * q[:, :3], 0 * q[:, :3], slope[:, 7:]])
    v[:, 5] = 1.0
    return q, v * (stewart.TURN * rate)[:, None]


def planner(count: int) -> mpc.RealTimeIteration:
    """Return the iteration; it begins at rest."""
    system = mb.read_mjcf(stewart.model_text(count))
    joints = system.nv - 6
    cost = mpc.Cost(
        Q=[*PLATFORM, *[1.0] * joints, *RATES, *[0.01] * joints],
        R=[FORCE] * system.nu,
        Q_end=[*PLATFORM, *[1.0] * joints, *RATES, *[0.01] * joints],
    )
    ocp = mpc.optimal_control_problem(
        system, HORIZON, PERIOD, [cost, mpc.Disturbance()], step=mpc.SemiImplicitStep()
    )
    q, _ = motion(count, np.zeros(1))
    u = np.asarray(mb.equilibrium(system, q[0]).u)
    rest = np.tile(np.r_[q[0], np.zeros(system.nv)], (HORIZON + 1, 1))
    return mpc.real_time_iteration(
        ocp,
        mpc.initial_guess(ocp, rest, np.tile(u, (HORIZON, 1))),
        delay=DELAY,
        pending=[u] * DELAY,
        solver="stagewise",
        observer=DisturbanceObserver(bandwidth=BANDWIDTH),
    )


def run(count: int, duration: float = DURATION) -> tuple[Recording, object]:
    """Return the recording of the generated C in MuJoCo, and the times of its ticks."""
    rti = planner(count)
    hold = np.asarray(mb.equilibrium(rti.ocp.system, motion(count, np.zeros(1))[0][0]).u)

    def ahead(t: float) -> np.ndarray:
        q, v = motion(count, t + PERIOD * (DELAY + np.arange(HORIZON + 1)))
        return rti.reference(setpoint_q=q, setpoint_v=v, setpoint_u=hold)

    done = mb.validate(
        rti,
        stewart.model_text(count),
        duration,
        reference=ahead,
        q0=motion(count, np.zeros(1))[0][0],
        delay=DELAY,
        perturb={"mass": stewart.MASS},
    ).runs[0]
    return done.recording, done.times


def errors(count: int, recording: Recording) -> np.ndarray:
    """Return the distance of the platform from its place on the way, mm."""
    return 1e3 * np.linalg.norm(recording.q[:, :3] - motion(count, recording.t)[0][:, :3], axis=1)


def figures() -> Iterator[Figure]:
    """Yield the figures."""
    name, words = f"Stewart platform, {LEGS} legs", "turn of 100°, mass +10 %, 1 tick late"
    recording, times = run(LEGS)
    far = errors(LEGS, recording) if not recording.events else np.array([np.inf])
    turning = far[recording.t > SETTLED] if far.size > 1 else far
    yield Figure(name, words, "largest error from 0.5 s on", turning.max(), 1.0, "mm")
    yield Figure(name, words, "largest error", far.max(), None, "mm")
    yield Figure(name, words, "RMS error", np.sqrt(np.mean(far**2)), None, "mm")
    largest = np.abs(recording.u).max()
    yield Figure(name, words, "largest force of a leg", largest, stewart.FORCE, "N")
    bad = int(np.count_nonzero(recording.status))
    yield Figure(name, words, "ticks without a solution", bad, 0)
    yield Figure(name, words, "tick", 1e6 * times.median, None, "µs")
    alone = stewart.run(LEGS)
    place = 1e3 * np.linalg.norm(alone.monitor["error"][:, :3], axis=1)
    yield Figure(name, words, "inverse dynamics: largest error", place.max(), None, "mm")
    largest = np.abs(alone.u).max()
    yield Figure(name, words, "inverse dynamics: largest force", largest, None, "N")
