"""The fastest lap around an ellipse, and three laws that repeat it.

The tool of a five-bar runs around an ellipse repeatedly. Start, speed and duration of the lap are
unknowns: the motion is periodic, so it starts at speed. Only a tube around
the ellipse and two thirds of the motors' torque are given. Then three laps in MuJoCo, where the
plant is 10 % heavier, its control acts one tick late and the left arm is pushed. A trajectory LQR
has its gains as a table in C. Linear MPC along the trajectory has the torques' limits and
predicts over the delay, with matrices as input data. A real-time iteration computes them itself.

You will see the deviation of the tool from its path, the torques, and the cost of each law.
"""

import casadi as ca
import numpy as np
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import trajectory_lqr
from mbcasadi.mpc import (
    Bounded,
    TrajectorySolution,
    linearize_trajectory,
    optimal_control_problem,
    pose_path,
    real_time_iteration,
    reference_from_trajectory,
    solve_trajectory,
    stage_symbols,
    time_varying_model,
    tracking_guess,
    trajectory_mpc,
    trajectory_problem,
)

MODEL = models.path("five_bar")
CENTRE, AXES = np.array([0.0, 0.72]), np.array([0.16, 0.09])  # m, x and z
TUBE, AHEAD = 0.04, 0.6  # of the squared distance; rad that a sample may lead or lag
TORQUE, LIMIT, EFFORT = 10.0, 15.0, 2e-3  # N m planned, and of the motors; 1/(N m)² of a second
STEPS, GUESSED, LAPS = 40, 0.8, 3  # intervals; s; number
PERIOD, HORIZON = 0.01, 15  # s, samples
ERROR, CONTROL = np.repeat([200.0, 1.0], 4), 0.01  # weights of both laws
PUSH, PUSHED = 3.0, (0.7, 0.8)  # N m, s


def fastest_lap(system: mb.System) -> TrajectorySolution:
    """Return the lap of least time and a little effort."""
    own = stage_symbols(system, ahead=2)
    tool = system.frame("tool").pose(own.q)[0][[0, 2]]
    r, turn = (tool - CENTRE) / AXES, np.linspace(0, 2 * np.pi, STEPS + 1)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    problem = trajectory_problem(
        system,
        STEPS,
        duration=(0.2, 2.0),
        time_weight=1.0,
        periodic=np.zeros(system.nq),
        symbols=own,
        start=[Bounded(tool[1], CENTRE[1], CENTRE[1])],
        residual=np.sqrt(2 * EFFORT) * own.u,
        path=[
            Bounded(ca.sumsqr(r), 1 - TUBE, 1 + TUBE),
            Bounded(ca.dot(r, own.parameters["ahead"]), np.cos(AHEAD)),
        ],
        u_bounds=[[-TORQUE, TORQUE]] * 2,
    )
    guess = pose_path(system, own.q, tool, GUESSED * turn / turn[-1], CENTRE + circle * AXES)
    p = problem.ocp.parameters(ahead=circle)
    return solve_trajectory(problem, guess.guess(problem), p, hessian="gauss-newton")


def run(law, lap: TrajectorySolution, reference=None) -> dict[str, np.ndarray | float]:
    """Return three laps in MuJoCo: tool off its path, torque, cost."""
    run = mb.validate(
        law,
        MODEL,
        PERIOD * round(LAPS * lap.t[-1] / PERIOD),
        q0=lap.q[0],
        v0=lap.v[0],
        reference=reference,
        perturb={"mass": 0.1},
        delay=1,
        disturbance=lambda t: PUSH * (PUSHED[0] <= t < PUSHED[1]) * np.eye(4)[0],
    ).runs[0]
    found = run.recording
    place = lap.problem.system.frame("tool").pose.map(len(found.t))
    q, v, u = lap.at(found.t, "repeat")
    off = np.linalg.norm((place(found.q.T)[0] - place(q.T)[0]).full(), axis=0)
    x = np.hstack([found.q - q, found.v - v])
    cost = PERIOD / 2 * (np.sum(x**2 * ERROR) + CONTROL * np.sum((found.u - u) ** 2))
    tick = run.metric("time.median")
    return {"t": found.t, "off": off, "u": found.u, "cost": cost, "tick": tick}


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray | float]]:
    """Return the lap and the runs."""
    system = mb.read_mjcf(MODEL)
    lap = fastest_lap(system)
    print(lap.in_words)
    limits = [[-LIMIT, LIMIT]] * 2
    along = linearize_trajectory(lap, PERIOD, LAPS)
    lqr = trajectory_lqr(along, ERROR, CONTROL, Q_end=ERROR, ctrl_limits=limits, period=PERIOD)
    follow = optimal_control_problem(
        system, HORIZON, PERIOD, Q=ERROR, R=CONTROL, Q_end=ERROR, u_bounds=limits
    )
    rti = real_time_iteration(follow, tracking_guess(lap, follow, beyond="repeat"), delay=1)
    window = {"beyond": "repeat", "delay": 1}
    mpc = trajectory_mpc(lap, HORIZON, PERIOD, ERROR, CONTROL, u_bounds=limits, **window)
    runs = {
        "LQR": run(lqr, lap),
        "linear MPC": run(mpc, lap, time_varying_model(lap, mpc.ocp, **window)),
        "MPC": run(rti, lap, reference_from_trajectory(lap, follow, **window)),
    }
    for name, found in runs.items():
        print(
            f"{name}: off by {1e3 * found['off'].max():.1f} mm, cost {found['cost']:.3f}, ", end=""
        )
        print(f"tick {1e6 * found['tick']:.1f} µs")
    if figure is not None:
        curves = {key: {n: (r["t"], r[key].T[0] if key == "u" else r[key])
                        for n, r in runs.items()} for key in ("off", "u")}  # fmt: skip
        panels = [Panel("tool off its path, m", curves["off"]),
                  Panel("torque of the left motor, N m", curves["u"])]  # fmt: skip
        draw(figure, panels, columns=2, marks=PUSHED)
    ends = np.hstack([lap.q[-1] - lap.q[0], lap.v[-1] - lap.v[0]])
    gap = lap.trajectory.drift.max()
    plan = {"T": lap.t[-1], "ends": ends, "u": lap.u, "gap": gap, "solved": lap.solved}
    return runs | {"lap": plan}


if __name__ == "__main__":
    main(figure_path(__doc__))
