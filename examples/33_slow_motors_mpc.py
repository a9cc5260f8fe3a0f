"""Two robots lift a bar with weak and slow motors: nonlinear MPC [L15].

The loop of five links has three freedoms and six motors; the bar should stay level and rise and
sink by a metre [L15, §VI]. Each motor gives 10 N m at most and changes by 0.5 N m at most from tick
to tick, as a current loop behind a gear does. The laws of example 14 require more of both. The
real-time iteration has both limits in its problem, distributes the load over the motors, and brakes
before the limits are active. The plant is 10 % heavier, one tick late, and a shoulder is pushed.

You will see the deviation of the bar from its path, and that no limit is exceeded.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.plots import curves_of, save_figure

MODEL = models.path("cooperating_arms")
PERIOD, HORIZON, DURATION, RATE = 0.02, 20, 6.0, 1.0  # s, samples, s, rad/s up and down
TORQUE, CHANGE = 10.0, 0.5  # N m, N m in one period
PLACE, SPEED, EFFORT = 100.0, 10.0, 0.1  # roots of weights per second, of y, its rate, u
PUSHED = (1.5, 1.8)  # s
ERRORS = {
    "perturb": {"mass": 0.1},
    "disturbance": lambda t: [20.0 * (PUSHED[0] <= t < PUSHED[1]), 0, 0, 0, 0],  # N m, a shoulder
}


def path(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bar's pose (x, z, angle) and its rate, one row for each time."""
    rise, rate = (1 - np.cos(RATE * t)) / 2, RATE * np.sin(RATE * t) / 2
    return np.outer(rise, [0, 1, 0]) + np.array([1.5, 0, 0]), np.outer(rate, [0, 1, 0])


def controller(arms: mb.System, pose: ca.Function) -> mpc.RealTimeIteration:
    """Return the MPC that moves the bar along y of each sample, and begins with holding torques."""
    at, held = mpc.stage_symbols(arms, y=3, ydot=3), mb.equilibrium(arms)
    slip = ca.jtimes(pose(at.q), at.q, at.v) - at.parameters["ydot"]
    tracked = ca.vertcat(PLACE * (pose(at.q) - at.parameters["y"]), SPEED * slip)
    cost = mpc.Cost(residual=ca.vertcat(tracked, EFFORT * at.u), terminal=0.3 * tracked)
    bounds = mpc.StageBounds(u=[[-TORQUE, TORQUE]] * 6, du=[[-CHANGE, CHANGE]] * 6)
    step = mpc.StepOptions(order=2, pivot=False)
    ocp = mpc.optimal_control_problem(arms, HORIZON, PERIOD, [cost, bounds], symbols=at, step=step)
    x = np.concatenate([held.q, np.zeros(5), held.u])
    guess = mpc.initial_guess(ocp, np.tile(x, (HORIZON + 1, 1)), np.tile(held.u, (HORIZON, 1)))
    return mpc.real_time_iteration(ocp, guess, delay=1, pending=[held.u])


def main(figure: str | None = None) -> dict[str, dict[str, object]]:
    """Return of each run: t, the error of the bar's height, mm, and the run."""
    arms, q, found = mb.read_mjcf(MODEL), ca.SX.sym("q", 5), {}
    place, _ = arms.frame("bar").pose(q)
    pose = ca.Function("pose", [q], [ca.vertcat(place[0], place[2], ca.sum1(q[:3]))])
    rti = controller(arms, pose)

    def ahead(t: float) -> np.ndarray:
        y, ydot = path(t + PERIOD * np.arange(1, HORIZON + 2))  # begins when the control acts
        return rti.ocp.parameters(y=y, ydot=ydot).ravel()

    for name, errors in {"as modelled": {}, "with errors": ERRORS}.items():
        run = mb.validate(rti, MODEL, DURATION, reference=ahead, delay=1, **errors).runs[0]
        t, u = run.recording.t, run.recording.u
        off = 1e3 * (pose.map(len(t))(run.recording.q.T).full() - path(t)[0].T)
        found[name] = {"t": t, "off": off, "height": off[1], "first": u[:, 0], "run": run}
        change, rms = np.abs(np.diff(u, axis=0)), np.sqrt(np.mean(off**2, axis=1)).round(2)
        print(f"{name}: bar off by {rms} mm, mm, mrad rms,")
        print(f"  {np.abs(off).max(axis=1).round(1)} at most; {run.in_words};")
        busy = 100 * np.mean(np.any(change > 0.999 * CHANGE, axis=1))
        print(f"  changes by {change.max():.3f} N m a tick at most, that in {busy:.0f} %")
    if figure is not None:
        titles = {"bar too high, mm": "height", "torque of the first motor, N m": "first"}
        save_figure(figure, curves_of(found, titles), marks=PUSHED)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
