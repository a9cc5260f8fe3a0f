"""A parallel robot carries its tool past poses where its motors cannot hold it.

Two arms meet in one pin. Where their outer links stand in one line, the pin can move and no motor
feels it: an actuation singularity. The straight line from left to right crosses such poses twice.
Inverse dynamics asks there for torques beyond all motors, and in MuJoCo the tool falls through. A
row of the path bounds the determinant that vanishes there: the fastest motion goes around, within
two thirds of the motors' torque, and a real-time iteration tracks it as generated C, though the
plant is 10 % heavier, its control acts one tick late, and an arm is pushed on the way.

You will see both motions: the determinant as a share of its value at the authored pose, the tool's
height, how far the tool is from where it should be, and the torques.
"""

import casadi as ca
import numpy as np
from panels import Panel, draw, figure_path

import mbcasadi as mb
import mujoco_models
from mbcasadi.control import FrameTask, laws
from mbcasadi.control.mpc import (
    Bounded,
    actuation_measure,
    fixed_freedoms,
    moving_reference,
    optimal_control_problem,
    optimise,
    pose_path,
    real_time_iteration,
    stage_symbols,
    tracking_guess,
    trajectory_problem,
)

MODEL = mujoco_models.path("five_bar")
LEFT, RIGHT = np.array([-0.38, 0.38]), np.array([0.38, 0.38])  # m, x and z of the tool
STEPS, SLOW = 40, 2.0  # intervals; s of the straight line
LEAST, TORQUE, LIMIT = 0.35, 10.0, 15.0  # of the determinant; N m planned, and of the motors
EFFORT = 1e-3  # cost of 1 (N m)² over a second, which costs 1
PERIOD, HORIZON, PUSH = 0.01, 15, 2.0  # s, samples, N m on the left arm
WEIGHTS = {"Q": np.repeat([200.0, 1.0], 4), "Q_end": np.repeat([200.0, 2.0], 4), "R": 0.01}
PLANT = {"perturb": {"mass": 0.1}, "delay": 1}


def straight(s: float) -> np.ndarray:
    """Return (3, 2): place, velocity and acceleration at a share s of the time, 0 to 1."""
    s = min(s, 1.0)
    rates = np.array([s**3 * (10 - 15 * s + 6 * s * s), 30 * (s * (1 - s)) ** 2,
                      60 * s * (1 - s) * (1 - 2 * s)])  # fmt: skip
    way = np.outer(rates, RIGHT - LEFT)
    return way / SLOW ** np.arange(3)[:, None] + np.outer([1, 0, 0], LEFT)


def along_the_line(system: mb.System, q0: np.ndarray) -> dict[str, np.ndarray]:
    """Track the straight line by computed torque."""
    task = FrameTask("tool", position="xz", orientation="", kp=900.0)
    law = laws.computed_torque(system, task, period=2e-3)

    def reference(t: float) -> np.ndarray:
        p, v, a = straight(t / SLOW)
        return law.ref(tool_position=p, tool_velocity=v, tool_acceleration=a)

    return run(law, SLOW + 0.3, q0, reference, lambda t: straight(t / SLOW)[0])


def run(law, duration, q0, reference, wanted, disturbance=None) -> dict[str, np.ndarray]:
    """Return what the tool did in MuJoCo, and where it should have been."""
    found = mb.validate(law, MODEL, duration, q0=q0, reference=reference, disturbance=disturbance,
                        **PLANT).runs[0].recording  # fmt: skip
    system = mb.read_mjcf(MODEL)
    tool = system.frame("tool").pose.map(len(found.t))(found.q.T)[0].full()[[0, 2]].T
    off = np.linalg.norm(tool - np.array([wanted(t) for t in found.t]), axis=1)
    return {"t": found.t, "q": found.q, "tool": tool, "off": off, "u": found.u}


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return both runs."""
    system = mb.read_mjcf(MODEL)
    own = stage_symbols(system)
    tool = system.frame("tool").pose(own.q)[0][[0, 2]]
    measure = actuation_measure(system, own.q, system.tree.q0)
    there = pose_path(system, own.q, tool, [0, 1, 2, 3], np.linspace([0, 0.8], LEFT, 4)).q[-1]
    s = np.linspace(0, 1, STEPS + 1)
    places = np.array([straight(one)[0] for one in s])
    line = pose_path(system, own.q, tool, SLOW * s, places, q0=there)
    problem = trajectory_problem(
        system,
        STEPS,
        duration=(0.3, 2.0),
        time_weight=1.0,
        q0=line.q[0],
        v0=np.zeros(4),
        symbols=own,
        residual=np.sqrt(2 * EFFORT) * own.u,
        path=[Bounded(measure, LEAST)],
        end=fixed_freedoms(system, own, line.q[-1]),
        u_bounds=[[-TORQUE, TORQUE]] * 2,
    )
    best = optimise(problem, line.guess(problem), solver="fatrop")
    follow = optimal_control_problem(
        system, HORIZON, PERIOD, u_bounds=[[-LIMIT, LIMIT]] * 2, **WEIGHTS
    )
    law = real_time_iteration(follow, tracking_guess(best, follow), delay=1)
    place = system.frame("tool").pose
    runs = {
        "straight line": along_the_line(system, line.q[0]),
        "around": run(
            law,
            best.t[-1] + 0.3,
            line.q[0],
            moving_reference(best, follow, delay=1),
            lambda t: place(best.at([t])[0][0])[0].full().ravel()[[0, 2]],
            lambda t: PUSH * (0.1 <= t < 0.2) * np.eye(4)[0],
        ),
    }
    share = ca.Function("share", [own.q], [measure])
    for name, found in runs.items():
        found["measure"] = share.map(len(found["t"]))(found["q"].T).full().ravel()
        print(f"{name}: off by {1e3 * found['off'].max():.0f} mm, determinant from ", end="")
        print(f"{found['measure'].min():+.2f}, torque {np.abs(found['u']).max():.1f} N m")
    print(f"the line needs {np.abs(line.u).max():.0f} N m of {LIMIT:.0f}; {best.in_words}")
    runs["plan"] = {"t": best.t, "u": best.u, "gap": best.trajectory.drift,
                    "measure": share.map(STEPS + 1)(best.q.T).full().ravel(),
                    "needed": np.abs(line.u).max(), "solved": best.solved}  # fmt: skip
    if figure is not None:
        draw(figure, drawn(runs), columns=2)
    return runs


def drawn(runs: dict[str, dict[str, np.ndarray]]) -> list[Panel]:
    """Return determinant, height, error and torque over time."""
    both = {name: runs[name] for name in ("straight line", "around")}

    def curves(key, column=...):
        return {name: (r["t"], r[key][:, column] if r[key].ndim == 2 else r[key])
                for name, r in both.items()}  # fmt: skip

    return [
        Panel("determinant, share of the authored pose's", curves("measure")),
        Panel("height of the tool, m", curves("tool", 1)),
        Panel("tool off its path, m", curves("off")),
        Panel("torque of the left motor, N m", curves("u", 0)),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
