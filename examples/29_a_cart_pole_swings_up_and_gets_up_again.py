"""A cart-pole swings up in MuJoCo, holds against a push, and recovers when it is knocked over.

The cart is a carriage and a deck on two bolts, six rows of rank three. One real-time iteration does
everything: its horizon is 1.2 s, and every tick takes one Gauss-Newton step. Its first guess is the
optimum from rest below; its cost does not count turns, so a pole that has gone over the top, or
around, is not unwound. Nothing is reset by hand, and no other law takes over.
The plant is 10 % heavier, and its control acts one tick late.

You will see when the pole is first upright, its lean after a push of 1.5 N m, and when
it is upright again after knocks of different strength.
"""

import casadi as ca
import numpy as np
from closed_loops import motors
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.validation import Run, compile_controller

MODEL = models.path("cart_pole")
PERIOD, HORIZON, DURATION = 0.02, 60, 11.0  # s, samples, s
FORCE, POLE = 25.0, 4  # N, of 30 that the motor has; the pole's joint
PUSH, PUSHED = 1.5, 3.0  # N m on the pole for 0.1 s; from, s
KNOCKS, KNOCKED = (3.0, -3.0, 4.0), 6.0  # as PUSH
STANDS = 0.1  # rad of lean
ROOTS = {"x": 2.0, "angle": 2.0, "speed": 0.3, "turn": 0.5}  # of weights per second
LAST = {"x": 7.0, "angle": 7.0, "speed": 2.2, "turn": 2.2}  # at the end
EFFORT = 0.4  # root of a weight per second, 1/N


def upright(at: mpc.StageSymbols, root: dict[str, float]) -> ca.SX:
    """Return residuals of standing in the middle of the rail, on whatever turn of the pole."""
    lean = at.q[POLE]
    place = ca.vertcat(root["x"] * at.q[0], root["speed"] * at.v[0], root["turn"] * at.v[POLE])
    return ca.vertcat(place, root["angle"] * ca.vertcat(ca.sin(lean), 1 - ca.cos(lean)))


def controller(system: mb.System, hanging: np.ndarray) -> mpc.RealTimeIteration:
    """Return the real-time iteration that begins with the optimal swing."""
    at = mpc.stage_symbols(system)
    ocp = mpc.optimal_control_problem(
        system,
        HORIZON,
        PERIOD,
        symbols=at,
        residual=ca.vertcat(upright(at, ROOTS), EFFORT * at.u),
        terminal=upright(at, LAST),
        u_bounds=[[-FORCE, FORCE]],
        step=mpc.StepOptions(order=2, pivot=False),
    )
    straight = np.linspace(hanging, 0 * hanging, HORIZON + 1)
    guess = mpc.initial_guess(ocp, straight, np.zeros((HORIZON, 1)))
    best = mpc.ocp_solver(ocp, "fatrop").solve(hanging, guess=guess)
    print(best.in_words)
    return mpc.real_time_iteration(ocp, best, delay=1)


def main(figure: str | None = None) -> dict[str, Run]:
    """Return the run as modelled, and one for each knock."""
    system = mb.read_mjcf(MODEL)
    hanging = np.pi * np.eye(10)[POLE]
    same = {"q0": hanging[:5], "delay": 1}
    runs = {}
    with compile_controller(controller(system, hanging)) as law:
        runs["as modelled"] = mb.validate(law, MODEL, PUSHED, **same).runs[0]
        for knock in KNOCKS:

            def push(t: float, knock: float = knock) -> np.ndarray:
                late = PUSH * (0 <= t - PUSHED < 0.1) + knock * (0 <= t - KNOCKED < 0.1)
                return late * np.eye(5)[POLE]

            wrong = {"perturb": {"mass": 0.1}, "disturbance": push}
            run = mb.validate(law, MODEL, DURATION, **same, **wrong).runs[0]
            runs[f"knocked by {knock:+.0f} N m"] = run
    for name, run in runs.items():
        t, away = run.recording.t, np.abs(lean(run))
        first = t[(away > STANDS) & (t < PUSHED)][-1]
        print(f"{name}: stands after {first:.2f} s; {motors(run)}")
        if t[-1] > KNOCKED:
            pushed, last = away[(t > PUSHED) & (t < KNOCKED)].max(), t[away > STANDS][-1] - KNOCKED
            print(f"  the push leans it {pushed:.2f} rad, ", end="")
            print(
                f"it stands again {last:.2f} s after the knock, {away[-1]:.4f} rad off at the end"
            )
    if figure is not None:
        draw(figure, drawn(runs), marks=(PUSHED, KNOCKED), one_legend=True)
    return runs


def lean(run: Run) -> np.ndarray:
    """Return the angle from upright, between -pi and pi."""
    return (run.recording.q[:, POLE] + np.pi) % (2 * np.pi) - np.pi


def drawn(runs: dict[str, Run]) -> list[Panel]:
    """Return lean, carriage and force of the runs with a knock."""
    knocked = {name: run for name, run in runs.items() if "knocked" in name}
    times = {name: run.recording.t for name, run in knocked.items()}
    return [
        Panel("lean, rad", {k: (times[k], lean(r)) for k, r in knocked.items()}),
        Panel("carriage, m", {k: (times[k], r.recording.q[:, 0]) for k, r in knocked.items()}),
        Panel("force, N", {k: (times[k], r.recording.u[:, 0]) for k, r in knocked.items()}),
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
