"""A tool keeps its line though a motor is too weak: a law within its limits.

A five-bar's tool runs along a level line, and its left motor has 4 of the 15 N m that the right one
has. Computed torque clipped at that limit lets the tool sink. `within_limits` gives the feasible
command with the nearest motion, in a given measure: errors off the line have a hundred times the
weight of those along the line. Inside the limits both are the same law, bit for bit. The plant is
10 % heavier than their model, which lets the tool sink a little in any case.

You will see both laws side by side: the tool along and off its line, and the motors' torques.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, motion
from mbcasadi.control import FrameTask, follow_motions, laws
from mbcasadi.validation import Criteria, Report, side_by_side

MODEL = models.path("five_bar")
LIMITS = [[-4.0, 4.0], [-15.0, 15.0]]  # N m
REACH, RATE = 0.08, 7.0  # m, rad/s
DURATION, SETTLED = 3.0, 0.5  # s


def main(figure: str | None = None) -> dict[str, dict[str, np.ndarray | float]]:
    """Return of each law: t, the tool's errors along and off the line, mm, and the torques."""
    system = mb.read_mjcf(MODEL)
    tool = {"frame": "tool", "position": "xz", "orientation": ""}
    clipped = laws.computed_torque(
        system, FrameTask(**tool, kp=100.0), options=laws.LawOptions(ctrl_limits=LIMITS)
    )
    line_first = laws.within_limits(clipped, closeness=FrameTask(**tool, weight=(1.0, 100.0)))
    place = np.array(system.frame("tool").pose(system.tree.q0)[0]).ravel()[[0, 2]]

    t = ca.SX.sym("t")
    along = motion.vector_motion(t, ca.vertcat(REACH * ca.sin(RATE * t), 0) + place)
    line = follow_motions(clipped, {"tool": along})
    found: dict[str, dict[str, np.ndarray | float]] = {}
    reports: dict[str, Report] = {}
    for name, law in {"clipped": clipped, "within limits": line_first}.items():
        options = {
            "reference": line,
            "perturb": {"mass": 0.1},
            "criteria": Criteria(settle=SETTLED),
        }
        reports[name] = mb.validate(law, MODEL, DURATION, **options)
        run = reports[name].runs[0]
        error = -1e3 * run.recording.monitor["error"]
        late = run.recording.t > SETTLED
        along, off = np.sqrt(np.mean(error[late] ** 2, axis=0))
        found[name] = {"t": run.recording.t, "error": error, "u": run.recording.u}
        found[name] |= {"along": along, "off": off, "largest": np.abs(error[late, 1]).max()}
        found[name] |= {"saturated": run.metric("torque.saturated")}
        found[name]["tick"] = run.metric("time.median")
        print(f"{name:13}: {along:4.1f} mm RMS along the line, {off:4.1f} mm off it ", end="")
        print(f"({found[name]['largest']:.1f} mm at most); ", end="")
        print(f"{1e6 * run.metric('time.median'):.1f} µs a tick")
    if figure is not None:
        side_by_side(reports, title="Weak motor").save(figure)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
