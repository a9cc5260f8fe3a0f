"""A quadrotor learns in flight that a rotor is weak: MPC with an observer.

It flies around a circle. Every 20 ms a real-time iteration plans the next 0.6 s of all its motion;
its reference is the place alone, level: leaning is its own idea. The plant is 10 % heavier than the
model and its control acts one tick late. With `Disturbance()` and an observer the iteration learns
the force that its model lacks, from what its first step did not predict, and plans with it.

You will see the distance from the circle, without and with an observer.
"""

import sys

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import DisturbanceObserver
from mbcasadi.plots import curves_of, save_figure

MODEL, WEAK = models.path("quadrotor"), {"mass": 0.1, "actuator:rotor_1:gain": -0.25}
RADIUS, SPEED, RAMP, WIND = 2.0, 2.0, 2.0, 3.0  # m, m/s, s until full speed, m/s
PERIOD, HORIZON, DURATION = 0.02, 30, 10.0  # s, samples, s
BANDWIDTH = 20.0  # 1/s
PLACE, ATTITUDE = [200.0, 200.0, 400.0], [0.5, 0.5, 8.0]
ALONG = [*PLACE, *ATTITUDE, 4.0, 4.0, 8.0, 0.1, 0.1, 0.1]  # and velocity, and turning
SETTLED = 4.0  # s


def circle(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose (n, 7) and its twist (n, 6) on the circle, from rest."""
    s = np.clip(t / RAMP, 0, 1)
    angle = SPEED / RADIUS * (RAMP * (s**3 - s**4 / 2) + np.maximum(t - RAMP, 0))
    speed = SPEED * s**2 * (3 - 2 * s)
    q, v, one = np.zeros((len(t), 7)), np.zeros((len(t), 6)), np.ones(len(t))
    q[:, :4] = np.column_stack([RADIUS * np.cos(angle), RADIUS * np.sin(angle), 2 * one, one])
    v[:, :2] = speed[:, None] * np.column_stack([-np.sin(angle), np.cos(angle)])
    return q, v


def fly(observer: DisturbanceObserver | None) -> dict[str, object]:
    """Return t, the distance from the circle, mm, and the run."""
    system = mb.read_mjcf(MODEL)
    hover, (q0, v0) = mb.equilibrium(system).u, (part[0] for part in circle(np.zeros(1)))
    cost = mpc.Cost(Q=ALONG, R=[0.02] * 4, Q_end=ALONG)
    parts, step = [cost, mpc.Disturbance()], mpc.SemiImplicitStep()
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, parts, step=step)
    rest = np.tile([*q0, *v0], (HORIZON + 1, 1)), np.tile(hover, (HORIZON, 1))
    options = {"delay": 1, "pending": [hover], "solver": "stagewise", "observer": observer}
    rti = mpc.real_time_iteration(ocp, mpc.initial_guess(ocp, *rest), **options)

    def ahead(t: float) -> np.ndarray:
        q, v = circle(t + PERIOD * np.arange(1, HORIZON + 2))  # from when the control acts
        return rti.reference(setpoint_q=q, setpoint_v=v, setpoint_u=hover)

    plant = mujoco.MjSpec.from_file(str(MODEL))
    plant.option.wind = [WIND, 0, 0]
    scene = {"q0": q0, "delay": 1, "perturb": WEAK, "reference": ahead}
    run = mb.validate(rti, plant, DURATION, **scene).runs[0]
    far = 1e3 * np.linalg.norm(run.recording.q[:, :3] - circle(run.recording.t)[0][:, :3], axis=1)
    return {"t": run.recording.t, "far": far, "run": run}


def main(figure: str | None = None) -> dict[str, dict[str, object]]:
    """Return of each flight: t, the distance from the circle, mm, and the run."""
    observer = DisturbanceObserver(bandwidth=BANDWIDTH)
    found = {"without": fly(None), "with an observer": fly(observer)}
    for name, flight in found.items():
        most, late = flight["far"].max(), flight["far"][flight["t"] > SETTLED].max()
        print(f"{name}: {most:.0f} mm off at most, {late:.0f} from {SETTLED} s on;")
        print(f"  {flight['run'].in_words}")
    if figure is not None:
        save_figure(figure, curves_of(found, {"distance from the circle, mm": "far"}))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
