"""The fastest lap around an ellipse, and three laws that repeat it.

The tool of a five-bar runs around an ellipse. Start, speed and duration of the lap are unknowns; a
tube around the ellipse and two thirds of the motors' torque are given. Then three laps in MuJoCo,
10 % heavier, one tick late and pushed: by a trajectory LQR whose gains are a table in C, by linear
MPC along the trajectory with matrices as inputs, and by a real-time iteration that computes them.

You will see the deviation of the tool from its path, and the cost of each law.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.plots import curves_of, save_figure

MODEL = models.path("five_bar")
CENTRE, AXES = np.array([0.0, 0.72]), np.array([0.16, 0.09])  # m, x and z
TUBE, AHEAD = 0.04, 0.6  # of the squared distance; rad that a sample may lead or lag
PLANNED, LIMITS, EFFORT = mpc.StageBounds(u=[[-10, 10]] * 2), [[-15, 15]] * 2, 4e-3**0.5  # N m
STEPS, GUESSED, LAPS, PERIOD, HORIZON = 40, 0.8, 3, 0.01, 15  # s of the first guess and a period
ERROR, CONTROL = np.repeat([200.0, 1.0], 4), 0.01  # weights of the laws


def fastest_lap(system: mb.System) -> mpc.TrajectorySolution:
    """Return the lap of least time and a little effort."""
    own = mpc.stage_symbols(system, ahead=2)
    tool = system.frame("tool").pose(own.q)[0][[0, 2]]
    r, turn = (tool - CENTRE) / AXES, np.linspace(0, 2 * np.pi, STEPS + 1)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    tube = mpc.Bounded(ca.sumsqr(r), 1 - TUBE, 1 + TUBE)
    beside = mpc.Bounded(ca.dot(r, own.parameters["ahead"]), np.cos(AHEAD))
    start = mpc.Start(periodic=np.zeros(4), rows=[mpc.Bounded(tool[1], CENTRE[1], CENTRE[1])])
    parts = [mpc.TimeCost(1.0), mpc.Cost(residual=EFFORT * own.u), PLANNED, tube, beside]
    problem = mpc.trajectory_problem(system, STEPS, (0.2, 2.0), parts, start=start, symbols=own)
    guess = mpc.pose_path(system, own.q, tool, GUESSED * turn / turn[-1], CENTRE + circle * AXES)
    ahead = problem.ocp.parameters(ahead=circle)
    return mpc.solve_trajectory(problem, guess.guess(problem), ahead, hessian="gauss-newton")


def run(name: str, lap: mpc.TrajectorySolution, law, reference) -> dict[str, np.ndarray]:
    """Return three laps in MuJoCo: tool off its path, torque, cost, time of a tick."""
    duration = PERIOD * round(LAPS * lap.t[-1] / PERIOD)
    errors = {"perturb": {"mass": 0.1}, "delay": 1, "q0": lap.q[0], "v0": lap.v[0]}
    errors["disturbance"] = lambda t: [3.0 * (0.7 <= t < 0.8), 0, 0, 0]  # N m on the left arm
    run = mb.validate(law, MODEL, duration, reference=reference, **errors).runs[0]
    found, (q, v, u) = run.recording, lap.at(run.recording.t, "repeat")
    place = lap.problem.system.frame("tool").pose.map(len(found.t))
    off = np.linalg.norm((place(found.q.T)[0] - place(q.T)[0]).full(), axis=0)
    x = np.hstack([found.q - q, found.v - v])
    cost = PERIOD / 2 * (np.sum(x**2 * ERROR) + CONTROL * np.sum((found.u - u) ** 2))
    print(f"{name}: off by {1e3 * off.max():.1f} mm, cost {cost:.3f}; {run.in_words}")
    return {"t": found.t, "off": off, "u": found.u, "cost": cost}


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray | float]]:
    """Return the lap and the runs."""
    system = mb.read_mjcf(MODEL)
    lap, weights = fastest_lap(system), {"Q": ERROR, "R": CONTROL, "Q_end": ERROR}
    print(lap.in_words)
    along, window = mpc.linearize_trajectory(lap, PERIOD, LAPS), {"beyond": "repeat", "delay": 1}
    tick, cost = mb.control.LawOptions(PERIOD, LIMITS), mpc.Cost(**weights)
    lqr = mb.control.regulators.trajectory_lqr(along, **weights, options=tick)
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, [cost, mpc.StageBounds(u=LIMITS)])
    rti = mpc.real_time_iteration(ocp, mpc.tracking_guess(lap, ocp, beyond="repeat"), delay=1)
    linear = mpc.trajectory_mpc(lap, HORIZON, PERIOD, cost, u_bounds=LIMITS, **window)
    laws = {"LQR": (lqr, None)}
    laws["linear MPC"] = linear, mpc.time_varying_model(lap, linear.ocp, **window)
    laws["MPC"] = rti, mpc.reference_from_trajectory(lap, ocp, **window)
    runs = {name: run(name, lap, *law) for name, law in laws.items()}
    if figure is not None:
        save_figure(figure, curves_of(runs, {"tool off its path, m": "off"}), marks=(0.7, 0.8))
    return runs | {"lap": lap}


if __name__ == "__main__":
    main(*sys.argv[1:])
