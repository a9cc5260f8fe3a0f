"""A pendulum on a four-bar swings up in MuJoCo and stays up: real-time iteration on the manifold.

The optimum of example 25, for 3 of the motor's 4 N m, is a plan for the model. The plant is 10 %
heavier, its control acts one tick late, and the pendulum is pushed once it is upright. At every
tick one Gauss-Newton step corrects the plan of the next half second from the measured state; it
predicts over the delay, and the motor's limit leaves 1 N m for corrections. After the end of the
plan the setpoint is rest, upright.

You will see the same C on the plant of the model and on the other one, and the effect of the plan's
torque on the other one without feedback.
"""

import numpy as np
from closed_loops import motors
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import feedback
from mbcasadi.mpc import (
    StepOptions,
    initial_guess,
    ocp_solver,
    optimal_control_problem,
    real_time_iteration,
)
from mbcasadi.validation import Run, compile_controller

MODEL = models.path("pendulum_on_four_bar")
PERIOD, PLANNED, HORIZON = 0.0125, 120, 40  # s; samples of the plan and of the iteration
DURATION, PUSHED = 5.0, (3.0, 3.1)  # s
PUSH, TORQUE = 0.5, 3.0  # N m: on the pendulum, of the plan
UPRIGHT = 0.1  # rad of lean within which the pendulum stands
STEP = StepOptions(order=3, pivot=False)  # of the prediction


def weights(angle: float, speed: float) -> np.ndarray:
    """Return weights of crank and pendulum; the loop determines the other joints."""
    return np.repeat([angle, speed], 4) * np.tile([1, 0, 1, 0], 2)


def planned(system: mb.System, upright: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return states and torques: the swing, then rest."""
    hanging = upright + np.pi * np.eye(8)[2]
    weight = {"Q": weights(1.0, 0.1), "R": 0.5, "Q_end": weights(50.0, 5.0)}
    bounds = [[-TORQUE, TORQUE]]
    ocp = optimal_control_problem(system, PLANNED, PERIOD, **weight, u_bounds=bounds, step=STEP)
    straight = np.linspace(hanging, upright, PLANNED + 1)
    best = ocp_solver(ocp, "fatrop").solve(
        hanging, guess=initial_guess(ocp, straight, np.zeros((PLANNED, 1)))
    )
    print(best.in_words)
    rest = round(DURATION / PERIOD) + HORIZON + 1
    return np.vstack([best.x, np.tile(upright, (rest, 1))]), np.pad(best.u, ((0, rest), (0, 0)))


def main(figure: str | None = None) -> dict[str, Run]:
    """Return the three runs."""
    system = mb.read_mjcf(MODEL)
    upright = np.concatenate([system.tree.q0, np.zeros(4)])
    x, u = planned(system, upright)
    Q = weights(10.0, 1.0)
    ocp = optimal_control_problem(system, HORIZON, PERIOD, Q=Q, R=0.7, Q_end=15 * Q, step=STEP)
    first = initial_guess(ocp, x[: HORIZON + 1], u[:HORIZON])
    rti = real_time_iteration(ocp, first, delay=1)
    played = feedback(
        mb.linearize(system, upright[:4]), [[0] * 4], track_reference=True, period=PERIOD
    )

    def plan(t: float, samples: int) -> dict[str, np.ndarray]:
        at = slice(k := round(t / PERIOD), k + samples)  # begins when the first control acts
        parts = {"setpoint_q": x[at, :4], "setpoint_v": x[at, 4:], "setpoint_u": u[at]}
        return {name: part if samples > 1 else part[0] for name, part in parts.items()}

    follow = {"reference": lambda t: ocp.parameters(**plan(t, HORIZON + 1)).ravel()}
    replay = {"reference": lambda t: played.reference(**plan(t, 1))}
    same = {"q0": x[0, :4], "delay": 1}
    push = lambda t: PUSH * (PUSHED[0] <= t < PUSHED[1]) * np.eye(4)[2]  # noqa: E731
    wrong = same | {"perturb": {"mass": 0.1}, "disturbance": push}
    with compile_controller(rti) as law:
        runs = {
            "as modelled": mb.validate(law, MODEL, DURATION, **follow, **same).runs[0],
            "with errors": mb.validate(law, MODEL, DURATION, **follow, **wrong).runs[0],
            "plan alone": mb.validate(played, MODEL, DURATION, **replay, **wrong).runs[0],
        }
    for name, run in runs.items():
        t, leant = run.recording.t, np.abs(lean(run))
        away = t[(leant > UPRIGHT) & (t < PUSHED[0])][-1]
        print(f"{name}: up after {away:.2f} s, leans {leant[t > PUSHED[0]].max():.3f} rad at most")
        print(f"  after the push and {leant[-1]:.4f} rad at the end; {motors(run)}")
    if figure is not None:
        draw(figure, drawn(runs), marks=PUSHED)
    return runs


def lean(run: Run) -> np.ndarray:
    """Return the angle of the pendulum from upright: three joints turn on each other."""
    return run.recording.q[:, :3].sum(axis=1)


def drawn(runs: dict[str, Run]) -> list[Panel]:
    """Return lean, crank and torque over time."""
    curves = {name: (run.recording.t, run) for name, run in runs.items()}
    return [
        Panel("lean, rad", {k: (t, lean(r)) for k, (t, r) in curves.items()}, limits=(-4, 4)),
        Panel(
            "crank, rad",
            {k: (t, r.recording.q[:, 0]) for k, (t, r) in curves.items()},
            limits=(-4, 4),
        ),
        Panel("torque, N m", {k: (t, r.recording.u[:, 0]) for k, (t, r) in curves.items()}),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
