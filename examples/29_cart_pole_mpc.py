"""A cart-pole swings up, holds against a push, and recovers from knocks.

The cart is a carriage and a deck on two bolts, six rows of rank three. One real-time iteration does
everything: its horizon is 1.2 s, and every tick takes one Gauss-Newton step. Its first guess is the
optimum from rest below; its cost does not count turns, so a pole that has gone over the top, or
around, is not unwound. The plant is 10 % heavier, and its control acts one tick late.

You will see when the pole is upright first, its lean after a push, and how it recovers from knocks.
"""

import sys
from functools import partial

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.plots import curves_of, save_figure

MODEL = models.path("cart_pole")
PERIOD, HORIZON, DURATION = 0.02, 60, 11.0  # s, samples, s
FORCE, POLE = 25.0, 4  # N, of 30 that the motor has; the pole's joint
PUSH, PUSHED = 1.5, 3.0  # N m on the pole for 0.1 s; from, s
KNOCKS, KNOCKED = (3.0, -3.0, 4.0), 6.0  # as PUSH
ROOTS = {"x": 2.0, "angle": 2.0, "speed": 0.3, "turn": 0.5}  # of weights per second
LAST = {"x": 7.0, "angle": 7.0, "speed": 2.2, "turn": 2.2}  # at the end
EFFORT, STANDS = 0.4, 0.1  # root of a weight per second, 1/N; rad of lean


def upright(at: mpc.StageSymbols, root: dict[str, float]) -> ca.SX:
    """Return residuals of standing in the middle of the rail, on whatever turn of the pole."""
    lean = at.q[POLE]
    place = ca.vertcat(root["x"] * at.q[0], root["speed"] * at.v[0], root["turn"] * at.v[POLE])
    return ca.vertcat(place, root["angle"] * ca.vertcat(ca.sin(lean), 1 - ca.cos(lean)))


def controller(system: mb.System, hanging: np.ndarray) -> mpc.RealTimeIteration:
    """Return the real-time iteration that begins with the optimal swing."""
    at, step = mpc.stage_symbols(system), mpc.StepOptions(order=2, pivot=False)
    residual = ca.vertcat(upright(at, ROOTS), EFFORT * at.u)
    cost = mpc.Cost(residual=residual, terminal=upright(at, LAST))
    parts = [cost, mpc.StageBounds(u=[[-FORCE, FORCE]])]
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, parts, symbols=at, step=step)
    straight = np.linspace(hanging, 0 * hanging, HORIZON + 1)
    guess = mpc.initial_guess(ocp, straight, np.zeros((HORIZON, 1)))
    best = mpc.ocp_solver(ocp, "fatrop").solve(hanging, guess=guess)
    print(best.in_words)
    return mpc.real_time_iteration(ocp, best, delay=1)


def push(knock: float, t: float) -> np.ndarray:
    """Return the force on the joints: a push while it stands, and the knock."""
    return np.eye(5)[POLE] * (PUSH * (0 <= t - PUSHED < 0.1) + knock * (0 <= t - KNOCKED < 0.1))


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return the runs, by the strength of the knock."""
    system, runs, hanging = mb.read_mjcf(MODEL), {}, np.pi * np.eye(10)[POLE]
    options = {"q0": hanging[:5], "delay": 1, "perturb": {"mass": 0.1}}
    with mb.validation.compile_controller(controller(system, hanging)) as law:
        for knock in KNOCKS:
            options["disturbance"] = partial(push, knock)
            run = mb.validate(law, MODEL, DURATION, **options).runs[0]
            t, lean = run.recording.t, (run.recording.q[:, POLE] + np.pi) % (2 * np.pi) - np.pi
            first = t[(abs(lean) > STANDS) & (t < PUSHED)][-1]
            pushed = abs(lean[(t > PUSHED) & (t < KNOCKED)]).max()
            last, name = t[abs(lean) > STANDS][-1] - KNOCKED, f"knocked by {knock:+.0f} N m"
            print(f"{name}: stands after {first:.2f} s; {run.in_words}")
            print(f"  the push leans it {pushed:.2f} rad, it stands again {last:.2f} s ", end="")
            print(f"after the knock, {abs(lean[-1]):.4f} rad off at the end")
            runs[name] = {"t": t, "lean": lean, "u": run.recording.u[:, 0], "run": run}
    if figure is not None:
        save_figure(figure, curves_of(runs, {"lean, rad": "lean"}), marks=(PUSHED, KNOCKED))
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
