"""A parallel robot moves around poses where its motors cannot hold its tool.

Two arms meet in one pin. Where their outer links are in one line, the pin can move without work of
any motor: an actuation singularity, which the straight line crosses twice (example 37). A row of
the path bounds the determinant that vanishes there: the fastest motion avoids these poses with two
thirds of the motors' torque, and a real-time iteration tracks it as generated C, though the plant
is 10 % heavier, its control acts one tick late, and an arm is pushed during the motion.

You will see the determinant as a share of its value at the authored pose, the tool's height, its
error, and the torques.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.plots import curves_of, save_figure

MODEL = models.path("five_bar")
LEFT, RIGHT = np.array([-0.38, 0.38]), np.array([0.38, 0.38])  # m, x and z of the tool
STEPS, SLOW = 40, 2.0  # intervals; s of the straight line, the first guess
LEAST, TORQUE, LIMIT = 0.35, 10.0, 15.0  # of the determinant; N m planned, and of the motors
EFFORT = 1e-3  # cost of 1 (N m)² over a second, which costs 1
PERIOD, HORIZON, PUSH = 0.01, 15, 2.0  # s, samples, N m on the left arm
COST = mpc.Cost(Q=np.repeat([200.0, 1.0], 4), Q_end=np.repeat([200.0, 2.0], 4), R=0.01)


def fastest_motion(system: mb.System, tool: ca.SX, measure: ca.SX, at: mpc.StageSymbols) -> object:
    """Return the fastest motion that keeps the determinant, from the left to the right."""
    s = np.linspace(0, 1, STEPS + 1)
    points = LEFT + np.outer(s**3 * (10 - 15 * s + 6 * s * s), RIGHT - LEFT)  # from rest to rest
    there = mpc.pose_path(system, at.q, tool, [0, 1, 2, 3], np.linspace([0, 0.8], LEFT, 4)).q[-1]
    line = mpc.pose_path(system, at.q, tool, SLOW * s, points, q0=there)
    print(f"the straight line needs {np.abs(line.u).max():.0f} N m of {LIMIT:.0f}")
    parts = [
        mpc.TimeCost(1.0),
        mpc.Cost(residual=np.sqrt(2 * EFFORT) * at.u),
        mpc.Bounded(measure, LEAST),
        mpc.StageBounds(u=[[-TORQUE, TORQUE]] * 2),
        *mpc.pin_independent_coordinates(system, at, line.q[-1]),
    ]
    start = mpc.Start(q0=line.q[0], v0=np.zeros(4))
    problem = mpc.trajectory_problem(system, STEPS, (0.3, SLOW), parts, start=start, symbols=at)
    return mpc.solve_trajectory(problem, line.guess(problem), solver="fatrop")


def main(figure: str | None = None) -> dict[str, np.ndarray | mpc.TrajectorySolution]:
    """Return t, determinant, tool, error and torques of the run, and the plan."""
    system = mb.read_mjcf(MODEL)
    at = mpc.stage_symbols(system)
    tool = system.frame("tool").pose(at.q)[0][[0, 2]]
    measure = mpc.actuation_measure(system, at.q, system.tree.q0)
    seen = ca.Function("seen", [at.q], [ca.vertcat(tool, measure)])
    plan, limits = fastest_motion(system, tool, measure, at), [[-LIMIT, LIMIT]] * 2
    print(plan.in_words)
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, [COST, mpc.StageBounds(u=limits)])
    rti = mpc.real_time_iteration(ocp, mpc.tracking_guess(plan, ocp), delay=1)
    options = {"q0": plan.q[0], "perturb": {"mass": 0.1}, "delay": 1}
    options["reference"] = mpc.reference_from_trajectory(plan, ocp, delay=1)
    options["disturbance"] = lambda t: [PUSH * (0.1 <= t < 0.2), 0, 0, 0]
    duration = PERIOD * round((plan.t[-1] + 0.3) / PERIOD)
    r = mb.validate(rti, MODEL, duration, **options).runs[0].recording
    was, wanted = (seen.map(len(r.t))(q.T).full() for q in (r.q, plan.at(r.t)[0]))
    run = {"t": r.t, "measure": was[2], "tool": was[1], "u": r.u, "left": r.u[:, 0]}
    run["off"] = np.linalg.norm(was[:2] - wanted[:2], axis=0)
    print(f"off by {1e3 * run['off'].max():.0f} mm, determinant from {was[2].min():+.2f}, ", end="")
    print(f"torque {np.abs(r.u).max():.1f} N m")
    if figure is not None:
        titles = {"determinant, share": "measure", "height of the tool, m": "tool"}
        titles |= {"tool off its path, m": "off", "torque of the left motor, N m": "left"}
        save_figure(figure, curves_of({"around": run}, titles))
    return run | {"plan": plan, "planned": seen.map(STEPS + 1)(plan.q.T).full()[2]}


if __name__ == "__main__":
    main(*sys.argv[1:])
