"""A parallel robot falls through poses where its motors cannot hold its tool.

Two arms meet in one pin. Where their outer links are in one line, the pin can move without work of
any motor: an actuation singularity. The straight line from left to right crosses such poses twice.
Inverse dynamics requires torques there beyond all motors, and in MuJoCo the tool falls through.

You will see the determinant that vanishes at these poses, as a share of its value at the authored
pose, how far the tool is off, and the torque that the line needs. Example 27 goes around them.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import FrameTask, laws
from mbcasadi.plots import curves_of, save_figure

MODEL = models.path("five_bar")
LEFT, RIGHT = np.array([-0.38, 0.38]), np.array([0.38, 0.38])  # m, x and z of the tool
SLOW, LIMIT, PERIOD = 2.0, 15.0, 2e-3  # s of the line, N m of the motors, s


def straight(t: float) -> np.ndarray:
    """Return (3, 2): place, velocity and acceleration on the line, from rest to rest."""
    s = min(t / SLOW, 1.0)
    share = s**3 * (10 - 15 * s + 6 * s * s)
    rates = 30 * (s * (1 - s)) ** 2 / SLOW, 60 * s * (1 - s) * (1 - 2 * s) / SLOW**2
    return np.outer([share, *rates], RIGHT - LEFT) + np.outer([1, 0, 0], LEFT)


def main(figure: str | None = None) -> dict[str, np.ndarray]:
    """Return t, determinant, tool, error and torques of the run, and the torque that is needed."""
    system = mb.read_mjcf(MODEL)
    q = ca.SX.sym("q", system.nq)
    tool = system.frame("tool").pose(q)[0][[0, 2]]
    measure = mpc.actuation_measure(system, q, system.tree.q0)
    seen = ca.Function("seen", [q], [ca.vertcat(tool, measure)])
    there = mpc.pose_path(system, q, tool, [0, 1, 2, 3], np.linspace([0, 0.8], LEFT, 4)).q[-1]
    t = np.linspace(0, SLOW, 41)
    line = mpc.pose_path(system, q, tool, t, [straight(each)[0] for each in t], q0=there)
    task = FrameTask("tool", position="xz", orientation="", kp=900.0)
    law = laws.computed_torque(system, task, options=laws.LawOptions(period=PERIOD))

    def reference(t: float) -> np.ndarray:
        place, velocity, acceleration = straight(t)
        motion = {"tool_velocity": velocity, "tool_acceleration": acceleration}
        return law.reference(tool_position=place, **motion)

    options = {"reference": reference, "q0": line.q[0], "perturb": {"mass": 0.1}, "delay": 1}
    options["report"] = mb.validation.ReportOptions(explain=False)
    record = mb.validate(law, MODEL, SLOW + 0.3, **options).runs[0].recording
    was = seen.map(len(record.t))(record.q.T).full()
    wanted = np.array([straight(each)[0] for each in record.t]).T
    run = {"t": record.t, "measure": was[2], "tool": was[1], "u": record.u, "left": record.u[:, 0]}
    run |= {"off": np.linalg.norm(was[:2] - wanted, axis=0), "needed": np.abs(line.u).max()}
    print(f"off by {1e3 * run['off'].max():.0f} mm, determinant from {was[2].min():+.2f}, ", end="")
    print(f"torque {np.abs(record.u).max():.1f} N m; the line needs {run['needed']:.0f} N m")
    if figure is not None:
        titles = {"determinant, share": "measure", "height of the tool, m": "tool"}
        titles |= {"tool off its path, m": "off", "torque of the left motor, N m": "left"}
        save_figure(figure, curves_of({"straight line": run}, titles))
    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
