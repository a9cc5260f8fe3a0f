"""One motor turns a slider-crank through both its singular poses [A05, §7-8].

At those poses the loop has a second free direction, which the crank's motor does not drive; the
report names it. The law of A05, eq. 62 passes them nevertheless: inertia keeps the slider on its
branch. The plant's pin is soft, so near those poses its small gap changes the mechanism's
direction; `rank_tol` determines the distance. The plant is 10 % heavier than the law's model, and
the slider is pushed during the motion.

You will see the crank's error, the torque with a fine and a coarse `rank_tol`, and the motion.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, motion
from mbcasadi.control import follow_motions
from mbcasadi.control.laws import LawOptions, input_reach, joint_coordinates, passive_joint_control
from mbcasadi.plots import save_figure

MODEL = models.path("slider_crank")
TURN = 4.0  # s, one turn from rest to rest
PUSH, FROM, TO = 15.0, 1.5, 1.6  # N on the slider; s
UPRIGHT = [np.pi / 2, 0.0, np.pi / 2]
FINE, COARSE = 1e-6, 0.03  # relative length below which a row of A counts as zero


def turn(system: mb.System, rank_tol: float) -> mb.validation.Run:
    """Return the closed loop over one turn."""
    theta = joint_coordinates(system, ("crank",))
    law = passive_joint_control(system, theta, kp=400.0, options=LawOptions(rank_tol=rank_tol))
    rate, start = 2 * np.pi / TURN, float(system.tree.q0[0])

    t = ca.SX.sym("t")
    angle = motion.vector_motion(t, start + rate * t - ca.sin(rate * t))
    reference = follow_motions(law, {"theta": angle})

    def push(t: float) -> list[float]:
        return [0.0, PUSH if FROM <= t < TO else 0.0, 0.0]

    options = {"reference": reference, "disturbance": push, "perturb": {"mass": 0.1}}
    return mb.validate(law, MODEL, TURN, **options).runs[0]


def main(figure: str | None = None) -> dict[float, dict[str, float]]:
    """Return the figures of both runs, by their rank_tol."""
    system = mb.read_mjcf(MODEL)
    for pose in (system.tree.q0, UPRIGHT):
        print(input_reach(system, pose).in_words)
    found, runs = {}, {tol: turn(system, tol) for tol in (FINE, COARSE)}
    for tol, run in runs.items():
        q = run.recording.q
        found[tol] = {
            "RMS error, mrad": 1e3 * run.metric("tracking.rms"),
            "largest, mrad": 1e3 * run.metric("tracking.max"),
            "ticks at a limit, %": 100 * run.metric("torque.saturated"),
            "slider off its branch, mm": 1e3 * np.abs(q[:, 1] - 2 * np.cos(q[:, 0])).max(),
            "one tick, µs": 1e6 * run.metric("time.median"),
        }
        print(f"rank_tol {tol:g}:", ", ".join(f"{k} {v:.2g}" for k, v in found[tol].items()))
    if figure is not None:
        record = runs[COARSE].recording
        t, error = record.t, 1e3 * record.monitor["error"][:, 0]
        subplots = {
            "motion": {"crank, rad": (t, record.q[:, 0]), "slider, m": (t, record.q[:, 1])},
            "error of the crank, mrad": {"error": (t, error)},
            "torque, N m": {f"rank_tol {k:g}": (t, r.recording.u[:, 0]) for k, r in runs.items()},
        }
        save_figure(figure, subplots)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
