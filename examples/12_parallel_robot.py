"""Three motors move a platform through six passive joints [A05, §7.4].

The law is written in the platform's own x, y and angle, which no motor drives directly. First the
report on input reach shows which motions the motors can drive, here and over the workspace. The
plant is 10 % heavier than the law's model, and the platform is pushed during the motion.

You will see the platform track a circle while it turns, the effect of the push, and the torques.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, motion
from mbcasadi.control import follow_motions
from mbcasadi.control.laws import (
    input_reach,
    joint_coordinates,
    passive_joint_control,
    sampled_poses,
    workspace_input_reach,
)
from mbcasadi.plots import save_figure

MODEL = models.path("planar_3rrr")
RADIUS, ANGLE, RATE = 0.05, 0.2, 2 * np.pi  # m, rad, rad/s
DURATION, PUSH, FROM, TO = 3.0, 5.0, 1.5, 1.6  # s; N on the platform, along x
POSES = 200


def path() -> motion.VectorMotion:
    """Return the motion of x, y and angle; it starts at rest."""
    t = ca.SX.sym("t")
    x, y, angle = ca.cos(RATE * t) - 1, ca.sin(RATE * t), ca.cos(RATE * t) - 1
    way = ca.vertcat(RADIUS * x, RADIUS * y, ANGLE * angle)
    return motion.vector_motion(t, motion.smooth_step(t, 0.0, 1.0) * way)


def main(figure: str | None = None) -> dict[str, float]:
    """Return the figures of the closed loop."""
    system = mb.read_mjcf(MODEL)
    print(input_reach(system, system.tree.q0).in_words)
    print(workspace_input_reach(system, sampled_poses(system, POSES, spread=1.0)).in_words)
    law = passive_joint_control(system, joint_coordinates(system, ("x", "y", "phi")), kp=900.0)

    def push(t: float) -> np.ndarray:
        return PUSH * (np.arange(9) == 6) * (FROM <= t < TO)

    reference = follow_motions(law, {"theta": path()})
    options = {"reference": reference, "disturbance": push, "perturb": {"mass": 0.1}}
    run = mb.validate(law, MODEL, DURATION, **options).runs[0]
    found = {f"RMS error of {row.name[6:]}, m or rad": row.rms for row in run.tracking}
    found |= {
        "largest torque, N m": run.metric("torque.max"),
        "ticks at a limit, share": run.metric("torque.saturated"),
        "one tick of the C, µs": 1e6 * run.metric("time.median"),
    }
    for name, value in found.items():
        print(f"{name:30} {value:.2g}")
    if figure is not None:
        t, error = run.recording.t, run.recording.monitor["error"]
        errors = {n: (t, error[:, i]) for i, n in enumerate(("x, m", "y, m", "angle, rad"))}
        torques = {f"leg {n}": (t, run.recording.u[:, i]) for i, n in enumerate("abc")}
        save_figure(figure, {"error": errors, "torque, N m": torques})
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
