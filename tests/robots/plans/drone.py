"""Skydio X2 on a figure of eight of 8 x 4 m at a constant 5 m/s, its least radius 1 m: 25 m/s².

A real-time iteration of all its motion learns what its model lacks: 10 % of mass, a quarter of the
thrust of one rotor, wind. Beside it is inverse dynamics, which follows the same places, attitudes
and rates, and has an observer too: it knows no way to lean towards a place that it has left.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation
from support.examples import example

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import DisturbanceObserver, FrameTask, InverseDynamicsQP
from mbcasadi.control.law_interface.control_law import ControlLaw
from mbcasadi.control.regulators import lqr_gain
from mbcasadi.validation import compile_controller
from robots import models
from robots.arms.row import Figure

MODEL, BODY = "men__skydio_x2__x2", "x2"
HALF, SPEED, HEIGHT = (4.0, 2.0), 5.0, 2.0  # m, m/s, m
RAMP, LAPS = 3.0, 2  # s from hover to full speed
PERIOD, HORIZON, DELAY = 0.01, 30, 1  # s, samples, ticks
WEIGHTS = {"Q": [100, 100, 200, 1, 1, 1, 4, 4, 8, 0.1, 0.1, 0.1], "R": [0.02] * 4}
BANDWIDTH, KP = 20.0, 60.0  # 1/s, of both observers at most; 1/s²
WEAK, WIND = 0.25, 5.0  # share of the thrust of a rotor; m/s, along y
FLAT = example(38)
FINE = FLAT["FINE"]


@dataclass(frozen=True)
class Flight:
    """A flight: what its plant has and no law knows, and the largest distance to be reached, m."""

    words: str
    error: dict[str, float]
    wind: float
    goal: float


FLIGHTS = (
    Flight("mass +10 %", {}, 0.0, 0.1),
    Flight("a rotor with 75 % of its thrust", {"actuator:thrust1:gain": -WEAK}, 0.0, 0.3),
    Flight("wind 5 m/s", {}, WIND, 0.2),
)


@dataclass(frozen=True)
class Path:
    """States and controls of the eight, `FINE` of them in a period, and the number of periods."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    ticks: int


def path(system: mb.System) -> Path:
    """Return the motion around the eight, x = a sin, y = b sin of twice the angle."""
    angle = np.linspace(0, 2 * np.pi * (LAPS + 1), 10000 * (LAPS + 1))
    a, b = HALF
    rate = np.hypot(a * np.cos(angle), 2 * b * np.cos(2 * angle))
    length = CubicSpline(angle, rate).antiderivative()(angle)
    lap = length[-1] / (LAPS + 1)
    ticks = round((RAMP / 2 + LAPS * lap / SPEED) / PERIOD)
    margin = FLAT["MARGIN"]
    t = PERIOD / FINE * np.arange(-margin, FINE * (ticks + HORIZON + 3) + margin)
    s = np.clip(t / RAMP, 0, 1)
    way = SPEED * (RAMP * (2.5 * s**4 - 3 * s**5 + s**6) + np.maximum(t - RAMP, 0))
    at = CubicSpline(length, angle)(way)
    place = np.column_stack([a * np.sin(at), b * np.sin(2 * at), HEIGHT + 0 * t])
    return Path(*FLAT["flat_motion"](system, place, PERIOD / FINE), ticks)


def planner(system: mb.System, along: Path) -> tuple[mpc.RealTimeIteration, object]:
    """Return the iteration with the cost to go of LQR about hover, and its reference."""
    linear = mb.linearize(system, mb.equilibrium(system))
    to_x = np.linalg.inv(np.vstack([linear.to_dq, linear.to_dv]))
    end = to_x.T @ lqr_gain(linear, **WEIGHTS).S @ to_x
    parts = [mpc.Cost(Q_end=(end + end.T) / 2, **WEIGHTS), mpc.Disturbance()]
    step = mpc.SemiImplicitStep()
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, parts, step=step)
    k = FINE * np.arange(HORIZON + 1)
    guess = mpc.initial_guess(ocp, np.hstack([along.q[k], along.v[k]]), along.u[k[:-1]])
    rti = mpc.real_time_iteration(
        ocp,
        guess,
        delay=DELAY,
        pending=[along.u[0]] * DELAY,
        solver="stagewise",
        observer=DisturbanceObserver(bandwidth=BANDWIDTH),
    )

    def ahead(t: float) -> np.ndarray:
        k = FINE * (round(t / PERIOD) + DELAY + np.arange(HORIZON + 1))
        return rti.reference(setpoint_q=along.q[k], setpoint_v=along.v[k], setpoint_u=along.u[k])

    return rti, ahead


def follower(system: mb.System, along: Path) -> tuple[InverseDynamicsQP, object]:
    """Return inverse dynamics of the body's pose, and its reference."""
    observer, task = DisturbanceObserver(), FrameTask(BODY, kind="body", kp=KP)
    law = InverseDynamicsQP(system, [task], observer=observer, period=PERIOD, delay=DELAY)
    change, places = np.gradient(along.v, PERIOD / FINE, axis=0), law.reference_slices

    def now(t: float) -> np.ndarray:
        k, ref = FINE * (round(t / PERIOD) + DELAY), law.reference_at(along.q[0]).copy()
        turn = Rotation.from_quat(along.q[k, [4, 5, 6, 3]]).apply
        values = {"position": along.q[k, :3], "quaternion": along.q[k, 3:]}
        values |= {"velocity": along.v[k, :3], "angular_velocity": turn(along.v[k, 3:])}
        values |= {"acceleration": change[k, :3], "angular_acceleration": turn(change[k, 3:])}
        for name, value in values.items():
            ref[places[f"{BODY}.{name}"]] = value
        return ref

    return law, now


def in_wind(speed: float) -> mujoco.MjModel:
    """Return the plant."""
    spec = mujoco.MjSpec.from_file(str(models.path(MODEL)))
    spec.option.wind = [0, speed, 0]
    return spec.compile()


def flown(
    along: Path, law: ControlLaw, reference: object
) -> Iterator[tuple[Flight, object, float]]:
    """Yield each flight, its run, and the largest distance from the path, m."""
    with compile_controller(law) as compiled:
        for flight in FLIGHTS:
            run = mb.validate(
                compiled,
                in_wind(flight.wind),
                PERIOD * along.ticks,
                q0=along.q[0],
                v0=along.v[0],
                delay=DELAY,
                perturb={"mass": 0.1} | flight.error,
                reference=reference,
            ).runs[0]
            places = along.q[: FINE * along.ticks : FINE, :3][: run.recording.ticks]
            far = np.linalg.norm(run.recording.q[:, :3] - places, axis=1)
            yield flight, run, float("nan") if run.recording.events else float(far.max())


def figures() -> Iterator[Figure]:
    """Yield the figures, flight by flight; those of inverse dynamics have no goal."""
    system = mb.read_mjcf(models.path(MODEL))
    along = path(system)
    for flight, run, far in flown(along, *planner(system, along)):
        name, words = "Skydio X2, eight of 8 x 4 m at 5 m/s", flight.words
        yield Figure(name, words, "largest distance", far, flight.goal, "m")
        bad = int(np.count_nonzero(run.recording.status))
        yield Figure(name, words, "ticks without a solution", bad, 0)
        yield Figure(name, words, "tick", 1e6 * run.times.median, None, "µs")
    for flight, _, far in flown(along, *follower(system, along)):
        yield Figure(name, flight.words, "inverse dynamics: largest distance", far, None, "m")

