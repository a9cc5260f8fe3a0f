"""LQG: a pendulum on a four-bar is balanced from two noisy encoders.

The Kalman filter estimates the four states of the manifold; coupler, rocker and all speeds follow
from them. The law is C with the prediction as its state. Speeds from differences, of encoders at
all four joints, make the torque rough. Without its correction, the filter predicts no motion.

You will see lean and torque in MuJoCo: 10 % more mass, a push, and 0.2 mrad of noise.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import encoders, lqr, lqr_gain
from mbcasadi.estimation import kalman, lqg
from mbcasadi.plant import Plant
from mbcasadi.plots import curves_of, save_figure

MODEL = models.path("pendulum_on_four_bar")
DURATION, PERIOD = 3.0, 2e-3  # s
NOISE, FORCES = 2e-4, 0.1  # rad of an encoder; rad/s² √s of what disturbs the rates
PUSH, PUSHED = 0.1, (0.5, 0.6)  # N m on the pendulum; s
FALLEN = 1.0  # rad


def run(law: mb.control.laws.Law, start: np.ndarray, differences: bool) -> dict[str, np.ndarray]:
    """Return time, lean and torque. The law gets noisy angles, and their differences as speeds."""
    plant = Plant(MODEL, perturb={"mass": 0.1})
    plant.reset(start)
    rng, z, last, rows = np.random.default_rng(0), law.controller.z0, start, []
    with tempfile.TemporaryDirectory() as folder:
        tick = mb.export_c(law, Path(folder) / "c").load()
    for k in range(round(DURATION / PERIOD)):
        t = k * PERIOD
        plant.apply_force(PUSH * (PUSHED[0] <= t < PUSHED[1]) * np.eye(4)[2])
        seen = plant.q + NOISE * rng.standard_normal(4)
        speed = (seen - last) / PERIOD if differences else np.zeros(4)
        u, z, *_ = tick(seen, speed, [], z)
        rows.append([t, plant.q[:3].sum(), float(u)])
        if abs(rows[-1][1]) > FALLEN:
            break
        plant.step(np.array(u).ravel(), round(PERIOD / plant.timestep))
        last = seen
    return dict(zip(("t", "lean", "u"), np.array(rows).T, strict=True))


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return the runs with the filter, with differences, and with the filter switched off."""
    system = mb.read_mjcf(MODEL)
    held = mb.equilibrium(system)
    linear = mb.linearize(system, held)
    Q, R = np.repeat([10.0, 0.1], system.nv), 1.0
    measured = encoders(system, ["crank", "pendulum"])
    disturbance = np.repeat([0.0, FORCES**2], system.nv)
    estimator = kalman(linear, measured, disturbance, NOISE**2, period=PERIOD)
    off = replace(estimator, gains=replace(estimator.gains, L=0 * estimator.gains.L), gate=None)
    K, tick = lqr_gain(linear, Q, R, period=PERIOD).K, mb.control.LawOptions(PERIOD)
    runs = {
        "differences": run(lqr(linear, Q, R, options=tick), held.q, differences=True),
        "filter": run(lqg(estimator, K), held.q, differences=False),
        "filter off": run(lqg(off, K), held.q, differences=False),
    }
    for name, found in runs.items():
        end = f"falls in {found['t'][-1]:.2f} s"
        if abs(found["lean"][-1]) < FALLEN:
            end = f"torque rattles by {np.std(found['u'][found['t'] > 2]):.3f} N m"
        print(f"{name}: leans {np.abs(found['lean']).max():.3f} rad at most; {end}")
    if figure is not None:
        curves = curves_of(runs, {"lean, rad": "lean", "torque, N m": "u"})
        save_figure(figure, curves, limits={"lean, rad": (-0.2, 0.3)})
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
