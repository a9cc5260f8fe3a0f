"""A parallel robot carries its tool past poses where its motors cannot hold it.

Two arms meet in one pin. Where their outer links are in one line, the pin can move without work of
any motor: an actuation singularity. The straight line from left to right crosses such poses twice.
Inverse dynamics requires torques there beyond all motors, and in MuJoCo the tool falls through. A
row of the path bounds the determinant that vanishes there: the fastest motion avoids these poses
with two thirds of the motors' torque, and a real-time iteration tracks it as generated C, though
the plant is 10 % heavier, its control acts one tick late, and an arm is pushed during the motion.

You will see both motions: the determinant as a share of its value at the authored pose, the tool's
height, its error, and the torques.
"""

import casadi as ca
import numpy as np
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, laws
from mbcasadi.mpc import (
    Bounded,
    PosePath,
    TrajectorySolution,
    actuation_measure,
    optimal_control_problem,
    pin_independent_coordinates,
    pose_path,
    real_time_iteration,
    reference_from_trajectory,
    solve_trajectory,
    stage_symbols,
    tracking_guess,
    trajectory_problem,
)

MODEL = models.path("five_bar")
LEFT, RIGHT = np.array([-0.38, 0.38]), np.array([0.38, 0.38])  # m, x and z of the tool
STEPS, SLOW = 40, 2.0  # intervals; s of the straight line
LEAST, TORQUE, LIMIT = 0.35, 10.0, 15.0  # of the determinant; N m planned, and of the motors
EFFORT = 1e-3  # cost of 1 (N m)² over a second, which costs 1
PERIOD, HORIZON, PUSH = 0.01, 15, 2.0  # s, samples, N m on the left arm
WEIGHTS = {"Q": np.repeat([200.0, 1.0], 4), "Q_end": np.repeat([200.0, 2.0], 4), "R": 0.01}

SYSTEM = mb.read_mjcf(MODEL)
OWN = stage_symbols(SYSTEM)
TOOL = SYSTEM.frame("tool").pose(OWN.q)[0][[0, 2]]
MEASURE = actuation_measure(SYSTEM, OWN.q, SYSTEM.tree.q0)
SEEN = ca.Function("seen", [OWN.q], [ca.vertcat(TOOL, MEASURE)])


def straight(t: float) -> np.ndarray:
    """Return (3, 2): place, velocity and acceleration on the line, from rest to rest."""
    s = min(t / SLOW, 1.0)
    share = [s**3 * (10 - 15 * s + 6 * s * s), 30 * (s * (1 - s)) ** 2 / SLOW,
             60 * s * (1 - s) * (1 - 2 * s) / SLOW**2]  # fmt: skip
    return np.outer(share, RIGHT - LEFT) + np.outer([1, 0, 0], LEFT)


def line() -> PosePath:
    """Return the straight line by inverse kinematics and inverse dynamics."""
    t = np.linspace(0, SLOW, STEPS + 1)
    there = pose_path(SYSTEM, OWN.q, TOOL, [0, 1, 2, 3], np.linspace([0, 0.8], LEFT, 4)).q[-1]
    return pose_path(SYSTEM, OWN.q, TOOL, t, [straight(one)[0] for one in t], q0=there)


def around(guess: PosePath) -> TrajectorySolution:
    """Return the fastest motion that keeps the determinant."""
    problem = trajectory_problem(
        SYSTEM,
        STEPS,
        duration=(0.3, 2.0),
        time_weight=1.0,
        q0=guess.q[0],
        v0=np.zeros(4),
        symbols=OWN,
        residual=np.sqrt(2 * EFFORT) * OWN.u,
        path=[Bounded(MEASURE, LEAST)],
        end=pin_independent_coordinates(SYSTEM, OWN, guess.q[-1]),
        u_bounds=[[-TORQUE, TORQUE]] * 2,
    )
    return solve_trajectory(problem, guess.guess(problem), solver="fatrop")


def run(law, duration, q0, reference, wanted, push=0.0) -> dict[str, np.ndarray]:
    """Return the motion of the tool in MuJoCo, and its error."""
    options = {"perturb": {"mass": 0.1}, "delay": 1, "q0": q0, "reference": reference}
    options["disturbance"] = lambda t: push * (0.1 <= t < 0.2) * np.eye(4)[0]
    ticks = round(duration / PERIOD)
    found = mb.validate(law, MODEL, PERIOD * ticks, **options).runs[0].recording
    seen = SEEN.map(len(found.t))(found.q.T).full().T
    off = np.linalg.norm(seen[:, :2] - [wanted(t) for t in found.t], axis=1)
    return {"t": found.t, "tool": seen[:, 1], "off": off, "measure": seen[:, 2],
            "u": found.u, "left": found.u[:, 0]}  # fmt: skip


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return both runs, and the plan."""
    task = FrameTask("tool", position="xz", orientation="", kp=900.0)
    torque = laws.computed_torque(SYSTEM, task, period=2e-3)
    names = ("tool_position", "tool_velocity", "tool_acceleration")
    slow, limits = line(), [[-LIMIT, LIMIT]] * 2
    best = around(slow)
    follow = optimal_control_problem(SYSTEM, HORIZON, PERIOD, u_bounds=limits, **WEIGHTS)
    mpc = real_time_iteration(follow, tracking_guess(best, follow), delay=1)
    runs = {
        "straight line": run(
            torque,
            SLOW + 0.3,
            slow.q[0],
            lambda t: torque.reference(**dict(zip(names, straight(t), strict=True))),
            lambda t: straight(t)[0],
        ),
        "around": run(
            mpc,
            best.t[-1] + 0.3,
            slow.q[0],
            reference_from_trajectory(best, follow, delay=1),
            lambda t: SEEN(best.at([t])[0][0]).full().ravel()[:2],
            PUSH,
        ),
    }
    for name, found in runs.items():
        print(f"{name}: off by {1e3 * found['off'].max():.0f} mm, determinant from ", end="")
        print(f"{found['measure'].min():+.2f}, torque {np.abs(found['u']).max():.1f} N m")
    needed = np.abs(slow.u).max()
    print(f"the line needs {needed:.0f} N m of {LIMIT:.0f}; {best.in_words}")
    if figure is not None:
        draw(figure, drawn(runs), columns=2)
    plan = {"t": best.t, "u": best.u, "gap": best.trajectory.drift, "solved": best.solved}
    plan |= {"measure": SEEN.map(STEPS + 1)(best.q.T).full()[2], "needed": needed}
    return runs | {"plan": plan}


def drawn(runs: dict[str, dict[str, np.ndarray]]) -> list[Panel]:
    """Return determinant, height, error and torque over time."""
    titles = {
        "measure": "determinant, share of the authored pose's",
        "tool": "height of the tool, m",
        "off": "tool off its path, m",
        "left": "torque of the left motor, N m",
    }
    return [
        Panel(title, {name: (found["t"], found[key]) for name, found in runs.items()})
        for key, title in titles.items()
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
