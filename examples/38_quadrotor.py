"""A quadrotor flies a figure of eight at 5 m/s in air, heavier than modelled.

Thrust balances acceleration, weight and drag: the path gives the attitude, and inverse dynamics the
rotors. The end costs what LQR about hover does. You will see the distance from the path.
"""

import sys

import numpy as np
import scipy

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.plots import curves_of, save_figure

MODEL, SPEED, HEIGHT = models.path("quadrotor"), 5.0, 2.0  # m/s, m
LAP, FINE, MARGIN = 5.244, 5, 20  # length / half width; points in a period, and before the start
WEIGHTS = {"Q": [100, 100, 200, 1, 1, 1, 4, 4, 8, 0.1, 0.1, 0.1], "R": [0.02] * 4}


def eight(t: np.ndarray, size: float, ramp: float) -> np.ndarray:
    """Return the place (n, 3) on a lemniscate, at SPEED after the ramp; least radius size / 3."""
    s = np.clip(t / ramp, 0, 1)
    length = SPEED * (ramp * (2.5 * s**4 - 3 * s**5 + s**6) + np.maximum(t - ramp, 0))
    sn, cn, dn, _ = scipy.special.ellipj(np.sqrt(2) * length / size, 0.5)
    sl, cl = sn / dn / np.sqrt(2), cn / dn  # Gauss' lemniscate functions of the length
    return np.column_stack([size * cl / (1 + sl**2), size * sl * cl / (1 + sl**2), HEIGHT + 0 * t])


def flat_motion(system: mb.System, place: np.ndarray, h: float) -> list[np.ndarray]:
    """Return q, v, u that fly through places h apart: the body's z axis is along its thrust."""
    n, speed = len(place), np.gradient(place, h, axis=0)
    q, v = np.hstack([place, np.eye(4)[[0] * n]]), np.hstack([speed, 0 * speed])
    force, a = mb.inverse_dynamics(system).map(n), np.gradient(v, h, axis=0)
    for _ in range(6):  # the drag depends on the attitude, and little
        f = force(q.T, v.T, a.T).full()[:3]
        x, y, z = f / np.linalg.norm(f, axis=0)
        q[:, 3:] = np.column_stack([1 + z, -y, x, 0 * z]) / np.sqrt(2 + 2 * z)[:, None]
    steps = system.difference.map(n - 1)(q[:-1].T, q[1:].T).full()[3:].T / h
    v[1:-1, 3:] = (steps[:-1] + steps[1:]) / 2
    inverse = mb.dynamics.constrained_inverse_dynamics(system).map(n)
    u = inverse(q.T, v.T, np.gradient(v, h, axis=0).T)[0].full().T
    return [part[MARGIN:] for part in (q, v, u)]


def fly(model, error, size=7.5, ramp=3.0, period=0.02, horizon=20, weights=WEIGHTS) -> dict:
    """Return t, the distance from the path, mm, and the run of one eight."""
    system, ticks = mb.read_mjcf(model), round((ramp + LAP * size / SPEED) / period)
    t = period / FINE * np.arange(-MARGIN, FINE * (ticks + horizon + 2) + MARGIN)
    q, v, u = flat_motion(system, eight(t, size, ramp), period / FINE)
    linear = mb.linearize(system, mb.equilibrium(system))
    to_x = np.linalg.inv(np.vstack([linear.to_dq, linear.to_dv]))
    end = to_x.T @ mb.control.regulators.lqr_gain(linear, **weights).S @ to_x
    cost, step = mpc.Cost(Q_end=(end + end.T) / 2, **weights), mpc.StepOptions(order=2)
    ocp = mpc.optimal_control_problem(system, horizon, period, [cost], step=step)
    first = FINE * np.arange(horizon + 1)
    guess = mpc.initial_guess(ocp, np.hstack([q[first], v[first]]), u[first[:-1]])
    rti = mpc.real_time_iteration(ocp, guess, delay=1, pending=[u[0]])

    def ahead(time: float) -> np.ndarray:
        k = FINE * (round(time / period) + 1 + np.arange(horizon + 1))  # when the control acts
        return rti.reference(setpoint_q=q[k], setpoint_v=v[k], setpoint_u=u[k])

    scene = {"q0": q[0], "v0": v[0], "delay": 1, "perturb": error, "reference": ahead}
    run = mb.validate(rti, model, period * ticks, **scene).runs[0]
    far = 1e3 * np.linalg.norm(run.recording.q[:, :3] - q[: FINE * ticks : FINE, :3], axis=1)
    print(f"{error}: {np.mean(far**2) ** 0.5:.1f} mm rms, {far.max():.1f} at most; {run.in_words}")
    return {"t": run.recording.t, "far": far, "run": run}


def main(figure: str | None = None) -> dict[str, dict]:
    """Return of each flight: t, the distance from the path, mm, and the run."""
    found = {"as modelled": fly(MODEL, {}), "with errors": fly(MODEL, {"mass": 0.1})}
    if figure is not None:
        save_figure(figure, curves_of(found, {"distance from the path, mm": "far"}))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
