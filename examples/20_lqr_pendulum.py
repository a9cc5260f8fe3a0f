"""A pendulum balances on a four-bar by LQR, with one motor at the crank.

Four joints, three of them passive; the loop's three rows have rank 2, so two freedoms remain and
the motor controls both. The regulator is computed on the manifold: weights refer to the joints of
the file, and the loop determines which of them are free. MuJoCo's plant is 10 % heavier, its
control acts one tick late, and the pendulum is pushed.

You will see the lean of the pendulum, the motion of the crank, and the torque, with the generated
C; and the lean without feedback.
"""

import sys

import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import LawOptions
from mbcasadi.control.regulators import controllability, feedback, lqr
from mbcasadi.plots import curves_of, save_figure
from mbcasadi.validation import ReportOptions

MODEL = models.path("pendulum_on_four_bar")
DURATION, PERIOD = 4.0, 1e-3  # s
PUSH, PUSHED = 0.1, (0.5, 0.6)  # N m on the pendulum; s
ANGLE, SPEED, TORQUE = 10.0, 0.1, 1.0  # 1/rad², s²/rad², 1/(N m)²: weights of joints and motor


def push(t: float) -> np.ndarray:
    """Return the force on the joints at time t."""
    return PUSH * (PUSHED[0] <= t < PUSHED[1]) * np.array([0.0, 0.0, 1.0, 0.0])


def run(law: mb.control.laws.Law, duration: float = DURATION) -> dict[str, np.ndarray]:
    """Return time, lean, crank and torque of a run in MuJoCo."""
    errors = {"perturb": {"mass": 0.1}, "disturbance": push, "delay": 1}
    once = ReportOptions(explain=False)
    report = mb.validate(law, MODEL, duration, report=once, **errors).runs[0]
    found, tick = report.recording, report.metric("time.median")
    lean = found.q[:, :3].sum(axis=1)  # crank, coupler and pendulum turn on each other
    return {"t": found.t, "lean": lean, "crank": found.q[:, 0], "u": found.u[:, 0], "tick": tick}


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return the runs with and without feedback."""
    system = mb.read_mjcf(MODEL)
    held = mb.equilibrium(system)
    linear = mb.linearize(system, held)
    print(f"holding torque {held.u[0]:.4f} N m; {linear.nx} states of {2 * system.nv}")
    print(controllability(linear).in_words)
    weights = np.repeat([ANGLE, SPEED], system.nv)
    law = lqr(linear, weights, TORQUE, options=LawOptions(period=PERIOD))
    runs = {
        "LQR": run(law),
        "no feedback": run(
            feedback(linear, np.zeros((1, linear.nx)), options=LawOptions(period=PERIOD)), 1.5
        ),
    }
    kept, fallen = runs["LQR"], runs["no feedback"]
    print(f"after the push the pendulum leans {np.abs(kept['lean']).max():.3f} rad at most,")
    print(f"at the end {np.abs(kept['lean'][-1]):.4f} rad, crank {kept['crank'][-1]:+.4f} rad off")
    print(f"without feedback: {np.abs(fallen['lean']).max():.1f} rad after 1.5 s")
    if figure is not None:
        titles = {"lean of the pendulum, rad": "lean", "crank, rad": "crank", "torque, N m": "u"}
        ranges = (-0.1, 0.1), (-0.5, 0.5), (-1.0, 0.5)  # of the run that does not fall
        limits = dict(zip(titles, ranges, strict=True))
        save_figure(figure, curves_of(runs, titles), limits=limits)
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
