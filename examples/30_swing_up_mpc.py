"""A pendulum on a four-bar swings up in MuJoCo by a real-time iteration.

The optimum of example 25, for 3 of the motor's 4 N m, is a plan for the model. The plant is 10 %
heavier, its control acts one tick late, and the pendulum is pushed once it is upright. At every
tick one Gauss-Newton step corrects the plan of the next half second from the measured state, and
the motor's limit leaves 1 N m for corrections. After the plan the setpoint is rest, upright.

You will see the C on the plant of the model and on the other, and there the plan's torque alone.
"""

import sys

import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.plots import curves_of, save_figure
from mbcasadi.validation import ReportOptions

MODEL = models.path("pendulum_on_four_bar")
PERIOD, PLANNED, HORIZON = 0.0125, 120, 40  # s; samples of the plan and of the iteration
DURATION, PUSHED = 5.0, (3.0, 3.1)  # s
TORQUE, UPRIGHT = 3.0, 0.1  # N m of the plan; rad of lean within which the pendulum stands
ERRORS = {
    "perturb": {"mass": 0.1},
    "disturbance": lambda t: [0, 0, 0.5 * (PUSHED[0] <= t < PUSHED[1]), 0],  # N m on the pendulum
}
ANGLES, SPEEDS = np.eye(8)[[0, 2]].sum(axis=0), np.eye(8)[[4, 6]].sum(axis=0)  # of two joints
STEP = mpc.StepOptions(order=3, pivot=False)  # of the prediction


def planned(system: mb.System, upright: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return states and torques: the swing, then rest."""
    hanging = upright + np.pi * np.eye(8)[2]
    parts = [mpc.Cost(Q=ANGLES + 0.1 * SPEEDS, R=0.5, Q_end=50 * ANGLES + 5 * SPEEDS)]
    parts.append(mpc.StageBounds(u=[[-TORQUE, TORQUE]]))
    ocp = mpc.optimal_control_problem(system, PLANNED, PERIOD, parts, step=STEP)
    straight = np.linspace(hanging, upright, PLANNED + 1)
    guess = mpc.initial_guess(ocp, straight, np.zeros((PLANNED, 1)))
    best = mpc.ocp_solver(ocp, "fatrop").solve(hanging, guess=guess)
    print(best.in_words)
    rest = round(DURATION / PERIOD) + HORIZON + 1
    return np.vstack([best.x, np.tile(upright, (rest, 1))]), np.pad(best.u, ((0, rest), (0, 0)))


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return times, lean and recording of the three runs."""
    system = mb.read_mjcf(MODEL)
    upright = np.concatenate([system.tree.q0, np.zeros(4)])
    x, u = planned(system, upright)
    cost = mpc.Cost(Q=10 * ANGLES + SPEEDS, R=0.7, Q_end=150 * ANGLES + 15 * SPEEDS)
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, [cost], step=STEP)
    guess = mpc.initial_guess(ocp, x[: HORIZON + 1], u[:HORIZON])
    rti = mpc.real_time_iteration(ocp, guess, delay=1)

    def ahead(t: float) -> np.ndarray:
        at = slice(k := round(t / PERIOD), k + HORIZON + 1)  # begins when the first control acts
        return ocp.parameters(setpoint_q=x[at, :4], setpoint_v=x[at, 4:], setpoint_u=u[at]).ravel()

    def replay(t: float, _q: np.ndarray, _v: np.ndarray) -> np.ndarray:
        return u[round(t / PERIOD)]

    cases = {"as modelled": (rti, {}), "with errors": (rti, ERRORS), "plan alone": (replay, ERRORS)}
    options = {"q0": x[0, :4], "delay": 1, "report": ReportOptions(explain=False)}
    found = {}
    for name, (law, errors) in cases.items():
        more = errors | ({"reference": ahead} if law is rti else {"period": PERIOD})
        run = mb.validate(law, MODEL, DURATION, **options, **more).runs[0]
        t, lean = run.recording.t, run.recording.q[:, :3].sum(axis=1)  # joints turn on each other
        away, most = t[(abs(lean) > UPRIGHT) & (t < PUSHED[0])][-1], abs(lean[t > PUSHED[0]]).max()
        print(f"{name}: up after {away:.2f} s, leans {most:.3f} rad at most")
        print(f"  after the push and {abs(lean[-1]):.4f} rad at the end; {run.in_words}")
        found[name] = {"t": t, "lean": lean, "run": run}
    if figure is not None:
        save_figure(figure, curves_of(found, {"lean, rad": "lean"}), marks=PUSHED)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
